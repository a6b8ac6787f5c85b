"""vipune's `Database` and `MemoryStore.search_hybrid` over one throwaway SQLite file.

Owns rows, the two legs and their fusion. It embeds nothing, knows no gold and no session ids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrieval_eval.errors import RetrieverError
from retrieval_eval.store import fts
from retrieval_eval.store.cosine import cosines
from retrieval_eval.store.limits import candidate_pool, check_limit, check_query
from retrieval_eval.store.okapi import OkapiIndex
from retrieval_eval.store.rrf import fuse
from retrieval_eval.terms import TermCounts, Vocabulary

Hit = tuple[str, float]
"""A row id and its score."""

_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
CREATE TABLE memories(
    id TEXT PRIMARY KEY, content TEXT NOT NULL, embedding BLOB NOT NULL, created_at INTEGER NOT NULL);
"""


class LexicalLeg(StrEnum):
    """How the BM25 leg is made."""

    OKAPI = "okapi"
    FTS5 = "fts5"


class Database:
    """Rows of one persona: insert, search by vector, search by words. Close it to forget them.

    The `fts5` leg indexes each row's text; the `okapi` leg takes the text's term counts, numbered by `vocabulary`.
    """

    def __init__(self, file: Path, dims: int, vocabulary: Vocabulary | None = None) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.executescript(_SCHEMA)
        self._dims, self._vocabulary = dims, vocabulary
        self._ids: list[str] = []
        self._terms: list[TermCounts] = []
        self._okapi: OkapiIndex | None = None
        self._scan: tuple[list[str], npt.NDArray[np.float32]] | None = None
        if vocabulary is None:
            self._connection.executescript(fts.SCHEMA)
        self._connection.execute("BEGIN")

    @property
    def lexical_leg(self) -> LexicalLeg:
        """Which BM25 leg this store has."""
        return LexicalLeg.FTS5 if self._vocabulary is None else LexicalLeg.OKAPI

    def insert(self, row_id: str, content: str | TermCounts, vector: npt.NDArray[np.float32]) -> None:
        """Add a row; `content` is the text for `fts5`, its term counts for `okapi`. Each row is a second newer.

        Raises `RetrieverError` where the vector has another length than `dims` or is not finite, or the id is taken;
        TypeError where `content` is the other leg's.
        """
        if isinstance(content, str) is not (self.lexical_leg is LexicalLeg.FTS5):
            raise TypeError(f"{type(content).__name__} for the {self.lexical_leg} leg")
        if vector.shape != (self._dims,) or not np.isfinite(vector).all():
            raise RetrieverError(
                "vector of a row", where=row_id, got=f"shape {vector.shape}", expected=f"{self._dims} finite numbers"
            )
        text = content if isinstance(content, str) else ""
        blob = vector.astype("<f4", copy=False).tobytes()
        try:
            self._connection.execute("INSERT INTO memories VALUES (?, ?, ?, ?)", (row_id, text, blob, len(self._ids)))
        except sqlite3.IntegrityError as error:
            raise RetrieverError("row id is taken", where=row_id) from error
        self._ids.append(row_id)
        if isinstance(content, TermCounts):
            self._terms.append(content)
        self._scan = self._okapi = None

    def search(self, vector: npt.NDArray[np.float32], limit: int) -> list[Hit]:
        """Rows by cosine, best first, equal cosines newest first. No threshold: negative ones are returned too.

        Raises `RetrieverError` for a bad limit, and for a vector of another length or not finite where there are rows.
        """
        check_limit(limit)
        ids, rows = self._vectors()
        if not ids:
            return []
        if vector.shape != (self._dims,) or not np.isfinite(vector).all():
            raise RetrieverError("query vector", got=f"shape {vector.shape}", expected=f"{self._dims} finite numbers")
        scores = cosines(vector, rows)
        order = np.argsort(-scores, kind="stable")[:limit]
        return [(ids[position], float(scores[position])) for position in order]

    def search_bm25(self, query: str, limit: int) -> list[Hit]:
        """Rows by BM25, best first, equal scores oldest first; `fts5` scores are negative."""
        check_limit(limit)
        if self._vocabulary is None:
            return fts.search(self._connection, query, limit)
        if self._okapi is None:
            self._okapi = OkapiIndex(self._terms, self._vocabulary)
        positions, scores = self._okapi.search(query)
        return [(self._ids[p], float(s)) for p, s in zip(positions[:limit], scores[:limit], strict=True)]

    def _vectors(self) -> tuple[list[str], npt.NDArray[np.float32]]:
        """All ids, newest first, and their vectors float32 (n, dims)."""
        if self._scan is None:
            rows = self._connection.execute(
                "SELECT id, embedding FROM memories ORDER BY created_at DESC, rowid"
            ).fetchall()
            matrix = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f4").reshape(-1, self._dims)
            self._scan = [row_id for row_id, _ in rows], matrix
        return self._scan

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class HybridResult:
    """`fused`: all candidates with their fused scores, best first. `semantic` and `bm25`: the lists that were fused."""

    fused: list[Hit]
    semantic: list[Hit]
    bm25: list[Hit]


class MemoryStore:
    """vipune's hybrid search at recency weight 0."""

    def __init__(self, database: Database, embed_query: Callable[[str], npt.NDArray[np.float32]]) -> None:
        self._database, self._embed_query = database, embed_query

    def search_hybrid(self, query: str, limit: int) -> HybridResult:
        """Trim and check the query, check the limit, embed, search both legs over the candidate pool, fuse.

        The caller takes the first `limit` of `fused`. An empty BM25 leg leaves the semantic order as it is.
        """
        trimmed = check_query(query)
        check_limit(limit)
        pool = candidate_pool(limit)
        semantic = self._database.search(self._embed_query(trimmed), pool)
        bm25 = self._database.search_bm25(trimmed, pool)
        return HybridResult(fuse([[row_id for row_id, _ in leg] for leg in (semantic, bm25)]), semantic, bm25)
