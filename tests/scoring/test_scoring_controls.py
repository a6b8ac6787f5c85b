"""Random expectation against counting every order; tie bounds against trying every order."""

from __future__ import annotations

from itertools import chain, permutations, product

import pytest

from retrieval_eval.scoring.controls import random_recall, tie_bounds
from retrieval_eval.scoring.recall import recall_at


@pytest.mark.parametrize(
    ("haystack", "present", "absent", "k"),
    [(5, 1, 0, 1), (5, 2, 0, 2), (6, 3, 0, 2), (5, 2, 1, 3), (4, 2, 0, 4), (3, 1, 0, 9), (4, 0, 2, 2)],
)
def test_random_recall_is_the_mean_over_all_orders(haystack: int, present: int, absent: int, k: int) -> None:
    sessions = [f"s{i}" for i in range(haystack)]
    gold = sessions[:present] + [f"absent{i}" for i in range(absent)]
    orders = [recall_at(order, gold, k) for order in permutations(sessions)]
    expected = random_recall(haystack, present, present + absent, k)
    assert expected.fraction == pytest.approx(sum(one.fraction for one in orders) / len(orders))
    assert expected.any == pytest.approx(sum(one.any for one in orders) / len(orders))
    assert expected.all == pytest.approx(sum(one.all for one in orders) / len(orders))


def test_random_recall_of_two_gold_among_48_at_5() -> None:
    expected = random_recall(48, 2, 2, 5)
    assert expected.fraction == pytest.approx(5 / 48)
    assert expected.any == pytest.approx(1 - (43 * 42) / (48 * 47))
    assert expected.all == pytest.approx((5 * 4) / (48 * 47))


def test_an_empty_haystack_finds_nothing() -> None:
    assert random_recall(0, 0, 1, 5).fraction == 0.0


@pytest.mark.parametrize("counts", [(5, 3, 2, 1), (1, 2, 2, 1), (5, 0, 0, 1), (5, 1, 1, 0), (5, -1, 1, 1)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="no such haystack"):
        random_recall(*counts)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_tie_bounds_are_the_extremes_over_all_orders_of_equal_scores(k: int) -> None:
    groups, gold = [["a"], ["b", "g", "h"], ["i", "c"]], ("g", "h", "i")
    orders = product(*(permutations(group) for group in groups))
    fractions = [recall_at(tuple(chain.from_iterable(order)), gold, k).fraction for order in orders]
    assert tie_bounds(groups, gold, k) == (min(fractions), max(fractions))


def test_without_ties_both_bounds_are_the_measured_fraction() -> None:
    assert tie_bounds([["a"], ["g"], ["b"]], ("g",), 1) == (0.0, 0.0)
    assert tie_bounds([["a"], ["g"], ["b"]], ("g",), 2) == (1.0, 1.0)


def test_an_id_of_an_earlier_run_counts_there() -> None:
    assert tie_bounds([["a", "g"], ["g", "b"]], ("g",), 2) == (1.0, 1.0)


def test_no_list_is_a_miss_both_ways() -> None:
    assert tie_bounds([], ("g",), 3) == (0.0, 0.0)
