"""Does a program keep the retriever protocol? One point a rule, tried on the program itself.

Owns the points. Each point starts the program anew, so that one failure hides no other. It
prints nothing and measures no quality.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever import messages
from retrieval_eval.retriever.awkward import AWKWARD_TEXTS, TrialRow, trial_rows
from retrieval_eval.retriever.child import Child
from retrieval_eval.retriever.conversation import Conversation, Timeouts
from retrieval_eval.retriever.messages import Hello, Source
from retrieval_eval.retriever.process import ExternalRetriever
from retrieval_eval.retriever.protocol import Answer, Path, Query

_LOG = logging.getLogger(__name__)
_WHERE = "conformance"


@dataclass(frozen=True, slots=True)
class Point:
    """One rule, whether the program keeps it, and what was seen."""

    name: str
    holds: bool
    detail: str


class _BrokenRuleError(Exception):
    """A rule is broken in a way that the harness itself would not have stopped at."""


@dataclass(frozen=True, slots=True)
class _Program:
    """The program under trial; every use starts it anew."""

    command: Sequence[str]
    env: Mapping[str, str]
    timeouts: Timeouts
    log: Callable[[str], None] = field(repr=False)

    def retriever(self) -> ExternalRetriever:
        return ExternalRetriever(self.command, env=self.env, timeouts=self.timeouts, log=self.log)

    @contextmanager
    def talk(self, **extra: object) -> Iterator[Conversation]:
        """A bare conversation after `hello`; `extra` are fields that version 1 does not know."""
        conversation = Conversation(self.child(), self.timeouts)
        try:
            conversation.ask("hello", {**messages.GREETING, **extra}, where=_WHERE)
            yield conversation
        finally:
            conversation.bye()

    def child(self) -> Child:
        return Child(self.command, env=self.env, log=self.log, max_line_bytes=messages.MAX_ANSWER_BYTES)


_Check = Callable[[_Program, Hello], str]


def run_conformance(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    timeouts: Timeouts | None = None,
    log: Callable[[str], None] | None = None,
) -> list[Point]:
    """Try every rule, in a fixed order. Where `hello` fails, that one point is all there is."""
    program = _Program(tuple(command), env, timeouts or Timeouts(), log or _LOG.info)
    try:
        with program.retriever() as retriever:
            hello = retriever.hello
    except RetrieverError as error:
        return [Point("hello is answered", False, str(error))]
    points = [Point("hello is answered", True, _introduction(hello))]
    checks: list[tuple[str, _Check]] = [*_COMMON_CHECKS]
    for path in hello.paths:
        checks.append((f"{path}: limits of 1, all and more than all rows", _for_path(_limits, path)))
        checks.append((f"{path}: awkward questions", _for_path(_awkward_questions, path)))
        checks.append((f"{path}: the same question gives the same list", _for_path(_repeats, path)))
    return [*points, *(_tried(name, check, program, hello) for name, check in checks)]


def _tried(name: str, check: _Check, program: _Program, hello: Hello) -> Point:
    try:
        return Point(name, True, check(program, hello))
    except (RetrieverError, _BrokenRuleError) as error:
        return Point(name, False, str(error))


def _for_path(check: Callable[[_Program, Path], str], path: Path) -> _Check:
    return lambda program, _hello: check(program, path)


def _introduction(hello: Hello) -> str:
    vectors = f"row vectors {hello.row_vectors}, query vectors {hello.query_vectors}"
    return (
        f"{hello.name}, version {hello.version}, {', '.join(hello.paths)}; {vectors}; personas at once {hello.personas}"
    )


def _query(path: Path, row: TrialRow, limit: int) -> Query:
    return Query(question_id=_WHERE, path=path, limit=limit, text=row.text, vector=row.vector)


def _stores_awkward_rows(program: _Program, _hello: Hello) -> str:
    with program.retriever() as retriever, retriever.open("awkward", trial_rows(list(AWKWARD_TEXTS.values()))):
        return f"{len(AWKWARD_TEXTS)} rows: {', '.join(AWKWARD_TEXTS)}"


def _takes_many_batches(program: _Program, _hello: Hello) -> str:
    rows = trial_rows([f"memory number {number}" for number in range(5 * messages.MAX_BATCH_ROWS)])
    with program.retriever() as retriever, retriever.open("many", rows):
        return f"{len(rows)} rows in 5 messages, sent without waiting"


def _ignores_unknown_fields(program: _Program, hello: Hello) -> str:
    future = {"from_version_9": {"nested": [1, None, "x"]}}
    row = trial_rows(["a plain memory"])[0]
    batch = next(messages.batches([row], with_vectors=hello.row_vectors is Source.GIVEN))
    path = next(iter(hello.paths))
    with program.talk(**future) as talk:
        talk.ask("open", {"persona": "p", **future}, where=_WHERE)
        talk.send("insert", {"persona": "p", **future}, where=_WHERE, batch=batch)
        request = {"persona": "p", "path": path, "limit": 1, "text": row.text}
        talk.ask("search", {**request, "vector": messages.encode_vector(row.vector), **future}, where=_WHERE)
        talk.ask("close", {"persona": "p", **future}, where=_WHERE)
    return "in hello, open, insert, search and close"


def _refuses(program: _Program, requests: Sequence[tuple[str, Mapping[str, object]]]) -> str:
    """Each request is answered with type "error", and the program goes on."""
    with program.talk() as talk:
        for kind, request in requests:
            talk.send(kind, request, where=_WHERE)
            if talk.receive()["type"] != "error":
                raise _BrokenRuleError(f'{kind} was accepted, expected an answer of type "error"')
        talk.ask("open", {"persona": "after"}, where=_WHERE)
        talk.ask("close", {"persona": "after"}, where=_WHERE)
    return 'answered with type "error", then went on'


def _refuses_unknown_type(program: _Program, _hello: Hello) -> str:
    return _refuses(program, [("message_of_version_9", {"persona": "p"})])


def _refuses_unknown_persona(program: _Program, hello: Hello) -> str:
    vector = messages.encode_vector(trial_rows(["a"])[0].vector)
    search = {"persona": "nobody", "path": next(iter(hello.paths)), "limit": 1, "text": "a", "vector": vector}
    return _refuses(program, [("search", search), ("close", {"persona": "nobody"})])


def _forgets_closed_personas(program: _Program, hello: Hello) -> str:
    path = next(iter(hello.paths))
    with program.retriever() as retriever:
        for prefix in ("00a", "00b"):
            rows = trial_rows(["shared words one", "shared words two"], prefix)
            with retriever.open("same", rows) as persona:
                persona.search(_query(path, rows[0], 10))
        if retriever.starts > 1:
            raise _BrokenRuleError("close was not answered as it should be, so the program had to be started again")
    return "opened twice under one name, only the new rows came back"


def _keeps_personas_apart(program: _Program, hello: Hello) -> str:
    if hello.personas == 1:
        return "not tried: one persona at a time"
    path = next(iter(hello.paths))
    left_rows, right_rows = trial_rows(["shared words"], "00a"), trial_rows(["shared words"], "00b")
    with (
        program.retriever() as retriever,
        retriever.open("left", left_rows) as left,
        retriever.open("right", right_rows) as right,
    ):
        for persona, row in ((left, left_rows[0]), (right, right_rows[0])):
            persona.search(_query(path, row, 10))
    return "two open at once, each answered from its own rows"


def _finds_the_same_vector(program: _Program, hello: Hello) -> str:
    support = hello.paths.get(Path.SEARCH)
    if support is None or "vector" not in support.needs or hello.row_vectors is Source.OWN:
        return "not tried: no path searches our vectors by vector"
    rows = trial_rows([f"memory number {number}" for number in range(20)])
    with program.retriever() as retriever, retriever.open("exact", rows) as persona:
        for row in rows:
            if persona.search(_query(Path.SEARCH, row, 1)).ranked != (row.row_id,):
                raise _BrokenRuleError(
                    "a row's own vector does not find that row first: are vectors read as little-endian float32?"
                )
    return f"{len(rows)} of {len(rows)} rows come first for their own vector"


def _leaves_after_bye(program: _Program, _hello: Hello) -> str:
    talk = Conversation(program.child(), program.timeouts)
    talk.ask("hello", messages.GREETING, where=_WHERE)
    return _left(talk.bye(), "bye", program.timeouts.exit_s)


def _leaves_at_end_of_input(program: _Program, _hello: Hello) -> str:
    child = program.child()
    child.end(wait_s=program.timeouts.exit_s, term_s=program.timeouts.term_s)
    return _left(child.exit_code, "the end of its input", program.timeouts.exit_s)


def _left(exit_code: int | None, after: str, exit_s: float) -> str:
    if exit_code != 0:
        raise _BrokenRuleError(f"expected exit code 0 within {exit_s:g} s of {after}, got {exit_code}")
    return "exit code 0"


def _limits(program: _Program, path: Path) -> str:
    rows = trial_rows([f"shared words and number {number}" for number in range(12)])
    with program.retriever() as retriever, retriever.open("limits", rows) as persona:
        counts = [len(persona.search(_query(path, rows[3], limit)).ranked) for limit in (1, 12, 1000)]
    return f"12 rows: {counts[0]}, {counts[1]} and {counts[2]} ids for limit 1, 12 and 1000"


def _awkward_questions(program: _Program, path: Path) -> str:
    """A question may be refused with an error; it may not be answered wrongly or end the program."""
    rows = trial_rows(list(AWKWARD_TEXTS.values()))
    known = {row.row_id for row in rows}
    refused = []
    with program.retriever() as retriever:
        given = retriever.hello.row_vectors is Source.GIVEN
    with program.talk() as talk:
        talk.ask("open", {"persona": "p"}, where=_WHERE)
        for batch in messages.batches(rows, with_vectors=given):
            talk.wait(talk.send("insert", {"persona": "p"}, where=_WHERE, batch=batch))
        for name, row in zip(AWKWARD_TEXTS, rows, strict=True):
            vector = messages.encode_vector(row.vector)
            request = {"persona": "p", "path": path, "limit": 5, "text": row.text, "vector": vector}
            talk.send("search", request, where=f"{_WHERE}, {name}")
            reply = talk.receive()
            if reply["type"] == "error":
                refused.append(name)
            else:
                messages.read_answer(reply, 5, known, f"{_WHERE}, {name}")
    return f"{len(rows)} asked, refused with an error: {', '.join(refused) or 'none'}"


def _repeats(program: _Program, path: Path) -> str:
    """Twice in one program and once in a second one; the rows hold two equal ones."""
    rows = trial_rows(["equal words", "other words", "equal words", "third kind of words"])
    answers: list[Answer] = []
    for times in (2, 1):
        with program.retriever() as retriever, retriever.open("repeat", rows) as persona:
            answers += [persona.search(_query(path, rows[0], 4)) for _ in range(times)]
    if any(answer != answers[0] for answer in answers):
        raise _BrokenRuleError("one question over the same rows gave two different lists")
    ranked = answers[0].ranked
    if not {rows[0].row_id, rows[2].row_id} <= set(ranked):
        return "three times the same list"
    newest_first = ranked.index(rows[2].row_id) < ranked.index(rows[0].row_id)
    return f"three times the same list; of two equal rows the {'newer' if newest_first else 'older'} came first"


_COMMON_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("awkward texts are stored", _stores_awkward_rows),
    ("inserts may follow each other without waiting", _takes_many_batches),
    ("unknown fields are ignored", _ignores_unknown_fields),
    ("an unknown message type is refused", _refuses_unknown_type),
    ("an unknown persona is refused", _refuses_unknown_persona),
    ("a closed persona is forgotten", _forgets_closed_personas),
    ("personas stay apart", _keeps_personas_apart),
    ("a row is found by its own vector", _finds_the_same_vector),
    ("bye ends the program", _leaves_after_bye),
    ("the end of input ends the program", _leaves_at_end_of_input),
)
