"""Several personas under way at once: the same results as one after another, whoever ends the program."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.errors import RetrieverError
from retrieval_eval.github.log import ActionsLog
from retrieval_eval.measure import Measured, Plan, measure
from retrieval_eval.model import RENDERING_VERSION, Lane
from retrieval_eval.pipeline import Effects, Model, prep
from retrieval_eval.retriever.protocol import Path
from retrieval_eval.retriever.spec import RetrieverSpec, parse_spec

QUESTIONS = 7
IDENTITY = ModelIdentity("fake", "sha256:00", 4, RENDERING_VERSION)

SEVERAL = """
stored = {}
order = open("order.txt", "w")

def answer(request):
    kind, persona = request["type"], request.get("persona")
    print(kind, persona or "-", file=order, flush=True)
    if kind == "hello":
        return send(request, {"version": 1, "name": "fake", "personas": ATONCE,
                              "paths": {"search": {"needs": ["vector"], "may_return_fewer": True}}})
    if kind == "open":
        stored[persona] = []
        return send(request, {})
    if kind == "insert":
        stored[persona] += [row["id"] for row in request["rows"]]
        return send(request, {"inserted": len(request["rows"])})
    if kind == "search":
        on_search(request, persona)
        return send(request, {"ids": stored[persona][::-1][:request["limit"]]})
    on_close(request, persona)
    del stored[persona]
    send(request, {})

def on_search(request, persona):
    pass

def on_close(request, persona):
    pass
"""


class Silent:
    @contextlib.contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Silent]:
        yield self

    def advance(self, n: int = 1) -> None:
        pass


class Embedder:
    identity, backend = IDENTITY, "fake"

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        for text in texts:
            yield Embedded(np.array([len(text) % 7, 1, 2, 3], np.float32), is_truncated=False)


def instance(number: int) -> dict[str, Any]:
    sessions = [[{"role": "user", "content": f"row {row} of question {number}"}] for row in range(5)]
    names = [f"s{number}-{row}" for row in range(5)]
    return {
        "question_id": f"q{number}",
        "question_type": "multi-session",
        "question": f"Which row of {number}?",
        "question_date": "2024/01/01 (Mon) 00:00",
        "answer": "none",
        "answer_session_ids": [names[number % 5]],
        "haystack_dates": ["2024/01/01 (Mon) 00:00"] * 5,
        "haystack_session_ids": names,
        "haystack_sessions": sessions,
    }


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> FilePath:
    folder = tmp_path_factory.mktemp("in-flight")
    data = folder / "data.json"
    data.write_text(json.dumps([instance(number) for number in range(QUESTIONS)]), encoding="utf-8")
    prep(data, folder / "cache", Model("fake", None, IDENTITY, Embedder), Effects(Silent(), lambda: 0.0))
    return folder / "cache"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch) -> None:
    """The programs write the order of their requests into the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def measured(cache, program) -> Callable[..., Measured]:
    """What a program that takes `at_once` personas answers in the model-free lane; `body` replaces its hooks."""

    def run(at_once: int, body: str = "") -> Measured:
        command = tuple(program(SEVERAL.replace("ATONCE", str(at_once)) + body + "\nserve(answer)\n"))
        plan = Plan(cache, RetrieverSpec("fake", command=command), (Lane.MODEL_FREE,), 3)
        return measure(plan, Silent())

    return run


def requests_seen(folder: FilePath) -> list[str]:
    return (folder / "order.txt").read_text(encoding="utf-8").splitlines()


def failed(measured: Measured) -> list[str]:
    return [outcome.question_id for outcome in measured.outcomes if outcome.failed]


def test_the_next_personas_are_sent_before_the_first_is_closed_and_all_are_closed(measured, tmp_path):
    assert failed(measured(4)) == []
    seen = requests_seen(tmp_path)
    assert seen.index("open q1") < seen.index("close q0")
    for kind in ("open", "search", "close"):
        assert [line for line in seen if line.startswith(kind)] == [f"{kind} q{n}" for n in range(QUESTIONS)]


def test_a_program_that_takes_one_persona_gets_one_at_a_time(measured, tmp_path):
    assert failed(measured(1)) == []
    each = [f"{kind} q{n}" for n in range(QUESTIONS) for kind in ("open", "insert", "search", "close")]
    assert requests_seen(tmp_path) == ["hello -", *each]


@pytest.mark.parametrize("at_once", [2, 3, 100])
def test_the_outcomes_are_those_of_one_at_a_time(measured, at_once):
    assert measured(at_once) == measured(1)


def test_never_more_personas_are_open_than_the_program_takes(measured, tmp_path):
    measured(2)
    is_open: set[str] = set()
    for line in requests_seen(tmp_path):
        kind, persona = line.split()
        if kind == "open":
            is_open.add(persona)
        elif kind == "close":
            is_open.remove(persona)
        assert len(is_open) <= 2


def test_a_crash_with_several_under_way_costs_the_one_that_causes_it(measured):
    result = measured(4, 'def on_search(request, persona):\n    if persona == "q2": os._exit(3)\n')
    assert failed(result) == ["q2"]
    assert "exit code 3" in str(result.outcomes[2].failed)
    assert result.remarks == (
        "the retriever fake had to be started 3 times",
        "the retriever fake ended while it held several questions, and got one at a time from then on",
    )


