"""The control `BM25 alone` is the same number, whether it is measured by itself or read off the hybrid's own leg."""

from collections.abc import Callable
from typing import Any

from retrieval_eval.model import Lane


def test_control_read_off_the_hybrid_equals_bm25_measured_alone(bench: Any, dataset: Callable[..., Any]) -> None:
    bench.prep(dataset(12, 30))
    hybrid = bench.run("builtin:hybrid")["controls"]["bm25"]
    model_free_alone = bench.run("builtin:hybrid", lanes=(Lane.MODEL_FREE,))["controls"]["bm25"]
    alone = bench.run("builtin:bm25", lanes=(Lane.MODEL_DEPENDENT,))["lanes"]["model-dependent"]["overall"]["recall"]
    assert hybrid == model_free_alone == {k: recall["fraction"] for k, recall in alone.items()}
    assert 0 < hybrid["1"] < 1


def test_control_of_the_fts5_store_is_still_okapi(bench: Any, dataset: Callable[..., Any]) -> None:
    bench.prep(dataset(12, 30))
    assert bench.run("builtin:hybrid-fts5")["controls"]["bm25"] == bench.run("builtin:hybrid")["controls"]["bm25"]
