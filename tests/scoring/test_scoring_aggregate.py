"""Means over pairs: hand-worked tables."""

from __future__ import annotations

import pytest

from retrieval_eval.model import GroupScore, Judged
from retrieval_eval.scoring.aggregate import report_order, score

FILLER = tuple(f"f{i}" for i in range(12))


def judged(question_id: str, category: str, gold_ranks: tuple[int | None, ...]) -> Judged:
    """A pair with one gold session a rank (None: not in the list), fillers in between."""
    ranked = list(FILLER)
    gold = [f"{question_id}-gold{i}" for i in range(len(gold_ranks))]
    for session, rank in zip(gold, gold_ranks, strict=True):
        if rank is not None:
            ranked[rank - 1] = session
    return Judged(question_id, category, tuple(gold), tuple(ranked))


FOUR = (
    judged("one", "multi-session", (1,)),
    judged("two", "multi-session", (1, 7)),
    judged("three", "knowledge-update", (3, 4, 12)),
    judged("four", "knowledge-update", (None,)),
)


@pytest.mark.parametrize(
    ("k", "fraction", "any_gold", "all_gold", "ceiling"),
    [
        (1, (1 + 1 / 2) / 4, 2 / 4, 1 / 4, (1 + 1 / 2 + 1 / 3 + 1) / 4),
        (5, (1 + 1 / 2 + 2 / 3) / 4, 3 / 4, 1 / 4, 1.0),
        (10, (1 + 1 + 2 / 3) / 4, 3 / 4, 2 / 4, 1.0),
    ],
)
def test_three_readings_of_one_ranking_differ(
    k: int, fraction: float, any_gold: float, all_gold: float, ceiling: float
) -> None:
    recall = score(FOUR, (1, 5, 10)).overall.recall[k]
    assert (recall.fraction, recall.any, recall.all, recall.ceiling) == pytest.approx(
        (fraction, any_gold, all_gold, ceiling), abs=1e-12
    )


def test_overall_is_over_pairs_not_over_category_means() -> None:
    hits = [judged(f"h{i}", "single-session-user", (1,)) for i in range(5)]
    misses = [judged(f"m{i}", "temporal-reasoning", (None,)) for i in range(2)]
    scores = score([*hits, *misses], (1,))
    assert scores.overall.recall[1].fraction == pytest.approx(5 / 7)
    assert scores.categories["single-session-user"].recall[1].fraction == 1.0
    assert scores.categories["temporal-reasoning"].recall[1].fraction == 0.0


def test_strange_categories_keep_their_pairs_and_come_last_sorted() -> None:
    names = ["unknown", "Temporal-Reasoning", "temporal-reasoning", "abstention", "single-session-user", "unknown"]
    scores = score([judged(f"q{i}", name, (1,)) for i, name in enumerate(names)], (1,))
    assert list(scores.categories) == [
        "single-session-user",
        "temporal-reasoning",
        "Temporal-Reasoning",
        "abstention",
        "unknown",
    ]
    assert sum(group.n for group in scores.categories.values()) == scores.overall.n == 6


def test_report_order_lists_each_category_once() -> None:
    assert report_order(["b", "knowledge-update", "a", "multi-session", "b"]) == [
        "multi-session",
        "knowledge-update",
        "a",
        "b",
    ]


def test_ks_come_ascending_and_once() -> None:
    assert list(score(FOUR, (10, 1, 5, 1)).overall.recall) == [1, 5, 10]


def test_no_pairs_are_n_0_and_no_number() -> None:
    scores = score([], (1, 5))
    assert scores.overall == GroupScore(n=0, recall={})
    assert scores.categories == {}


def test_a_pair_without_gold_is_never_averaged() -> None:
    with pytest.raises(ValueError, match="without gold"):
        score([*FOUR, Judged("five", "multi-session", (), ("a",))], (1,))


@pytest.mark.parametrize("order", [1, -1])
def test_a_session_id_shared_by_two_pairs_is_judged_in_each(order: int) -> None:
    pairs = [
        Judged("x1", "multi-session", ("shared",), ("shared", "a")),
        Judged("x2", "multi-session", ("shared",), ("b", "shared")),
    ][::order]
    assert score(pairs, (1, 2)).overall.recall[1].fraction == 0.5
    assert score(pairs, (1, 2)).overall.recall[2].fraction == 1.0


def test_interval_belongs_to_the_fraction_of_its_own_group() -> None:
    overall = score(FOUR, (1,)).overall.recall[1]
    missed = score(FOUR, (1,)).categories["knowledge-update"].recall[1]
    assert overall.ci95[0] < overall.fraction < overall.ci95[1]
    assert missed.ci95 == (0.0, 0.0)
