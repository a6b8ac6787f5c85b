"""Means over pairs, overall and per category. Owns what is averaged with what; never a mean of means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from retrieval_eval.model import CATEGORIES, GroupScore, Judged, MeanRecall, Scores
from retrieval_eval.scoring.interval import mean_intervals
from retrieval_eval.scoring.recall import ceiling, recall_at


def score(judged: Sequence[Judged], ks: Sequence[int]) -> Scores:
    """Mean recall at each of `ks`, over all pairs and over those of each category.

    A pair weighs the same wherever it stands: the overall value is not a mean of category means. Only categories that
    occur are listed. Nothing depends on the order of the pairs. No pairs give n 0 and an empty `recall`.

    Raises ValueError where a pair has no gold or a k is below 1.
    """
    return Scores(
        overall=_group(judged, ks),
        categories={
            category: _group([pair for pair in judged if pair.category == category], ks)
            for category in report_order(pair.category for pair in judged)
        },
    )


def report_order(categories: Iterable[str]) -> list[str]:
    """The distinct ones of `categories`: those of CATEGORIES in that order, then any others, sorted by name."""
    found = set(categories)
    return [category for category in CATEGORIES if category in found] + sorted(found.difference(CATEGORIES))


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value, from an exact sum, so that the order of the values cannot show."""
    return math.fsum(values) / len(values)


def _group(pairs: Sequence[Judged], ks: Sequence[int]) -> GroupScore:
    if not pairs:
        return GroupScore(n=0, recall={})
    ascending = sorted(set(ks))
    at = {k: [recall_at(pair.ranked, pair.gold, k) for pair in pairs] for k in ascending}
    fractions = np.array([[recall.fraction for recall in at[k]] for k in ascending], dtype=np.float64).T
    recall = {
        k: MeanRecall(
            fraction=mean([one.fraction for one in at[k]]),
            any=mean([one.any for one in at[k]]),
            all=mean([one.all for one in at[k]]),
            ci95=interval,
            ceiling=mean([ceiling(len(set(pair.gold)), k) for pair in pairs]),
        )
        for k, interval in zip(ascending, mean_intervals(fractions), strict=True)
    }
    return GroupScore(n=len(pairs), recall=recall)
