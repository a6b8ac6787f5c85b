"""Conformance holds for a program that keeps the protocol, and names the rule that another one breaks."""

from __future__ import annotations

import os
import sys

import pytest

from retrieval_eval.retriever.conformance import Point, run_conformance
from retrieval_eval.retriever.conversation import Timeouts
from retrieval_eval.retriever.process import child_environment

PATIENT = Timeouts(exit_s=10.0)
PLAIN = """
opened = {}  # strict where the document is: ids are hex digits, hello names the harness

def reply_to(request):
    kind = request["type"]
    if kind == "hello":
        assert request["harness"]
        return {"version": 1, "name": "fake", "paths": {"search_hybrid": {"needs": ["text"]}}, "personas": 2}
    if kind == "open":
        opened[request["persona"]] = []
        return {}
    rows = opened[request["persona"]]
    if kind == "insert":
        rows.extend(f"{int(row['id'], 16):032x}" for row in request["rows"])
        return {"inserted": len(request["rows"])}
    if kind == "search":
        return {"ids": rows[:request["limit"]]}
    if kind == "close":
        del opened[request["persona"]]
        return {}
    raise KeyError(kind)

def answer(request):
    try:
        send(request, reply_to(request))
    except (KeyError, ValueError) as error:
        send({**request, "type": "error"}, {"message": repr(error)})
"""


def broken_points(points: list[Point]) -> list[str]:
    return [point.name for point in points if not point.holds]


def run(command: list[str], timeouts: Timeouts = PATIENT) -> list[Point]:
    return run_conformance(command, env=child_environment(os.environ), timeouts=timeouts, log=lambda line: None)


@pytest.mark.parametrize("paths", [1, 3])
def test_every_point_holds_for_a_program_that_keeps_the_protocol(program, paths, root):
    example = [sys.executable, str(root / "examples" / "retrievers" / "python" / "retriever.py")]
    points = run(program(PLAIN + "serve(answer)") if paths == 1 else example)
    assert broken_points(points) == []
    assert len(points) == 11 + 3 * paths
    assert len({point.name for point in points}) == len(points)
    assert all(point.detail for point in points)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    if request['type'] == 'insert' and any(chr(0) in row['text'] for row in request['rows']):\n"
            "        raise ValueError('NUL in text')\n"
            "    return plain(request)\n",
            ["awkward texts are stored", "search_hybrid: awkward questions"],
            id="no NUL in rows",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    return {} if request['type'].startswith('message_of') else plain(request)\n",
            ["an unknown message type is refused"],
            id="unknown types accepted",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    opened.setdefault(request.get('persona'), [])\n"
            "    return plain(request)\n",
            ["an unknown persona is refused"],
            id="unknown personas accepted",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    return {} if request['type'] == 'close' and request['persona'] == 'same' else plain(request)\n"
            "def reply_to(request, plain=reply_to):\n"
            "    return {} if request['type'] == 'open' and request['persona'] in opened else plain(request)\n",
            ["a closed persona is forgotten"],
            id="rows survive close",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n    return plain({**request, 'persona': 'the only one'})\n",
            ["personas stay apart"],
            id="personas mixed",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    if request['type'] == 'close' and request['persona'] == 'same':\n"
            "        raise ValueError('no close')\n"
            "    return plain(request)\n",
            ["a closed persona is forgotten"],
            id="close fails",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    extra = [key for key in request if key.startswith('from_version')]\n"
            "    if extra:\n"
            "        raise ValueError(extra[0])\n"
            "    return plain(request)\n",
            ["unknown fields are ignored"],
            id="unknown fields refused",
        ),
        pytest.param(
            "count = [0]\n"
            "def reply_to(request, plain=reply_to):\n"
            "    reply = plain(request)\n"
            "    count[0] += 1\n"
            "    return {'ids': reply['ids'][::-1]} if 'ids' in reply and count[0] % 2 else reply\n",
            ["search_hybrid: the same question gives the same list"],
            id="another order every time",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    reply = plain(request)\n"
            "    return {'ids': reply['ids'] * 2} if 'ids' in reply and len(reply['ids']) == 12 else reply\n",
            ["search_hybrid: limits of 1, all and more than all rows"],
            id="doubled ids",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    if request['type'] == 'search' and '🙂' in request['text']:\n"
            "        os._exit(1)\n"
            "    return plain(request)\n",
            ["search_hybrid: awkward questions"],
            id="a question that crashes it",
        ),
        pytest.param(
            "def reply_to(request, plain=reply_to):\n"
            "    reply = plain(request)\n"
            "    if request['type'] == 'hello':\n"
            "        return {**reply, 'paths': {'search': {'needs': ['vector']}}}\n"
            "    return reply\n",
            ["a row is found by its own vector"],
            id="vectors not looked at",
        ),
    ],
)
def test_a_broken_rule_is_named(program, lines, expected):
    points = run(program(PLAIN + lines + "serve(answer)"))
    assert broken_points(points) == expected


def test_a_program_that_stays_after_the_end_is_named(program):
    command = program(PLAIN + "serve(answer)\ntime.sleep(60)")
    points = run(command, Timeouts(exit_s=0.2, term_s=2.0))
    assert {"bye ends the program", "the end of input ends the program"} <= set(broken_points(points))


def test_one_point_is_all_there_is_where_hello_fails(program):
    assert [(point.name, point.holds) for point in run(program('print("hello")'))] == [("hello is answered", False)]