def test_a_crash_because_of_several_under_way_costs_nobody(measured):
    result = measured(4, "def on_search(request, persona):\n    if len(stored) > 1 or persona == 'q1': os._exit(3)\n")
    assert failed(result) == ["q1"]


def test_a_persona_that_another_one_brings_down_is_asked_again_alone(measured):
    """q1's rows end the program while it owes the answer to q0, as may happen where personas are worked on at once."""
    body = """
held = []
def on_search(request, persona):
    if persona == "q0" and len(stored) == 1 and not os.path.exists("second"):
        open("second", "w").close()
        for line in sys.stdin:
            if json.loads(line)["type"] == "insert":
                os._exit(4)
"""
    result = measured(4, body)
    assert failed(result) == []
    assert len(result.outcomes) == QUESTIONS


def test_a_program_that_always_crashes_is_given_up_after_three_failures(measured):
    result = measured(4, "def on_search(request, persona):\n    os._exit(3)\n")
    assert failed(result) == [f"q{n}" for n in range(QUESTIONS)]
    given_up = ["given up after 3 failures in a row" in str(outcome.failed) for outcome in result.outcomes]
    assert given_up == [False] * 3 + [True] * (QUESTIONS - 3)


def test_a_refused_search_under_way_costs_its_question_and_no_restart(measured, tmp_path):
    body = """
def on_search(request, persona):
    if persona == "q3":
        stored[persona] = ["not a row"]
"""
    result = measured(4, body)
    assert failed(result) == ["q3"]
    assert result.remarks == ()
    assert "close q3" in requests_seen(tmp_path)


def test_a_close_that_fails_with_others_under_way_keeps_all_answers(measured):
    body = """
def on_close(request, persona):
    if persona == "q1":
        send({**request, "type": "error"}, {"message": "stuck"})
        time.sleep(60)
"""
    result = measured(4, body)
    assert failed(result) == []
    assert result.remarks[0] == "the retriever fake had to be started 2 times"


def test_what_was_sent_ahead_and_cannot_be_asked_fails_when_it_is_asked(program, start, make_rows, make_query):
    command = program(SEVERAL.replace("ATONCE", "4") + "serve(answer)")
    with start(command) as retriever:
        retriever.send_ahead("a", make_rows(4), [make_query(Path.SEARCH_BM25)])
        with retriever.open("a", make_rows(4)) as persona:
            with pytest.raises(RetrieverError, match="does not offer the path search_bm25"):
                persona.search(make_query(Path.SEARCH_BM25))
            assert len(persona.search(make_query(Path.SEARCH)).ranked) == 3
    assert retriever.starts == 1


def test_a_query_that_was_not_sent_ahead_is_asked_all_the_same(program, start, make_rows, make_query):
    with start(program(SEVERAL.replace("ATONCE", "4") + "serve(answer)")) as retriever:
        retriever.send_ahead("a", make_rows(4), [make_query(Path.SEARCH, limit=3)])
        with retriever.open("a", make_rows(4)) as persona:
            lengths = [len(persona.search(make_query(Path.SEARCH, limit=limit)).ranked) for limit in (1, 3, 3, 4)]
    assert lengths == [1, 3, 3, 4]


def test_short_lists_are_a_remark(measured):
    result = measured(4, "def on_search(request, persona):\n    del stored[persona][1:]\n")
    assert failed(result) == []
    assert result.remarks == (
        f"the retriever fake returned fewer ids than asked for in {QUESTIONS} answers of search, as it says it may",
    )


def test_the_built_in_store_has_no_remarks(cache):
    assert measure(Plan(cache, parse_spec("builtin:semantic"), (Lane.MODEL_FREE,), 3), Silent()).remarks == ()


NOISY = """
def on_search(request, persona):
    del stored[persona][1:]
    if persona == "q0":
        print("loading \\x1b[31m the index", file=sys.stderr, flush=True)
        print("::error::gotcha ##[group]x", file=sys.stderr, flush=True)
"""


def test_the_command_line_shows_stderr_of_the_program_and_its_short_lists(cache, program, tmp_path):
    command = program(SEVERAL.replace("ATONCE", "2") + NOISY + "\nserve(answer)\n")
    run = [sys.executable, "-m", "retrieval_eval.cli", "run", "--cache", str(cache), "--lane", "model-free", "--k", "3"]
    done = subprocess.run(
        [*run, "--retriever", " ".join(command)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert r"retriever: loading \x1b[31m the index" in lines
    assert "retriever: : :error: :gotcha # #[group]x" in lines
    remark = f"the retriever fake returned fewer ids than asked for in {QUESTIONS} answers of search, as it says it may"
    assert remark in json.loads(done.stdout)["warnings"]


def test_the_action_log_shows_stderr_of_the_program_without_its_commands(measured, capsys):
    log = ActionsLog(lambda: 0.0)
    handler = log.attach()
    try:
        measured(2, NOISY)
    finally:
        logging.getLogger("retrieval_eval").removeHandler(handler)
    lines = capsys.readouterr().out.splitlines()
    assert r"retriever: loading \x1b[31m the index" in lines
    assert not any(line.lstrip().startswith("::error") or "##[" in line for line in lines)
