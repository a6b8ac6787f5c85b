"""The built-in store as a program behind the retriever protocol, for `benchmarks.protocol` to hold against itself.

    python store_program.py hybrid|hybrid-fts5

The okapi leg of `builtin:hybrid` takes terms that prep has counted, and a program gets texts; so `TextRow` counts them,
here and in the benchmark's direct calls alike.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrieval_eval.retriever.builtin import Builtin, BuiltinPersona, BuiltinRetriever
from retrieval_eval.retriever.protocol import Answer, Path, Query, Vector
from retrieval_eval.terms import TermCounts, Vocabulary

DIMS = 384
PATHS = {
    Path.SEARCH: {"needs": ["vector"]},
    Path.SEARCH_HYBRID: {"needs": ["text", "vector"]},
    Path.SEARCH_BM25: {"needs": ["text"], "may_return_fewer": True},
}


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row that has nothing but what travels: its words are counted when they are asked for."""

    row_id: str
    text: str
    vector: Vector
    vocabulary: Vocabulary

    @property
    def terms(self) -> TermCounts:
        """Counted anew at each call."""
        return self.vocabulary.count(self.text)


@dataclass(slots=True)
class Opened:
    """A persona: its rows until the first search, then the store that holds them."""

    rows: list[TextRow] = field(default_factory=list)
    held: ExitStack = field(default_factory=ExitStack)
    store: BuiltinPersona | None = None


class Program:
    """Answers one request after another."""

    def __init__(self, builtin: Builtin) -> None:
        self._vocabulary = Vocabulary()
        self._retriever = BuiltinRetriever(builtin, self._vocabulary, DIMS)
        self._personas: dict[str, Opened] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The fields of the answer, but for `type` and `seq`."""
        kind = request["type"]
        if kind == "hello":
            return {"version": 1, "name": "built-in store", "paths": PATHS, "personas": 8}
        persona = request["persona"]
        if kind == "open":
            self._personas[persona] = Opened()
            return {}
        opened = self._personas[persona]
        if kind == "insert":
            rows = [TextRow(row["id"], row["text"], _vector(row), self._vocabulary) for row in request["rows"]]
            opened.rows += rows
            return {"inserted": len(rows)}
        if kind == "search":
            return _found(self._search(persona, opened, request))
        opened.held.close()
        del self._personas[persona]
        return {}

    def _search(self, persona: str, opened: Opened, request: dict[str, Any]) -> Answer:
        if opened.store is None:
            opened.store = opened.held.enter_context(self._retriever.open(persona, opened.rows))
        vector = _vector(request) if "vector" in request else None
        return opened.store.search(Query(persona, Path(request["path"]), request["limit"], request.get("text"), vector))


def _vector(message: dict[str, Any]) -> Vector:
    return np.frombuffer(b64decode(message["vector"]), dtype="<f4")


def _found(answer: Answer) -> dict[str, Any]:
    scores = [score for _, score in answer.scored[: len(answer.ranked)]]
    return {"ids": answer.ranked, "scores": scores, "legs": answer.legs}


def main() -> None:
    program = Program(Builtin(sys.argv[1]))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["type"] == "bye":
            break
        reply = {"type": request["type"], "seq": request["seq"], **program.answer(request)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
