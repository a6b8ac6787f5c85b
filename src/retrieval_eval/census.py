"""Counts over a data file while it streams by: everything that a report says about the dataset."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retrieval_eval.dataset import DatasetReader
from retrieval_eval.model import Exclusion, GoldSource, Instance


class Census:
    """Counts what passes through `counted`."""

    def __init__(self) -> None:
        self._haystacks: list[int] = []
        self._categories: Counter[str] = Counter()
        self._dropped: Counter[Exclusion] = Counter()
        self._gold_sources: Counter[GoldSource] = Counter()
        self._texts: set[int] = set()

    @property
    def pairs(self) -> int:
        """Scored pairs so far."""
        return len(self._haystacks)

    def counted(self, instances: Iterable[Instance]) -> Iterator[Instance]:
        """The same instances, counted."""
        for instance in instances:
            if instance.exclusion is not None:
                self._dropped[instance.exclusion] += 1
            else:
                self._haystacks.append(len(instance.sessions))
                self._categories[instance.pair.category] += 1
                self._gold_sources[instance.pair.gold_source] += 1
                self._texts.update(hash(session.text) for session in instance.sessions)
            yield instance

    def dropped(self) -> dict[str, int]:
        """Excluded instances by reason, every reason named."""
        return {reason.value: self._dropped[reason] for reason in Exclusion}

    def facts(self, reader: DatasetReader, name: str) -> dict[str, Any]:
        """The report's `dataset` but for `truncated_sessions`, and the reader's warnings. Needs at least one pair."""
        notes = reader.notes
        return {
            "file": name,
            "sha256": reader.digest,
            "instances": self.pairs + self._dropped.total(),
            "pairs": self.pairs,
            "sessions": sum(self._haystacks),
            "distinct_sessions": len(self._texts),
            "haystack": {
                "min": min(self._haystacks),
                "median": float(statistics.median(self._haystacks)),
                "max": max(self._haystacks),
            },
            "categories": dict(sorted(self._categories.items())),
            "dropped": self.dropped(),
            "gold_sources": {source.value: self._gold_sources[source] for source in GoldSource},
            "duplicate_session_ids": notes.duplicate_session_ids,
            "gold_not_in_haystack": notes.gold_not_in_haystack,
            "empty_sessions": notes.empty_sessions,
            "warnings": list(notes.warnings),
        }
