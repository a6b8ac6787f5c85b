"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) with vipune's constant."""

from __future__ import annotations

from collections.abc import Sequence

RRF_K = 25


def fuse(lists: Sequence[Sequence[str]]) -> list[tuple[str, float]]:
    """Ids with the sum over lists of 1 / (RRF_K + rank), ranks from 1, as their scores; best first, equal ones by id.

    Each list is best first and free of repeats; scores are added in the order of the lists, in float64.
    """
    scores: dict[str, float] = {}
    for ranked in lists:
        for rank, row_id in enumerate(ranked, start=1):
            scores[row_id] = scores.get(row_id, 0.0) + 1.0 / (RRF_K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
