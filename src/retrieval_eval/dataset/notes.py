"""What was odd in the data file without stopping it: counts, and one sentence for each kind.

Owns the kinds, their wording and the counting. Only scored pairs count: what is excluded is not measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from retrieval_eval.dataset.fields import Place


class Oddity(Enum):
    """A kind of oddity; the value is what a report says before the count."""

    DUPLICATE_SESSION_IDS = "session ids that occur again in their haystack (all are kept, gold means the first)"
    GOLD_NOT_IN_HAYSTACK = "gold session ids that are not in their haystack (they count as misses)"
    EMPTY_SESSIONS = "sessions without any text (they stay in the haystack)"
    EMPTY_GOLD_SESSIONS = "gold sessions without any text (they can hardly be found, and count)"
    EMPTY_HAYSTACKS = "haystacks without any session (their questions count as misses)"
    DATES_MISMATCHED = "haystacks without one date for each session (dates are not used)"


@dataclass(frozen=True, slots=True)
class Finding:
    """One oddity of one instance. `count` is at least 1; `detail` tells the first case apart where a count does not."""

    oddity: Oddity
    count: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DatasetNotes:
    """Counts over the scored pairs of the file, and a sentence with the first place for each that is not 0.

    `empty_gold_sessions` are among `empty_sessions`. `duplicate_session_ids` counts second and later occurrences.
    """

    duplicate_session_ids: int
    gold_not_in_haystack: int
    empty_sessions: int
    empty_gold_sessions: int
    empty_haystacks: int
    dates_mismatched: int
    warnings: tuple[str, ...]


class Tally:
    """Adds up findings while the file streams by; remembers the first place of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[Oddity] = Counter()
        self._first: dict[Oddity, str] = {}

    def add(self, findings: Iterable[Finding], place: Place) -> None:
        """Count what one scored instance showed."""
        for finding in findings:
            self._counts[finding.oddity] += finding.count
            detail = f": {finding.detail}" if finding.detail else ""
            self._first.setdefault(finding.oddity, f"{place}{detail}")

    def notes(self) -> DatasetNotes:
        """What was counted so far; warnings in the order of `Oddity`."""
        counts = {oddity.name.lower(): self._counts[oddity] for oddity in Oddity}
        warnings = (f"{o.value}: {self._counts[o]}, first in {self._first[o]}" for o in Oddity if o in self._first)
        return DatasetNotes(**counts, warnings=tuple(warnings))
