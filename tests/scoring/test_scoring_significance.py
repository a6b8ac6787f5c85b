"""Exact tests: worked by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrieval_eval.scoring.significance import ALPHA, detectable_questions, holm, mcnemar_p, sign_flip_p


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (2, 1, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (8, 1, 20 / 512), (1, 8, 20 / 512)],
)
def test_mcnemar_by_hand(gained: int, lost: int, p: float) -> None:
    assert mcnemar_p(gained, lost) == p


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_binomial_test(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar_p(gained, lost) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_of_more_questions_than_a_float_has_exponents() -> None:
    assert 0.0 < mcnemar_p(1000, 1100) < 0.05


@pytest.mark.parametrize(
    ("steps", "p"),
    [
        ([], 1.0),
        ([0, 0], 1.0),
        ([1], 1.0),
        ([1, 1, 1], 2 / 8),
        ([2, 1, -1], 6 / 8),  # the eight sums: 4, 2, 2, 0, 0, -2, -2, -4; seen: 2
        ([3, -1, 0], 1.0),  # 4, 2, -2, -4; seen: 2
        ([3, 1, 0], 2 / 4),
        ([1, -1], 1.0),
        ([1] * 7, 2 / 128),
    ],
)
def test_sign_flip_by_hand(steps: list[int], p: float) -> None:
    assert sign_flip_p(steps) == pytest.approx(p, abs=1e-15)


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=9))
def test_sign_flip_is_scipys_exact_paired_permutation_test(steps: list[int]) -> None:
    theirs = stats.permutation_test(
        (np.array(steps, dtype=float), np.zeros(len(steps))),
        lambda x, y, axis: np.sum(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    ).pvalue
    assert sign_flip_p(steps) == pytest.approx(theirs, abs=1e-12)


def test_sign_flip_of_equal_steps_is_the_binomial_test() -> None:
    assert sign_flip_p([60] * 230 + [-60] * 190) == pytest.approx(mcnemar_p(230, 190), rel=1e-9)


def test_sign_flip_of_many_questions_is_near_the_normal_law() -> None:
    steps = np.random.default_rng(8).integers(-60, 66, size=400).tolist()
    z = abs(sum(steps)) / sum(step * step for step in steps) ** 0.5
    assert sign_flip_p(steps) == pytest.approx(2 * stats.norm.sf(z), abs=0.005)


@given(st.lists(st.integers(-20, 20), max_size=30), st.integers(2, 50))
def test_sign_flip_knows_neither_unit_nor_direction(steps: list[int], unit: int) -> None:
    p = sign_flip_p(steps)
    assert 0.0 < p <= 1.0
    assert sign_flip_p([-step * unit for step in steps]) == pytest.approx(p, rel=1e-9)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_keeps_the_order_and_lies_between_plain_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for plain, corrected in zip(p_values, adjusted, strict=True):
        assert plain <= corrected <= min(1.0, len(p_values) * plain)
    by_plain = [adjusted[i] for i in sorted(range(len(p_values)), key=p_values.__getitem__)]
    assert by_plain == sorted(by_plain)


@pytest.mark.parametrize(
    ("n", "tests", "expected"), [(470, 1, 6), (470, 3, 7), (7, 3, 7), (6, 3, None), (5, 1, None), (0, 3, None)]
)
def test_detectable_questions_by_hand(n: int, tests: int, expected: int | None) -> None:
    assert detectable_questions(n, tests) == expected


@pytest.mark.parametrize("tests", [1, 2, 3, 5, 8])
def test_detectable_questions_is_where_both_tests_turn_significant_after_holm(tests: int) -> None:
    moved = detectable_questions(1000, tests)
    assert moved is not None
    others = [1.0] * (tests - 1)
    for p_of in (lambda m: mcnemar_p(m, 0), lambda m: sign_flip_p([*range(1, m + 1)])):
        assert holm([p_of(moved), *others])[0] < ALPHA
        assert holm([p_of(moved - 1), *others])[0] >= ALPHA
