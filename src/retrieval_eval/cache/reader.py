"""Reading a finished embedding cache: all that run needs. Never writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrieval_eval.cache import records
from retrieval_eval.cache.connection import CacheFile
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.records import StoredPair
from retrieval_eval.embedding.embedder import ModelIdentity
from retrieval_eval.errors import CacheError
from retrieval_eval.terms import TermCounts


def row_id(question_id: str, session_id: str) -> str:
    """32 hex digits that stand for a session in the store: neither the label nor the session's id can leak through."""
    return hashlib.sha256(f"{question_id}\n{session_id}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One session of a persona; its text is read, and its terms are decompressed, when they are asked for."""

    session_id: str
    row_id: str
    vector: npt.NDArray[np.float32]
    packed_terms: bytes
    text_id: int
    cache: CacheReader

    @property
    def text(self) -> str:
        """The session's whole text."""
        return self.cache.text(self.text_id)

    @property
    def terms(self) -> TermCounts:
        """The counts of its words, numbered by `CacheReader.vocabulary`."""
        with self.cache.decoded():
            return records.unpack_terms(self.packed_terms)


_ROWS = """
SELECT text.id, vector.vector, text.terms FROM text JOIN vector ON vector.text = text.id
WHERE text.id IN (SELECT value FROM json_each(?))
"""


class CacheReader(CacheFile):
    """A finished cache, open for reading.

    Raises `CacheError`, naming the file, wherever it is missing, unfinished, foreign, cut or damaged.
    """

    def __init__(self, folder: Path, *, is_checked: bool = False) -> None:
        """Open it. `is_checked`: this run has held the whole file against its manifest before (1 to 2 s a GB)."""
        super().__init__(folder)
        self._open_readonly(is_checked=is_checked)
        try:
            self._load()
        except BaseException:
            self._connection.close()
            raise

    def _load(self) -> None:
        self._check_tables()
        with self.decoded():
            self.identity = ModelIdentity(**self.meta("identity"))
            dataset = self.meta("dataset")
        self.pairs = tuple(self.stored_pairs())
        self._check_is_no_shard()
        self._check_complete()
        self.manifest = Manifest.read(self.folder)
        if dataset is None or self.manifest.fingerprint != self.identity.fingerprint:
            raise CacheError(
                "and its manifest do not belong together", where=f"embedding cache {self.folder}", hint="run prep again"
            )
        self.dataset: Mapping[str, Any] = dataset

    def _check_is_no_shard(self) -> None:
        note = self.shard_note()
        if note is not None:
            raise CacheError(
                f"is incomplete: it is shard {note.shard} alone",
                where=f"embedding cache {self.folder}",
                hint="unite the shards first: retrieval-eval merge OUT DIR…",
            )

    def _check_complete(self) -> None:
        where = f"embedding cache {self.folder}"
        if not self.pairs:
            raise CacheError("holds no questions", where=where, hint="run prep with a data file")
        done = self.with_vector()
        whole = sum(done.issuperset(pair.session_texts) and pair.question_text in done for pair in self.pairs)
        if whole < len(self.pairs):
            raise CacheError(
                f"is incomplete: {whole} of {len(self.pairs)} questions are embedded",
                where=where,
                hint="run prep again, it goes on where it stopped",
            )

    def vector(self, number: int) -> npt.NDArray[np.float32]:
        """The vector of the text of this number: float32 (dims,)."""
        with self.decoded():
            blob = self.value("SELECT vector FROM vector WHERE text = ?", number)
            return records.unpack_vector(blob, self.identity.dims)

    def rows(self, stored: StoredPair) -> list[StoredRow]:
        """The persona's rows, in the order of the file, read in one go."""
        question, found = stored.pair.question_id, {}
        with self.decoded():
            for number, vector, terms in self._connection.execute(_ROWS, (json.dumps(stored.session_texts),)):
                found[number] = records.unpack_vector(vector, self.identity.dims), terms
            return [
                StoredRow(session_id, row_id(question, session_id), *found[number], number, self)
                for session_id, number in zip(stored.session_ids, stored.session_texts, strict=True)
            ]

    def truncated_sessions(self) -> int:
        """How many distinct sessions of the current pairs were cut at the model's most tokens."""
        sessions = {number for pair in self.pairs for number in pair.session_texts}
        with self.decoded():
            cut = self._connection.execute("SELECT text FROM vector WHERE is_truncated")
            return sum(number in sessions for (number,) in cut)
