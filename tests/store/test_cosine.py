"""Cosine: the bits of a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from retrieval_eval.store.cosine import cosines

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def loop(query: list[float], row: list[float]) -> float:
    """vipune's own: three sums from the left in float64."""
    dot = query_sum = row_sum = 0.0
    for a, b in zip(query, row, strict=True):
        dot += a * b
        query_sum += a * a
        row_sum += b * b
    norm = math.sqrt(query_sum) * math.sqrt(row_sum)
    return dot / norm if norm else 0.0


@settings(deadline=None)
@given(arrays(np.float32, (4, 17), elements=FLOATS))
def test_cosines_are_those_of_a_loop_to_the_bit(values: np.ndarray) -> None:
    query, rows = values[0], values[1:]
    assert cosines(query, rows).tolist() == [loop(query.tolist(), row) for row in rows.tolist()]


def test_cosines_of_384_numbers_are_those_of_a_loop_to_the_bit() -> None:
    values = np.random.default_rng(1).standard_normal((200, 384)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    assert cosines(values[0], values).tolist() == [loop(values[0].tolist(), row) for row in values.tolist()]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_there_is_one_cosine_a_row(rows: int) -> None:
    found = cosines(np.ones(3, np.float32), np.ones((rows, 3), np.float32))
    assert (found.shape, found.dtype) == ((rows,), np.float64)
