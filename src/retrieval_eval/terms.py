"""Words of a text, and how often each occurs: what prep stores once and the okapi leg scores many times.

Owns the word rule (rank-bm25's usual one, lower-cased runs of `\\w`, on composed text) and the packed form of the
counts. Scores nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of `text` in order: lower-cased runs of word characters.

    Composed first (NFC), since `\\w` does not match the accents of decomposed text and would part a word at each.
    """
    return WORD.findall(unicodedata.normalize("NFC", text).lower())


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Distinct terms of one text: `ids` int32 (m,) ascending, `counts` int32 (m,) each at least 1."""

    ids: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]

    def to_bytes(self) -> bytes:
        """Little-endian int32: the gaps between ids, then the counts."""
        gaps = np.diff(self.ids, prepend=np.int32(0))
        return np.concatenate([gaps, self.counts]).astype("<i4").tobytes()

    @staticmethod
    def from_bytes(data: bytes) -> TermCounts:
        """The inverse of `to_bytes`. Raises ValueError where the length cannot be right."""
        if len(data) % 8:
            raise ValueError(f"term counts of {len(data)} bytes, expected a multiple of 8")
        gaps, counts = np.frombuffer(data, dtype="<i4").astype(np.int32, copy=False).reshape(2, -1)
        return TermCounts(gaps.cumsum(dtype=np.int32), counts)


class Vocabulary:
    """Terms numbered from 0 in the order in which they were first seen; it only ever grows."""

    def __init__(self, terms: Iterable[str] = ()) -> None:
        self._ids: dict[str, int] = {term: number for number, term in enumerate(terms)}

    def __len__(self) -> int:
        return len(self._ids)

    def terms_from(self, start: int) -> list[str]:
        """The terms numbered `start` and up, in order."""
        return list(self._ids)[start:]

    def count(self, text: str) -> TermCounts:
        """Count the words of `text`, numbering those that are new."""
        ids = self._ids
        counted = sorted((ids.setdefault(word, len(ids)), count) for word, count in Counter(words(text)).items())
        packed = np.array(counted, dtype=np.int32).reshape(-1, 2)
        return TermCounts(packed[:, 0].copy(), packed[:, 1].copy())

    def look_up(self, query: str) -> list[int]:
        """Ids of the query's words, repeats included; words never seen are left out."""
        return [self._ids[word] for word in words(query) if word in self._ids]
