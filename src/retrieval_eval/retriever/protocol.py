"""What is measured, seen from the lanes: a retriever opens a persona and answers searches in it.

Owns the interface only. `builtin.py` is the reference store behind it, `process.py` a program of the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrieval_eval.terms import TermCounts

Vector = npt.NDArray[np.float32]
"""One embedding: shape (dims,), float32, L2-normalised (all zeros for an empty text)."""


class Path(StrEnum):
    """What a lane calls, by vipune's names."""

    SEARCH_HYBRID = "search_hybrid"
    SEARCH = "search"
    SEARCH_BM25 = "search_bm25"


class Need(StrEnum):
    """A part of a query that a path may need."""

    TEXT = "text"
    VECTOR = "vector"


class Leg(StrEnum):
    """A half of the hybrid path."""

    SEMANTIC = "semantic"
    BM25 = "bm25"


class Row(Protocol):
    """One session as it is stored. Text and terms are decompressed when they are asked for."""

    @property
    def row_id(self) -> str:
        """32 hex digits that carry neither label nor session id."""
        ...

    @property
    def text(self) -> str:
        """The session's whole text."""
        ...

    @property
    def vector(self) -> Vector:
        """The cached embedding of `text`."""
        ...

    @property
    def terms(self) -> TermCounts:
        """The counts of the words of `text`, numbered by the cache's vocabulary."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """One question for one path.

    The model-dependent lane hands over text and a vector made in this run; the model-free lane the cached vector alone.
    """

    question_id: str
    path: Path
    limit: int
    text: str | None
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A ranked list of row ids, best first, at most `Query.limit` long and free of repeats.

    `legs` holds, where the retriever shows them, the ranked lists that were fused (as deep as the candidate pool).
    `scored`, where it shows that, is the list with scores that `ranked` is the start of, as deep as there are any.
    """

    ranked: tuple[str, ...]
    legs: Mapping[Leg, tuple[str, ...]] = field(default_factory=dict)
    scored: tuple[tuple[str, float], ...] = ()


class Persona(Protocol):
    """An opened haystack."""

    def search(self, query: Query) -> Answer:
        """Answer one query. Raises `RetrieverError` where the retriever cannot."""
        ...


class Retriever(Protocol):
    """Something that stores rows and searches them, one persona at a time."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    @property
    def paths(self) -> Mapping[Path, frozenset[Need]]:
        """The paths that it answers, and which parts of a query each of them cannot do without."""
        ...

    def facts(self, limit: int) -> Mapping[str, str | int]:
        """Lines for the report's definition card: whatever a reader must know of searches with this limit."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """What a reader must know after the run: plain sentences for the report's warnings."""
        ...

    def open(self, persona_id: str, rows: Iterable[Row]) -> AbstractContextManager[Persona]:
        """Store `rows`, in order, for one persona; leaving the context forgets them. Raises `RetrieverError`."""
        ...
