"""Cosine similarity with vipune's summation: float64, left to right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def cosines(query: npt.NDArray[np.float32], rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Cosine of `query` float32 (d,) with each of `rows` float32 (n, d): float64 (n,), 0.0 where a norm is zero.

    Products of widened float32 are exact, so only the order of summation matters; a matrix product sums in another
    order, differs in the last bit and can flip near ties.
    """
    wide_query, wide_rows = query.astype(np.float64), rows.astype(np.float64)
    dots = _sums(wide_rows * wide_query)
    norms = np.sqrt(_sums(wide_rows * wide_rows)) * np.sqrt(_sums(wide_query * wide_query))
    return np.asarray(np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0))


def _sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums over the last axis, each added up from the left."""
    return np.cumsum(values, axis=-1)[..., -1]
