"""Requests and answers in step over one child, from `hello` to `bye`.

Owns the numbering, the order, the time-outs and the rule of what ends a conversation: after an answer that is out of
step, late or missing, nothing further from that process can be trusted, so it is ended. An answer that is well formed
but wrong (type "error", an unknown id) leaves the conversation usable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever import messages
from retrieval_eval.retriever.child import Child
from retrieval_eval.retriever.messages import Batch

MAX_UNANSWERED = 8


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for the answer to one message, by its type; then what an exit may take.

    `exit_s` is the time to leave after `bye`, `term_s` the time between SIGTERM and SIGKILL.
    """

    hello_s: float = 60.0
    open_s: float = 60.0
    insert_s: float = 300.0
    search_s: float = 60.0
    close_s: float = 60.0
    exit_s: float = 5.0
    term_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise RetrieverError(f"time-out {field.name} is not above 0", got=str(getattr(self, field.name)))

    def of(self, kind: str) -> float:
        """The time-out of a message type; of `search_s` for a type that version 1 does not know."""
        seconds: float = getattr(self, f"{kind}_s", self.search_s)
        return seconds


@dataclass(slots=True)
class Request:
    """A request that was sent, and its answer once that was read. `rows` counts those of an insert."""

    kind: str
    seq: int
    where: str
    rows: int
    reply: messages.Reply | None = None


class Conversation:
    """One child and the requests that it still owes an answer.

    Every `where` names the retriever and the question; it opens the message of any `RetrieverError`.
    """

    def __init__(self, child: Child, timeouts: Timeouts) -> None:
        self._child = child
        self._timeouts = timeouts
        self._pending: deque[Request] = deque()
        self._seq = 0
        self._broken: str | None = None

    @property
    def broken(self) -> str | None:
        """Why nothing can be asked any more; None while all is well."""
        return self._broken

    def send(self, kind: str, fields: Mapping[str, object], *, where: str, batch: Batch | None = None) -> Request:
        """Send without waiting for the answer, for which `wait` does. `batch` belongs to an insert.

        Where `MAX_UNANSWERED` are under way, the oldest answer is read first.
        """
        if self._broken is not None:
            raise RetrieverError("was ended after an earlier failure", where=where, got=self._broken)
        if len(self._pending) >= MAX_UNANSWERED:
            self.receive()
        self._seq += 1
        request = Request(kind, self._seq, where, batch.count if batch else 0)
        self._pending.append(request)
        line = messages.request_line(kind, self._seq, fields, batch.rows if batch else None)
        try:
            self._child.write(line, timeout_s=self._timeouts.of(kind), where=where)
        except BaseException as error:
            self.abandon(str(error))
            raise
        return request

    def wait(self, request: Request) -> messages.Reply:
        """The answer to `request`, after those to all that were sent before it.

        Raises `RetrieverError` where it is of type "error" or has a wrong `inserted` (the stream stays in step), and
        where none can come any more.
        """
        while request.reply is None:
            if self._broken is not None:
                raise RetrieverError("was ended after an earlier failure", where=request.where, got=self._broken)
            self.receive()
        messages.check_accepted(request.reply, request.kind, request.rows, request.where)
        return request.reply

    def receive(self) -> messages.Reply:
        """The answer to the oldest unanswered request, of type "error" too."""
        oldest = self._pending.popleft()
        try:
            line = self._child.read_line(timeout_s=self._timeouts.of(oldest.kind), where=oldest.where)
            oldest.reply = messages.read_reply(line, oldest.kind, oldest.seq, oldest.where)
        except BaseException as error:
            self.abandon(str(error) or type(error).__name__)
            raise
        return oldest.reply

    def ask(self, kind: str, fields: Mapping[str, object], *, where: str) -> messages.Reply:
        """Send one request and wait for its answer."""
        return self.wait(self.send(kind, fields, where=where))

    def abandon(self, reason: str) -> None:
        """End the child without ceremony: its stream is out of step, or it has left already."""
        if self._broken is None:
            self._broken = reason
            self._pending.clear()
            self._child.end(wait_s=0.0, term_s=self._timeouts.term_s)

    def bye(self) -> int | None:
        """Say goodbye and see the child out; its exit code, or None where it had been ended before."""
        if self._broken is not None:
            return None
        try:
            self.send("bye", {}, where="")
        except RetrieverError:
            return None
        self._broken = "the conversation is over"
        self._child.end(wait_s=self._timeouts.exit_s, term_s=self._timeouts.term_s)
        return self._child.exit_code
