"""The bootstrap interval: exact references, coverage, repeatability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from retrieval_eval.scoring.interval import RESAMPLES, mean_intervals


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)[:, None]


@pytest.mark.parametrize(("n", "hits"), [(13, 5), (30, 22), (120, 110), (470, 400)])
def test_ends_are_the_binomial_quantiles_when_values_are_0_or_1(n: int, hits: int) -> None:
    [(low, high)] = mean_intervals(column(*[1.0] * hits, *[0.0] * (n - hits)))
    exact = stats.binom(n, hits / n)
    assert low == pytest.approx(exact.ppf(0.025) / n, abs=1 / n)
    assert high == pytest.approx(exact.ppf(0.975) / n, abs=1 / n)


def test_agrees_with_scipy_percentile_bootstrap() -> None:
    values = np.random.default_rng(3).choice([0.0, 1 / 3, 0.5, 2 / 3, 1.0], size=200)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(4)
    ).confidence_interval
    [(low, high)] = mean_intervals(values[:, None])
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.005)


def test_covers_the_true_mean_about_95_times_in_100() -> None:
    truth, samples = 0.6, 300
    values = np.random.default_rng(5).binomial(1, truth, size=(80, samples)).astype(np.float64)
    covered = sum(low <= truth <= high for low, high in mean_intervals(values)) / samples
    assert 0.91 <= covered <= 0.98


def test_columns_do_not_influence_each_other() -> None:
    values = np.random.default_rng(6).random((40, 3))
    alone = [mean_intervals(values[:, [i]])[0] for i in range(3)]
    assert mean_intervals(values) == alone


def test_order_of_the_pairs_changes_nothing() -> None:
    values = np.random.default_rng(7).random((500, 2))
    assert mean_intervals(values) == mean_intervals(values[::-1])


def test_of_twenty_thousand_pairs_is_the_normal_law() -> None:
    [(low, high)] = mean_intervals(column(*[0.0, 1.0] * 10_000))
    assert low == pytest.approx(0.5 - 1.96 * 0.5 / 20_000**0.5, abs=0.0005)
    assert high == pytest.approx(0.5 + 1.96 * 0.5 / 20_000**0.5, abs=0.0005)


def test_one_pair_and_equal_pairs_have_no_width() -> None:
    assert mean_intervals(column(0.25)) == [(0.25, 0.25)]
    assert mean_intervals(column(1.0, 1.0, 1.0)) == [(1.0, 1.0)]


def test_the_draws_are_those_of_every_numpy_version() -> None:
    [interval] = mean_intervals(column(*((i / 29) ** 2 for i in range(30))))
    assert interval == pytest.approx((0.23281411018628614, 0.45077586206896564), abs=1e-12)


@pytest.mark.parametrize("shape", [(0, 3), (4,), (2, 2, 2)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected \(n, columns\)"):
        mean_intervals(np.zeros(shape))
