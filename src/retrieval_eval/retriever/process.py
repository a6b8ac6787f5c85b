"""A program of the user's behind the retriever protocol.

Owns the life of the program over a whole run: start, one persona after another, restart after a failure, end. What a
message looks like is `messages.py`, how it travels `conversation.py` and `child.py`. It scores nothing and never lets
a wrong answer pass: every fault is a `RetrieverError` that names the retriever and the question, and the next persona
can be opened after it.
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever import messages
from retrieval_eval.retriever.child import Child
from retrieval_eval.retriever.conversation import Conversation, Timeouts
from retrieval_eval.retriever.messages import Hello, SentRow, Source
from retrieval_eval.retriever.protocol import Answer, Path, Query

MAX_FAILURES_IN_A_ROW = 3

_LOG = logging.getLogger(__name__)
_OWNERS = {Source.GIVEN: "given to the retriever", Source.OWN: "made by the retriever"}
_SECRET_PREFIXES = ("INPUT_", "ACTIONS_", "GITHUB_TOKEN", "GH_TOKEN")
_RUNNER_FILES = frozenset({"GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"})


def split_command(spec: str) -> tuple[str, ...]:
    """The arguments of a command line, by POSIX shell quoting; no shell ever runs it."""
    try:
        command = tuple(shlex.split(spec))
    except ValueError as error:
        raise RetrieverError("command line cannot be split", got=spec, expected="balanced quotes") from error
    if not command or not command[0]:
        raise RetrieverError("command line is empty", got=repr(spec), expected="a program and its arguments")
    return command


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the action's inputs, tokens and runner files: the measured program has no use for them.

    Hygiene, not a sandbox: the program runs as the same user.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(_SECRET_PREFIXES) and name not in _RUNNER_FILES
    }


class ExternalRetriever:
    """The program, running from `__enter__` to `__exit__`. Implements `Retriever`.

    A failed persona costs itself only: the program is started again for the next one where it had to be ended. After
    `MAX_FAILURES_IN_A_ROW` personas that ended the program with none between them that went well, `open` fails at
    once (`has_given_up`). `log` receives every line of its stderr, which is text from a stranger.
    One thread; for several personas in parallel use several retrievers.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        timeouts: Timeouts | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        if not command:
            raise RetrieverError("command line is empty", expected="a program and its arguments")
        self._command = tuple(command)
        self._env = env
        self._timeouts = timeouts or Timeouts()
        self._log = log or _log_line
        self._conversation: Conversation | None = None
        self._hello: Hello | None = None
        self._open = 0
        self._failures_in_a_row = 0
        self._last_failure = ""
        self.starts = 0
        """How often the program was started; 1 after a run without failures."""
        self.short_answers: Counter[Path] = Counter()
        """Answers shorter than min(limit, rows), by path, from paths that declared `may_return_fewer`."""

    def __enter__(self) -> Self:
        """Start the program and shake hands. Raises `RetrieverError`: then nothing can be measured."""
        self._start(f"retriever {self._command[0]!r}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the program and its children, with `bye` unless an exception is on its way."""
        if self._conversation is None:
            return
        if kind is None:
            self._conversation.bye()
        else:
            self._conversation.abandon("interrupted")
        self._conversation = None

    @property
    def hello(self) -> Hello:
        """What the program said of itself at its first start."""
        if self._hello is None:
            raise RuntimeError("not started: use it as a context manager")
        return self._hello

    @property
    def name(self) -> str:
        """The name that the program gives itself."""
        return self.hello.name

    @property
    def paths(self) -> Collection[Path]:
        """The paths that the program answers."""
        return self.hello.paths

    def facts(self, limit: int) -> Mapping[str, str | int]:  # noqa: ARG002 - the program's own affair
        """Whose vectors are searched; ties are the program's own affair."""
        return {
            "retriever_protocol": self.hello.version,
            "row_vectors": _OWNERS[self.hello.row_vectors],
            "query_vectors": _OWNERS[self.hello.query_vectors],
            "ties": "the retriever's own rule",
        }

    @property
    def has_given_up(self) -> bool:
        """Whether `open` fails at once from now on."""
        return self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW

    @contextmanager
    def open(self, persona_id: str, rows: Iterable[SentRow]) -> Iterator[ExternalPersona]:
        """Store `rows` for one persona. The error of a failed `close` is logged, not raised: the answers stand."""
        where = self._where(persona_id)
        conversation = self._running(where)
        if self._open >= self.hello.personas:
            raise RetrieverError("too many personas open", where=where, expected=f"at most {self.hello.personas}")
        self._open += 1
        is_accepted = False
        try:
            conversation.ask("open", {"persona": persona_id}, where=where)
            is_accepted = True
            known = self._insert(conversation, persona_id, rows, where)
            yield ExternalPersona(self, conversation, persona_id, known)
        finally:
            self._open -= 1
            if is_accepted and conversation.broken is None:
                _close(conversation, persona_id, where)
            self._take_stock(conversation)

    def _running(self, where: str) -> Conversation:
        if self.has_given_up:
            raise RetrieverError(
                f"given up after {self._failures_in_a_row} failures in a row", where=where, got=self._last_failure
            )
        if self._conversation is not None and self._conversation.broken is None:
            return self._conversation
        return self._start(where)

    def _start(self, where: str) -> Conversation:
        conversation: Conversation | None = None
        greeting = {"versions": [messages.PROTOCOL_VERSION], "harness": "retrieval-eval"}
        try:
            child = Child(self._command, env=self._env, log=self._log, max_line_bytes=messages.MAX_ANSWER_BYTES)
            self.starts += 1
            conversation = Conversation(child, self._timeouts)
            hello = messages.read_hello(conversation.ask("hello", greeting, where=where), where)
            if self._hello is not None and hello != self._hello:
                raise RetrieverError("says something else of itself after a restart", where=where, got=repr(hello))
        except BaseException as error:
            if conversation is not None:
                conversation.abandon(str(error))
            self._failed(str(error))
            raise
        self._hello, self._conversation = hello, conversation
        return conversation

    def _insert(
        self, conversation: Conversation, persona_id: str, rows: Iterable[SentRow], where: str
    ) -> frozenset[str]:
        """Send all batches without waiting in between; the ids of all rows."""
        known: list[str] = []

        def noted() -> Iterator[SentRow]:
            for row in rows:
                known.append(row.row_id)
                yield row

        with_vectors = self.hello.row_vectors is Source.GIVEN
        for batch in messages.batches(noted(), with_vectors=with_vectors):
            conversation.send("insert", {"persona": persona_id}, where=where, batch=batch)
        conversation.settle()
        return frozenset(known)

    def _take_stock(self, conversation: Conversation) -> None:
        if conversation.broken is None:
            self._failures_in_a_row = 0
        elif conversation is self._conversation:
            self._failed(conversation.broken)

    def _failed(self, reason: str) -> None:
        self._failures_in_a_row += 1
        self._last_failure = reason
        self._conversation = None

    def _where(self, question_id: str) -> str:
        return f"retriever {self.name!r}, question {question_id!r}"


class ExternalPersona:
    """An opened haystack in the program. Implements `Persona`."""

    def __init__(
        self, retriever: ExternalRetriever, conversation: Conversation, persona_id: str, known: frozenset[str]
    ) -> None:
        self._retriever = retriever
        self._conversation = conversation
        self._persona_id = persona_id
        self._known = known

    def search(self, query: Query) -> Answer:
        """Ask the program. Raises `RetrieverError` for whatever is wrong with the answer, or where none comes.

        A list shorter than min(limit, rows) is an error, unless the program declared for this path that it drops weak
        matches by design; then it is counted in `short_answers`.
        """
        where = f"retriever {self._retriever.name!r}, question {query.question_id!r}"
        support = self._retriever.hello.paths.get(query.path)
        if support is None:
            raise RetrieverError(f"does not offer the path {query.path}", where=where)
        request: dict[str, object] = {"persona": self._persona_id, "path": query.path, "limit": query.limit}
        if query.text is not None:
            request["text"] = messages.clean_text(query.text)
        if query.vector is not None:
            request["vector"] = messages.encode_vector(query.vector)
        lacking = sorted(support.needs - request.keys())
        if lacking:
            raise RetrieverError(f"path {query.path} needs a {lacking[0]}, which this lane has not", where=where)
        answer = messages.read_answer(
            self._conversation.ask("search", request, where=where), query.limit, self._known, where
        )
        wanted = min(query.limit, len(self._known))
        if len(answer.ranked) < wanted:
            if not support.may_return_fewer:
                raise RetrieverError(
                    "search: too few ids",
                    where=where,
                    got=str(len(answer.ranked)),
                    expected=f"{wanted}: limit {query.limit}, {len(self._known)} rows",
                    hint=f'if that is meant, let hello say "may_return_fewer": true for {query.path}',
                )
            self._retriever.short_answers[query.path] += 1
        return answer


def _close(conversation: Conversation, persona_id: str, where: str) -> None:
    try:
        conversation.ask("close", {"persona": persona_id}, where=where)
    except RetrieverError as error:
        _LOG.warning("%s; the program is ended", error)
        conversation.abandon(str(error))


def _log_line(line: str) -> None:
    _LOG.info("retriever: %s", line)
