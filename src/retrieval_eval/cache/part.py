"""A cache as a source of vectors: finished, or with the vectors of one shard. Reads it; decides nothing about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_eval.cache import records
from retrieval_eval.cache.connection import CacheFile
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.writer import CacheWriter
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity
from retrieval_eval.errors import CacheError
from retrieval_eval.model import Instance, Session

COMMIT_VECTORS = 512


class Part(CacheFile):
    """A cache, open for reading. `manifest` is its own, or the one in the note of its shard; `shard` is None if whole.

    Raises `CacheError`, naming the file, where it is missing, foreign, cut or damaged, or its prep did not get as far
    as embedding.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._open_readonly()
        try:
            self._check_tables()
            with self.decoded():
                self.identity = ModelIdentity(**self.meta("identity"))
                self.dataset: Mapping[str, Any] = self.meta("dataset") or {}
            note = self.shard_note()
            self.shard = note.shard if note else None
            self.manifest = note.manifest if note else Manifest.read(folder)
            self._check_belongs_together()
        except BaseException:
            self._connection.close()
            raise

    def _check_belongs_together(self) -> None:
        found = self.identity.fingerprint, self.dataset.get("sha256")
        if found != (self.manifest.fingerprint, self.manifest.dataset_sha256):
            raise CacheError(
                "and its manifest do not belong together", where=f"embedding cache {self.folder}", hint="run prep again"
            )

    def instances(self) -> Iterator[Instance]:
        """The scored instances as the data file had them, one at a time, each text held against its digest."""
        digests = {number: digest for number, (_, digest) in self.digests().items()}
        for stored in self.stored_pairs():
            with self.decoded():
                texts = (self._checked_text(number, digests) for number in stored.session_texts)
                sessions = tuple(starmap(Session, zip(stored.session_ids, texts, strict=True)))
            yield Instance(stored.pair, sessions)

    def _checked_text(self, number: int, digests: Mapping[int, bytes]) -> str:
        text = self.text(number)
        if hashlib.sha256(text.encode()).digest() != digests[number]:
            raise ValueError(f"text {number} does not match its digest")
        return text

    def embedded(self, number: int) -> Embedded:
        """The vector of the text of this number, its checksum verified."""
        with self.decoded():
            statement = "SELECT is_truncated, vector FROM vector WHERE text = ?"
            is_truncated, blob = self._connection.execute(statement, (number,)).fetchone()
            vector = records.unpack_vector(blob, self.identity.dims)
            if not np.isfinite(vector).all():
                raise ValueError(f"vector of text {number} is not finite")
            return Embedded(vector, bool(is_truncated))


def adopt(target: CacheWriter, part: Part, missing: Iterable[int]) -> Iterator[int]:
    """Copy to `target` the vectors of its `missing` texts that `part` has; yields how many each commit brought.

    Texts are told by role and SHA-256, so the two caches may number them differently.
    """
    theirs, have = part.digests(), part.with_vector()
    by_digest = {theirs[number]: number for number in have & theirs.keys()}
    ours = target.digests()
    found = ((number, by_digest[ours[number]]) for number in missing if ours[number] in by_digest)
    while batch := list(islice(found, COMMIT_VECTORS)):
        target.store((number, part.embedded(source)) for number, source in batch)
        yield len(batch)
