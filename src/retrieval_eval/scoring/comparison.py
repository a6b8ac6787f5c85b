"""Two judged runs over the same questions, paired by question. Owns what moved, by how much, and whether it shows.

It says nothing in sentences and knows no question texts, legs or cards: `report/` adds them. The values mirror
`comparison.lanes.<lane>` of the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from retrieval_eval.model import Judged
from retrieval_eval.scoring.aggregate import mean, report_order
from retrieval_eval.scoring.interval import mean_intervals
from retrieval_eval.scoring.pairing import Move, PairedQuestion, pair_questions
from retrieval_eval.scoring.recall import first_gold_rank
from retrieval_eval.scoring.significance import ALPHA, detectable_questions, holm, mcnemar_p, sign_flip_p

_FINEST_UNIT = 2520  # lcm of 1 to 10; differences of pairs with stranger gold counts are rounded to 1/2520


class Verdict(StrEnum):
    """What one k says. BETTER and WORSE need a Holm-adjusted sign-flip p below ALPHA; UNCHANGED: no fraction moved."""

    BETTER = "better"
    WORSE = "worse"
    UNCHANGED = "unchanged"
    NO_DETECTABLE_CHANGE = "no detectable change"


@dataclass(frozen=True, slots=True)
class AnyChange:
    """Questions that changed sides at one k, with the exact McNemar test, plain and adjusted over the ks."""

    gained: int
    lost: int
    p_mcnemar: float
    p_mcnemar_holm: float


@dataclass(frozen=True, slots=True)
class FractionChange:
    """Questions whose fraction rose and fell at one k."""

    better: int
    worse: int


@dataclass(frozen=True, slots=True)
class RecallChange:
    """Mean fraction of both runs at one k and `change` = head - base, all as proportions.

    `ci95` is the bootstrap interval of `change` over the paired differences; `one_question` is what a whole question
    is worth (1/n); `detectable_questions` is defined in `significance` (None: n is too small to see anything).
    """

    base: float
    head: float
    change: float
    ci95: tuple[float, float]
    p_permutation: float
    p_permutation_holm: float
    any: AnyChange
    fraction: FractionChange
    detectable_questions: int | None
    one_question: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class MovedQuestion:
    """A question whose fraction moved at some k.

    `k` holds the ks at which it was gained or lost, `change` those at which its fraction moved (head - base), both
    ascending. Ranks are those of the best-placed gold session, None where the list holds none.
    """

    question_id: str
    category: str
    k: Mapping[int, Move]
    base_rank: int | None
    head_rank: int | None
    change: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """Mean fraction of both runs in one category at one k, and the questions that changed sides."""

    base: float
    head: float
    change: float
    gained: int
    lost: int


@dataclass(frozen=True, slots=True)
class CategoryComparison:
    """One category; `recall` is keyed by k, ascending."""

    n: int
    recall: Mapping[int, CategoryChange]


@dataclass(frozen=True, slots=True)
class LaneComparison:
    """One lane of both runs.

    `recall` is keyed by k, ascending, and empty when n is 0. `moved` has the largest change at any k first, equal ones
    by question id. `categories` is in report order.
    """

    n: int
    recall: Mapping[int, RecallChange]
    moved: tuple[MovedQuestion, ...]
    categories: Mapping[str, CategoryComparison]


def compare(base: Sequence[Judged], head: Sequence[Judged], ks: Sequence[int]) -> LaneComparison:
    """What `head` changed against `base` at each of `ks`, question by question.

    Nothing depends on the order of the pairs. The p-values are adjusted by Holm over `ks`, each test by itself.

    Raises ReportError where the two do not hold the same questions once each, with the same gold and category, and
    ValueError as `recall_at` does.
    """
    ascending = sorted(set(ks))
    pairs = pair_questions(base, head, ascending)
    return LaneComparison(
        n=len(pairs),
        recall=_recall_changes(pairs, ascending) if pairs else {},
        moved=_moved(pairs),
        categories={
            category: _category([pair for pair in pairs if pair.head.category == category], ascending)
            for category in report_order(pair.head.category for pair in pairs)
        },
    )


def _recall_changes(pairs: Sequence[PairedQuestion], ks: Sequence[int]) -> dict[int, RecallChange]:
    changes = {k: [pair.change(k) for pair in pairs] for k in ks}
    moves = {k: [pair.move(k) for pair in pairs] for k in ks}
    unit = min(math.lcm(*(len(set(pair.head.gold)) for pair in pairs)), _FINEST_UNIT)
    flips = [sign_flip_p([round(change * unit) for change in changes[k]]) for k in ks]
    mcnemars = [mcnemar_p(moves[k].count(Move.GAINED), moves[k].count(Move.LOST)) for k in ks]
    intervals = mean_intervals(np.array([changes[k] for k in ks], dtype=np.float64).T)
    tests = zip(ks, intervals, flips, holm(flips), mcnemars, holm(mcnemars), strict=True)
    return {
        k: RecallChange(
            base=mean([pair.at[k][0].fraction for pair in pairs]),
            head=mean([pair.at[k][1].fraction for pair in pairs]),
            change=mean(changes[k]),
            ci95=interval,
            p_permutation=flip,
            p_permutation_holm=flip_holm,
            any=AnyChange(moves[k].count(Move.GAINED), moves[k].count(Move.LOST), mcnemar, mcnemar_holm),
            fraction=FractionChange(sum(one > 0 for one in changes[k]), sum(one < 0 for one in changes[k])),
            detectable_questions=detectable_questions(len(pairs), len(ks)),
            one_question=1 / len(pairs),
            verdict=_verdict(changes[k], flip_holm),
        )
        for k, interval, flip, flip_holm, mcnemar, mcnemar_holm in tests
    }


def _verdict(changes: Sequence[float], p_holm: float) -> Verdict:
    if not any(changes):
        return Verdict.UNCHANGED
    if p_holm >= ALPHA:
        return Verdict.NO_DETECTABLE_CHANGE
    return Verdict.BETTER if math.fsum(changes) > 0 else Verdict.WORSE


def _moved(pairs: Sequence[PairedQuestion]) -> tuple[MovedQuestion, ...]:
    moved = [
        MovedQuestion(
            question_id=pair.head.question_id,
            category=pair.head.category,
            k={k: move for k in pair.at if (move := pair.move(k)) is not None},
            base_rank=first_gold_rank(pair.base.ranked, pair.base.gold),
            head_rank=first_gold_rank(pair.head.ranked, pair.head.gold),
            change={k: change for k in pair.at if (change := pair.change(k))},
        )
        for pair in pairs
        if any(pair.change(k) for k in pair.at)
    ]
    return tuple(sorted(moved, key=lambda one: (-max(map(abs, one.change.values())), one.question_id)))


def _category(pairs: Sequence[PairedQuestion], ks: Sequence[int]) -> CategoryComparison:
    return CategoryComparison(n=len(pairs), recall={k: _category_change(pairs, k) for k in ks})


def _category_change(pairs: Sequence[PairedQuestion], k: int) -> CategoryChange:
    moves = [pair.move(k) for pair in pairs]
    return CategoryChange(
        base=mean([pair.at[k][0].fraction for pair in pairs]),
        head=mean([pair.at[k][1].fraction for pair in pairs]),
        change=mean([pair.change(k) for pair in pairs]),
        gained=moves.count(Move.GAINED),
        lost=moves.count(Move.LOST),
    )
