"""A program of the user's behind the retriever protocol.

Owns the life of the program over a whole run: start, personas one after another or several at once, restart after a
failure, end. What a persona asks is `persona.py`, what a message looks like `messages.py`, how it travels
`conversation.py` and `child.py`. It scores nothing and never lets a wrong answer pass: every fault is a
`RetrieverError` that names the retriever and the question, and the next persona can be opened after it.
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever import messages
from retrieval_eval.retriever.child import Child
from retrieval_eval.retriever.conversation import Conversation, Request, Timeouts
from retrieval_eval.retriever.messages import Hello, SentRow, Source
from retrieval_eval.retriever.persona import ExternalPersona
from retrieval_eval.retriever.protocol import Need, Path, Query

MAX_FAILURES_IN_A_ROW = 3

PERSONAS_IN_FLIGHT = 4
"""At most, where the program takes as many; `conversation.MAX_UNANSWERED` mostly holds it to two or three."""

_LOG = logging.getLogger(__name__)
_STDERR_LOG = logging.getLogger("retrieval_eval.retriever.stderr")
"""What the program writes on stderr: shown by default, unlike the rest of what is logged below a warning."""
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
        self._ahead: dict[str, ExternalPersona] = {}
        self._closing: deque[Request] = deque()
        self._has_ended_with_several = False
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
    def paths(self) -> Mapping[Path, frozenset[Need]]:
        """The paths that the program answers, and what of a query each needs."""
        return {path: support.needs for path, support in self.hello.paths.items()}

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

    @property
    def at_once(self) -> int:
        """How many personas to have under way: 1 where the program takes no more, and once it ended with several."""
        return 1 if self._has_ended_with_several else min(self.hello.personas, PERSONAS_IN_FLIGHT)

    def remarks(self) -> tuple[str, ...]:
        """Restarts, and lists that were short because the path may return fewer."""
        restarts = [f"had to be started {self.starts} times"] if self.starts > 1 else []
        alone = ["ended while it held several questions, and got one at a time from then on"]
        short = [
            f"returned fewer ids than asked for in {count} answers of {path}, as it says it may"
            for path, count in self.short_answers.items()
        ]
        parts = [*restarts, *(alone if self._has_ended_with_several else []), *short]
        return tuple(f"the retriever {self.name} {part}" for part in parts)

    def send_ahead(self, persona_id: str, rows: Iterable[SentRow], queries: Iterable[Query]) -> None:
        """Send a persona and its searches, so that `open` and `search` find their answers under way.

        Its failure is kept for `open`, which then sends the persona again. Where the program ends while personas sent
        ahead are under way, nobody knows whose fault that is: all of them are forgotten, and `at_once` falls to 1.
        """
        try:
            persona = self._new_persona(persona_id)
            self._ahead[persona_id] = persona
            persona.send_rows(rows)
            for query in queries:
                persona.send_search(query)
        except RetrieverError as error:
            _LOG.debug("not sent ahead: %s", error)
            if self._conversation is not None and self._conversation.broken is not None:
                self._take_stock(self._conversation)

    @contextmanager
    def open(self, persona_id: str, rows: Iterable[SentRow]) -> Iterator[ExternalPersona]:
        """Store `rows` for one persona. The error of a failed `close` is logged, not raised: the answers stand."""
        persona = self._ahead.pop(persona_id, None)
        is_sent = persona is not None
        persona = persona or self._new_persona(persona_id)
        try:
            if not is_sent:
                persona.send_rows(rows)
            persona.settle()
            yield persona
        finally:
            self._open -= 1
            if persona.is_accepted and persona.conversation.broken is None:
                self._close(persona)
            self._take_stock(persona.conversation)

    def _new_persona(self, persona_id: str) -> ExternalPersona:
        where = self._where(persona_id)
        conversation = self._running(where)
        if self._open >= self.hello.personas:
            raise RetrieverError("too many personas open", where=where, expected=f"at most {self.hello.personas}")
        self._open += 1
        return ExternalPersona(conversation, self.hello, persona_id, self.short_answers)

    def _close(self, persona: ExternalPersona) -> None:
        """Send `close`; wait for its answer, and those of earlier ones, once nothing else is under way."""
        try:
            self._closing.append(persona.send_close())
            while self._closing and (self._closing[0].reply is not None or not self._ahead):
                persona.conversation.wait(self._closing.popleft())
        except RetrieverError as error:
            _LOG.warning("%s; the program is ended", error)
            persona.conversation.abandon(str(error))

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
        try:
            child = Child(self._command, env=self._env, log=self._log, max_line_bytes=messages.MAX_ANSWER_BYTES)
            self.starts += 1
            conversation = Conversation(child, self._timeouts)
            hello = messages.read_hello(conversation.ask("hello", messages.GREETING, where=where), where)
            if self._hello is not None and hello != self._hello:
                raise RetrieverError("says something else of itself after a restart", where=where, got=repr(hello))
        except BaseException as error:
            if conversation is not None:
                conversation.abandon(str(error))
            self._failed(str(error))
            raise
        self._hello, self._conversation = hello, conversation
        return conversation

    def _take_stock(self, conversation: Conversation) -> None:
        if conversation.broken is None:
            self._failures_in_a_row = 0
        elif conversation is self._conversation and self._ahead:
            self._has_ended_with_several = True
            self._open -= len(self._ahead)
            self._ahead.clear()
            self._forget()
        elif conversation is self._conversation:
            self._failed(conversation.broken)

    def _failed(self, reason: str) -> None:
        self._failures_in_a_row += 1
        self._last_failure = reason
        self._forget()

    def _forget(self) -> None:
        self._conversation = None
        self._closing.clear()

    def _where(self, question_id: str) -> str:
        return f"retriever {self.name!r}, question {question_id!r}"


def _log_line(line: str) -> None:
    _STDERR_LOG.info("retriever: %s", line)
