"""Reciprocal rank fusion: its numbers, its ties, and that nothing but its rule decides the order."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.store.database import MemoryStore
from retrieval_eval.store.rrf import fuse

IDS = "abcdefghij"
LISTS = st.lists(st.permutations(IDS).flatmap(lambda p: st.integers(0, 10).map(lambda n: list(p[:n]))), max_size=3)


@given(LISTS)
def test_scores_are_those_of_the_formula_in_exact_numbers(lists: list[list[str]]) -> None:
    exact = {i: sum((Fraction(1, 26 + ranked.index(i)) for ranked in lists if i in ranked), Fraction()) for i in IDS}
    assert dict(fuse(lists)) == pytest.approx({i: float(score) for i, score in exact.items() if score}, rel=1e-15)


@given(LISTS)
def test_order_is_best_score_first_then_id(lists: list[list[str]]) -> None:
    fused = fuse(lists)
    assert fused == sorted(fused, key=lambda hit: (-hit[1], hit[0]))


@given(LISTS)
def test_an_empty_list_changes_nothing(lists: list[list[str]]) -> None:
    assert fuse([*lists, []]) == fuse(lists)


def test_rank_one_in_both_lists_scores_exactly_two_26ths() -> None:
    assert fuse([["a"], ["a"]]) == [("a", 1 / 26 + 1 / 26)]


def test_mirrored_ranks_tie_and_fall_to_the_id() -> None:
    forward, backward = ["a", "b", "c", "d", "e"], ["b", "a", "d", "c"]
    for lists in ([forward, backward], [backward, forward]):
        assert [row for row, _ in fuse(lists)] == ["a", "b", "c", "d", "e"]
    scores = [score for _, score in fuse([forward, backward])]
    assert scores == pytest.approx([1 / 26 + 1 / 27] * 2 + [1 / 28 + 1 / 29] * 2 + [1 / 30], rel=1e-15)
    assert scores[0] == scores[1]
    assert scores[2] == scores[3]


def test_ranks_1_and_3_beat_2_and_2() -> None:
    assert fuse([["z", "a", "y"], ["y", "a", "z"]])[-1][0] == "a"


def test_one_list_keeps_its_order() -> None:
    shuffled = random.Random(3).sample(IDS, len(IDS))  # noqa: S311 - a fixed order, no secret
    assert [row for row, _ in fuse([shuffled])] == shuffled


def test_nothing_to_fuse_is_nothing() -> None:
    assert fuse([]) == fuse([[], []]) == []


@pytest.mark.parametrize("leg", ["fts5", "okapi"])
def test_the_order_of_equal_rows_is_that_of_the_haystack_in_each_leg_and_the_id_after_fusion(
    new_store: Callable[..., Any], leg: str
) -> None:
    fillers = {f"filler{number}": "a hill" for number in range(4)}
    for order in itertools.permutations(["aa", "mm", "zz"]):
        store = new_store(leg, {**dict.fromkeys(order, "a boat on the river"), **fillers})
        found = MemoryStore(store.database, lambda _: np.array([1, 0, 0, 0], np.float32)).search_hybrid("boat", 5)
        assert [row for row, _ in found.bm25] == list(order)
        assert [row for row, _ in found.semantic[4:]] == list(reversed(order))
        # Ranks 5, 6, 7 against 3, 2, 1: the sums differ, so the oldest of the three stays first whatever its id.
        assert [row for row, _ in found.fused[:3]] == list(order)


PROGRAM = """
import json, random, sys
from retrieval_eval.store.rrf import fuse
ids = [f"{n:02}" for n in range(40)]
lists = [random.Random(seed).sample(ids, 30) for seed in (1, 2)]
print(json.dumps(fuse(lists)))
"""


def test_order_does_not_depend_on_the_hash_seed(environment: Callable[..., dict[str, str]]) -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment(PYTHONHASHSEED=seed),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1
    assert len(json.loads(answers.pop())) >= 30
