"""Recall of one ranked list at one k. Owns the definition; averages belong to `aggregate`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from retrieval_eval.model import Recall


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> Recall:
    """What share of `gold` the first `k` distinct ids of `ranked` (best first) hold.

    A repeated id counts once, at its first position, and takes no second place; `gold` is a set. A list shorter than
    `k` is scored as it is. `fraction` is trec_eval's `recall.k`, `any` its `success.k`.

    Raises ValueError where `gold` is empty or `k` is below 1.
    """
    wanted = frozenset(gold)
    _check(len(wanted), k)
    hits = len(wanted.intersection(islice(dict.fromkeys(ranked), k)))
    return Recall(fraction=hits / len(wanted), any=float(hits > 0), all=float(hits == len(wanted)))


def first_gold_rank(ranked: Sequence[str], gold: Collection[str]) -> int | None:
    """The rank, from 1 and over distinct ids, of the best-placed gold id; None where the list holds none."""
    wanted = frozenset(gold)
    return next((rank for rank, found in enumerate(dict.fromkeys(ranked), start=1) if found in wanted), None)


def ceiling(gold_count: int, k: int) -> float:
    """The best `fraction` that any ranking reaches with `gold_count` distinct gold ids: min(k, gold) / gold.

    Raises ValueError as `recall_at` does.
    """
    _check(gold_count, k)
    return min(k, gold_count) / gold_count


def _check(gold_count: int, k: int) -> None:
    if gold_count < 1:
        raise ValueError("a pair without gold is excluded, never scored")
    if k < 1:
        raise ValueError(f"k: got {k}, expected 1 or more")
