"""The 95 % percentile bootstrap interval of a mean over pairs. Owns the resampling and its seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
SEED = 20240501
METHOD = f"95 % percentile bootstrap over pairs, {RESAMPLES} resamples, seed {SEED}"
"""The interval in words, for the definition card."""

_TAILS = (0.025, 0.975)
_DRAWS_AT_ONCE = 1 << 17  # bounds memory at a few MB, whatever n


def mean_intervals(values: npt.NDArray[np.float64]) -> list[tuple[float, float]]:
    """The interval of each column's mean, as (low, high) in the columns' order.

    `values` has shape (n, columns): a row for each pair, n at least 1. A resample draws n rows with replacement; the
    ends are the 2.5th and 97.5th percentile of RESAMPLES means, with linear interpolation. Every column sees the same
    draws and is sorted first, so the order of the pairs does not matter. Where all values of a column are equal its
    interval has no width. Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.

    Raises ValueError for another shape.
    """
    if values.ndim != 2 or values.shape[0] == 0:
        raise ValueError(f"values: got shape {values.shape}, expected (n, columns) with n of 1 or more")
    columns = [np.ascontiguousarray(column) for column in np.sort(values, axis=0).T]
    means = np.empty((len(columns), RESAMPLES))
    bits = np.random.PCG64(SEED)
    n = values.shape[0]
    step = max(1, _DRAWS_AT_ONCE // n)
    for start in range(0, RESAMPLES, step):
        stop = min(start + step, RESAMPLES)
        rows = _draw(bits, stop - start, n)
        for column, mean in zip(columns, means, strict=True):
            mean[start:stop] = column[rows].mean(axis=1)
    low, high = np.quantile(means, _TAILS, axis=1)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _draw(bits: np.random.PCG64, resamples: int, n: int) -> npt.NDArray[np.intp]:
    """Row numbers below n, shape (resamples, n).

    Made from the raw stream: numpy keeps that stable between versions, the methods of its Generator it does not.
    """
    high_half = bits.random_raw(resamples * n) >> np.uint64(32)
    return (high_half * np.uint64(n) >> np.uint64(32)).astype(np.intp).reshape(resamples, n)
