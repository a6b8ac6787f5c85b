"""What a recall must be read against: a random ranking, and the ranking's own ties. Owns no measured number."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from retrieval_eval.model import Recall
from retrieval_eval.scoring.recall import recall_at


def random_recall(haystack: int, present: int, gold_count: int, k: int) -> Recall:
    """The expected recall at `k` of a uniformly random order of `haystack` sessions.

    `present` of the pair's `gold_count` gold sessions are in the haystack; the others are misses whatever the order.
    Exact: the number of gold sessions in the top k is hypergeometric. All three are 0 where `present` is 0.

    Raises ValueError for counts that no haystack can have.
    """
    if not (0 <= present <= min(gold_count, haystack) and gold_count > 0 and k > 0):
        raise ValueError(f"no such haystack: {haystack} sessions, {present} of {gold_count} gold, k {k}")
    drawn = min(k, haystack)
    if present == 0:
        return Recall(fraction=0.0, any=0.0, all=0.0)
    draws = math.comb(haystack, drawn)
    without_gold = math.comb(haystack - present, drawn)
    with_all = math.comb(haystack - present, drawn - present) if present == gold_count and drawn >= present else 0
    return Recall(
        fraction=drawn * present / (haystack * gold_count),
        any=(draws - without_gold) / draws,
        all=with_all / draws,
    )


def tie_bounds(groups: Sequence[Sequence[str]], gold: Collection[str], k: int) -> tuple[float, float]:
    """The lowest and the highest fraction at `k` that another order of equal scores could have given.

    `groups` is the ranked list, best first, cut into runs of equal score. Whoever cuts the list must keep the run that
    crosses `k` whole: what is left out counts as a miss in both. An id that stood in an earlier run counts there.

    Raises ValueError as `recall_at` does.
    """
    wanted = frozenset(gold)
    gold_last = [found for run in groups for found in sorted(run, key=wanted.__contains__)]
    gold_first = [found for run in groups for found in sorted(run, key=wanted.__contains__, reverse=True)]
    return recall_at(gold_last, wanted, k).fraction, recall_at(gold_first, wanted, k).fraction
