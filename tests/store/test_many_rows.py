"""12,000 rows in one persona: `MAX_SEARCH_LIMIT` bounds a call, not a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from retrieval_eval.store.database import MemoryStore
from retrieval_eval.store.limits import MAX_SEARCH_LIMIT

ROWS, DIMS, QUERY = 12_000, 8, "word3 word11 word11"


@pytest.fixture(scope="module")
def corpus() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, vectors, and a query vector; whole numbers, so that many cosines are equal."""
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 400, size=(ROWS, 6))
    texts = [" ".join(f"word{number}" for number in row) for row in numbers.tolist()]
    return texts, rng.integers(-2, 3, size=(ROWS, DIMS)).astype(np.float32), np.ones(DIMS, np.float32)


def test_every_list_is_that_of_a_plain_computation_over_all_rows(
    new_store: Callable[..., Any], corpus: tuple[list[str], np.ndarray, np.ndarray]
) -> None:
    texts, vectors, query = corpus
    store = new_store("okapi", dims=DIMS)
    ids = [f"{number * 7919 % ROWS:05}" for number in range(ROWS)]
    for row_id, text, vector in zip(ids, texts, vectors, strict=True):
        store.add(row_id, text, vector)

    # Sums of whole numbers are exact, so these are the bits of any order of summation.
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1)) * np.sqrt(DIMS)
    cosines = np.divide(wide.sum(axis=1), norms, out=np.zeros(ROWS), where=norms > 0)
    by_cosine = [ids[row] for row in sorted(range(ROWS), key=lambda row: (-cosines[row], -row))][:MAX_SEARCH_LIMIT]
    scores = BM25Okapi([text.split() for text in texts]).get_scores(QUERY.split())
    by_bm25 = [ids[row] for row in sorted(np.flatnonzero(scores), key=lambda row: (-round(scores[row], 9), row))]

    found = MemoryStore(store.database, lambda _: query).search_hybrid(QUERY, 1000)
    assert [row for row, _ in found.bm25] == by_bm25
    assert [row for row, _ in found.semantic] == by_cosine
    fused: dict[str, float] = {}
    for ranked in (by_cosine, by_bm25):
        for rank, row_id in enumerate(ranked, start=1):
            fused[row_id] = fused.get(row_id, 0.0) + 1 / (25 + rank)
    assert found.fused == sorted(fused.items(), key=lambda hit: (-hit[1], hit[0]))


def test_a_row_beyond_the_ten_thousandth_is_found(new_store: Callable[..., Any]) -> None:
    store = new_store("fts5")
    for number in range(ROWS):
        store.add(str(number), "needle" if number == ROWS - 1 else "hay", (1, 0, 0, 0) if number else (0, 1, 0, 0))
    assert store.bm25("needle") == [str(ROWS - 1)]
    assert store.semantic((0, 1, 0, 0), 1) == ["0"]
    assert len(store.semantic((0, 1, 0, 0), MAX_SEARCH_LIMIT)) == MAX_SEARCH_LIMIT
