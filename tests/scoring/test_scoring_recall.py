"""Recall of one list: worked examples, one a case."""

from __future__ import annotations

import pytest

from retrieval_eval.model import Recall
from retrieval_eval.scoring.recall import ceiling, first_gold_rank, recall_at

THREE_GOLD = ("x", "g1", "y", "g2", "z", "w", "v", "u", "t", "s", "g3")


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, Recall(fraction=0.0, any=0.0, all=0.0)),
        (2, Recall(fraction=1 / 3, any=1.0, all=0.0)),
        (5, Recall(fraction=2 / 3, any=1.0, all=0.0)),
        (10, Recall(fraction=2 / 3, any=1.0, all=0.0)),
        (11, Recall(fraction=1.0, any=1.0, all=1.0)),
        (1000, Recall(fraction=1.0, any=1.0, all=1.0)),
    ],
)
def test_three_gold_sessions_at_ranks_2_4_and_11(k: int, expected: Recall) -> None:
    assert recall_at(THREE_GOLD, ("g1", "g2", "g3"), k) == expected


def test_repeats_before_the_gold_take_one_place_only() -> None:
    assert recall_at(("a", "a", "a", "a", "a", "g"), ("g",), 2).fraction == 1.0


def test_a_repeated_hit_counts_once() -> None:
    assert recall_at(("g", "g", "x", "h"), ("g", "h"), 2) == Recall(fraction=0.5, any=1.0, all=0.0)
    assert recall_at(("g", "g", "x", "h"), ("g", "h"), 3) == Recall(fraction=1.0, any=1.0, all=1.0)


def test_a_repeated_gold_id_is_one_gold_session() -> None:
    assert recall_at(("g", "x"), ("g", "g"), 1) == Recall(fraction=1.0, any=1.0, all=1.0)


def test_gold_that_no_list_can_hold_stays_a_miss() -> None:
    assert recall_at(("g", "x"), ("g", "not in the haystack"), 2).fraction == 0.5


def test_an_empty_list_found_nothing() -> None:
    assert recall_at((), ("g",), 5) == Recall(fraction=0.0, any=0.0, all=0.0)


def test_a_list_shorter_than_k_is_not_padded() -> None:
    assert recall_at(("x", "g"), ("g",), 10).fraction == 1.0


@pytest.mark.parametrize("ranked", [(), ("x",)])
def test_empty_gold_is_refused_and_neither_a_hit_nor_a_miss(ranked: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="a pair without gold is excluded, never scored"):
        recall_at(ranked, (), 1)
    with pytest.raises(ValueError, match="a pair without gold is excluded, never scored"):
        ceiling(0, 1)


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_1_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"k: got {k}, expected 1 or more"):
        recall_at(("g",), ("g",), k)


def test_gold_is_taken_as_given_so_fewer_gold_sessions_are_another_number() -> None:
    ranked = ("assistant-only", "x", "y", "z", "w", "with-user-turn")
    as_given, relabelled = ("assistant-only", "with-user-turn"), ("with-user-turn",)
    assert [recall_at(ranked, as_given, k).fraction for k in (1, 5, 10)] == [0.5, 0.5, 1.0]
    assert [recall_at(ranked, relabelled, k).fraction for k in (1, 5, 10)] == [0.0, 0.0, 1.0]


def test_first_gold_rank_counts_distinct_ids_from_1() -> None:
    assert first_gold_rank(("g", "h"), ("h", "g")) == 1
    assert first_gold_rank(("x", "x", "y", "g"), ("g",)) == 3
    assert first_gold_rank(("x", "y"), ("g",)) is None
    assert first_gold_rank((), ("g",)) is None


@pytest.mark.parametrize(
    ("gold_count", "k", "expected"), [(1, 1, 1.0), (2, 1, 0.5), (3, 1, 1 / 3), (6, 5, 5 / 6), (2, 10, 1.0)]
)
def test_ceiling_of_one_pair(gold_count: int, k: int, expected: float) -> None:
    assert ceiling(gold_count, k) == expected
