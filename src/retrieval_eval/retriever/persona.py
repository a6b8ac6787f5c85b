"""One persona in a program of the user's: its rows and searches, sent at once and answered later.

Owns which requests a persona makes and whether their answers are complete. Whose failure ends the program, and what
then, is `process.py`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever import messages
from retrieval_eval.retriever.conversation import Conversation, Request
from retrieval_eval.retriever.messages import Hello, SentRow, Source
from retrieval_eval.retriever.protocol import Answer, Path, Query


class ExternalPersona:
    """A haystack in the program. Implements `Persona`.

    `short_answers` counts, by path, the lists that were shorter than min(limit, rows) where that is allowed.
    """

    def __init__(self, conversation: Conversation, hello: Hello, persona_id: str, short_answers: Counter[Path]) -> None:
        self.conversation = conversation
        self._hello, self._persona_id, self._short_answers = hello, persona_id, short_answers
        self._where = f"retriever {hello.name!r}, question {persona_id!r}"
        self._sent: list[Request] = []
        self._searches: list[tuple[dict[str, object], Request]] = []
        self._known: set[str] = set()

    def send_rows(self, rows: Iterable[SentRow]) -> None:
        """Send `open` and all rows in their order; `settle` waits for the answers."""
        self._sent.append(self._send("open"))
        for batch in messages.batches(self._noted(rows), with_vectors=self._hello.row_vectors is Source.GIVEN):
            self._sent.append(self._send("insert", batch))

    def settle(self) -> None:
        """Wait until the rows are stored. Raises `RetrieverError` for the first request that was refused."""
        for request in self._sent:
            self.conversation.wait(request)

    @property
    def is_accepted(self) -> bool:
        """Whether the program opened it, and so has to be told to close it; waits for that answer."""
        try:
            return bool(self._sent and self.conversation.wait(self._sent[0]))
        except RetrieverError:
            return False

    def send_close(self) -> Request:
        """Tell the program to forget it."""
        return self._send("close")

    def send_search(self, query: Query) -> None:
        """Send a query that `search` will ask for later."""
        fields = self._fields(query)
        self._searches.append((fields, self.conversation.send("search", fields, where=self._where_of(query))))

    def search(self, query: Query) -> Answer:
        """Ask the program, or take the answer to what was sent before.

        Raises `RetrieverError` for whatever is wrong with the answer, or where none comes. A list shorter than
        min(limit, rows) is an error, unless the program declared for this path that it drops weak matches by design.
        """
        where, fields = self._where_of(query), self._fields(query)
        request = self._taken(fields) or self.conversation.send("search", fields, where=where)
        reply = self.conversation.wait(request)
        answer = messages.read_answer(reply, query.limit, self._known, where)
        wanted = min(query.limit, len(self._known))
        if len(answer.ranked) < wanted:
            if not self._hello.paths[query.path].may_return_fewer:
                raise RetrieverError(
                    "search: too few ids",
                    where=where,
                    got=str(len(answer.ranked)),
                    expected=f"{wanted}: limit {query.limit}, {len(self._known)} rows",
                    hint=f'if that is meant, let hello say "may_return_fewer": true for {query.path}',
                )
            self._short_answers[query.path] += 1
        return answer

    def _taken(self, fields: dict[str, object]) -> Request | None:
        for number, (sent, request) in enumerate(self._searches):
            if sent == fields:
                del self._searches[number]
                return request
        return None

    def _fields(self, query: Query) -> dict[str, object]:
        """What a search message holds. Raises `RetrieverError` where the program cannot be asked this."""
        where, support = self._where_of(query), self._hello.paths.get(query.path)
        if support is None:
            raise RetrieverError(f"does not offer the path {query.path}", where=where)
        fields: dict[str, object] = {"persona": self._persona_id, "path": query.path, "limit": query.limit}
        if query.text is not None:
            fields["text"] = messages.clean_text(query.text)
        if query.vector is not None:
            fields["vector"] = messages.encode_vector(query.vector)
        lacking = sorted(support.needs - fields.keys())
        if lacking:
            raise RetrieverError(f"path {query.path} needs a {lacking[0]}, which this lane has not", where=where)
        return fields

    def _noted(self, rows: Iterable[SentRow]) -> Iterator[SentRow]:
        for row in rows:
            self._known.add(row.row_id)
            yield row

    def _send(self, kind: str, batch: messages.Batch | None = None) -> Request:
        return self.conversation.send(kind, {"persona": self._persona_id}, where=self._where, batch=batch)

    def _where_of(self, query: Query) -> str:
        return f"retriever {self._hello.name!r}, question {query.question_id!r}"
