"""The reference store as a retriever: one throwaway database per persona."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path as FilePath

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever.protocol import Answer, Leg, Need, Path, Query, Row, Vector
from retrieval_eval.store.database import Database, Hit, MemoryStore
from retrieval_eval.store.limits import candidate_pool, check_limit
from retrieval_eval.store.rrf import RRF_K
from retrieval_eval.terms import Vocabulary


class Builtin(StrEnum):
    """The names behind `builtin:`."""

    HYBRID = "hybrid"
    HYBRID_FTS5 = "hybrid-fts5"
    SEMANTIC = "semantic"
    BM25 = "bm25"


_NEEDS = {
    Path.SEARCH_HYBRID: frozenset(Need),
    Path.SEARCH: frozenset({Need.VECTOR}),
    Path.SEARCH_BM25: frozenset({Need.TEXT}),
}
_PATHS: dict[Builtin, tuple[Path, ...]] = {
    Builtin.HYBRID: (Path.SEARCH_HYBRID, Path.SEARCH, Path.SEARCH_BM25),
    Builtin.HYBRID_FTS5: (Path.SEARCH_HYBRID, Path.SEARCH, Path.SEARCH_BM25),
    Builtin.SEMANTIC: (Path.SEARCH,),
    Builtin.BM25: (Path.SEARCH_BM25,),
}


class BuiltinRetriever:
    """`builtin:…`. The `okapi` leg works on the terms that prep counted, `fts5` on the texts themselves."""

    def __init__(self, builtin: Builtin, vocabulary: Vocabulary, dims: int) -> None:
        self._builtin, self._vocabulary, self._dims = builtin, vocabulary, dims

    @property
    def name(self) -> str:
        """`builtin:` and its name."""
        return f"builtin:{self._builtin}"

    @property
    def paths(self) -> Mapping[Path, frozenset[Need]]:
        """The paths that it answers, and what of a query each needs."""
        return {path: _NEEDS[path] for path in _PATHS[self._builtin]}

    def facts(self, limit: int) -> Mapping[str, str | int]:
        """Legs, fusion and tie rules, as far as this store has them."""
        lexical: dict[str, str | int] = {"lexical_leg": "fts5" if self._builtin is Builtin.HYBRID_FTS5 else "okapi"}
        fusion: dict[str, str | int] = {
            "fusion": f"RRF k={RRF_K}, semantic first",
            "candidate_pool": candidate_pool(limit),
            "recency_weight": 0,
        }
        return {
            **({} if self._builtin is Builtin.SEMANTIC else lexical),
            **(fusion if Path.SEARCH_HYBRID in self.paths else {}),
            "ties": "equal cosine: newest first; equal BM25: oldest first; equal fused score: row id (a hash)",
        }

    def remarks(self) -> tuple[str, ...]:
        """Nothing: this store neither restarts nor leaves anything out."""
        return ()

    @contextmanager
    def open(self, persona_id: str, rows: Iterable[Row]) -> Iterator[BuiltinPersona]:  # noqa: ARG002 - a database each
        """Insert the rows, in order, into a database of their own."""
        is_fts5 = self._builtin is Builtin.HYBRID_FTS5
        with tempfile.TemporaryDirectory(prefix="retrieval-eval-") as folder:
            database = Database(FilePath(folder) / "persona.sqlite", self._dims, None if is_fts5 else self._vocabulary)
            try:
                for row in rows:
                    database.insert(row.row_id, row.text if is_fts5 else row.terms, row.vector)
                yield BuiltinPersona(database)
            finally:
                database.close()


class BuiltinPersona:
    """One persona's database behind the three paths."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, query: Query) -> Answer:
        """Answer one query; every list is searched as deep as the candidate pool and cut at the limit."""
        if query.path is Path.SEARCH_HYBRID:
            found = MemoryStore(self._database, lambda _: _vector(query)).search_hybrid(_text(query), query.limit)
            return _answer(found.fused, query.limit, {Leg.SEMANTIC: _ids(found.semantic), Leg.BM25: _ids(found.bm25)})
        check_limit(query.limit)
        pool = candidate_pool(query.limit)
        if query.path is Path.SEARCH:
            return _answer(self._database.search(_vector(query), pool), query.limit, {})
        return _answer(self._database.search_bm25(_text(query), pool), query.limit, {})


def _answer(hits: list[Hit], limit: int, legs: dict[Leg, tuple[str, ...]]) -> Answer:
    return Answer(_ids(hits[:limit]), legs, tuple(hits))


def _ids(hits: list[Hit]) -> tuple[str, ...]:
    return tuple(row_id for row_id, _ in hits)


def _vector(query: Query) -> Vector:
    if query.vector is None:
        raise RetrieverError("needs a query vector", where=f"path {query.path}, question {query.question_id!r}")
    return query.vector


def _text(query: Query) -> str:
    if query.text is None:
        raise RetrieverError("needs the question's text", where=f"path {query.path}, question {query.question_id!r}")
    return query.text
