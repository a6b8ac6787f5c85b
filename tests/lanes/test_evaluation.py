"""Outcomes beside their pairs: scores of lanes and legs, and what they are read against."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retrieval_eval.cache.records import StoredPair
from retrieval_eval.evaluation import Evaluation, evaluate
from retrieval_eval.lanes import Outcome
from retrieval_eval.measure import Measured
from retrieval_eval.model import GoldSource, Lane, Pair
from retrieval_eval.retriever.protocol import Leg, Path

FREE = Lane.MODEL_FREE


def pair(
    question_id: str, gold: tuple[str, ...], sessions: str = "abcd", category: str = "multi-session"
) -> StoredPair:
    facts = Pair(question_id, category, "Which?", "", gold, GoldSource.ANSWER_SESSION_IDS)
    return StoredPair(facts, 0, tuple(sessions), tuple(range(len(sessions))))


def judge(
    pairs: list[StoredPair], outcomes: Sequence[Outcome], ks: tuple[int, ...], floor: Sequence[str] = ()
) -> Evaluation:
    """Evaluate outcomes of the model-free lane; `floor` is what BM25 alone finds for every pair."""
    alone = [Outcome(stored.pair.question_id, {Lane.MODEL_DEPENDENT: tuple(floor)}) for stored in pairs]
    return evaluate(pairs, Measured("fake", {FREE: Path.SEARCH}, {}, tuple(outcomes)), ks, alone)


def test_a_failed_question_counts_as_found_nothing_and_not_as_an_empty_leg() -> None:
    pairs = [pair("q1", ("a",)), pair("q2", ("a",)), pair("q3", ("a",))]
    outcomes = (
        Outcome("q1", {FREE: ("a",)}, {Leg.SEMANTIC: ("a",), Leg.BM25: ("a",)}),
        Outcome("q2", {FREE: ("a",)}, {Leg.SEMANTIC: ("a",), Leg.BM25: ()}),
        Outcome("q3", {FREE: ()}, failed="went away"),
    )
    found = judge(pairs, outcomes, (1,))
    assert found.lanes[FREE].overall.n == 3
    assert found.lanes[FREE].overall.recall[1].fraction == pytest.approx(2 / 3)
    assert found.legs[Leg.BM25].empty == 1
    assert found.legs[Leg.SEMANTIC].empty == 0
    assert found.legs[Leg.BM25].scores.overall.recall[1].fraction == pytest.approx(1 / 3)


def test_no_leg_is_reported_where_the_retriever_shows_none() -> None:
    assert judge([pair("q1", ("a",))], [Outcome("q1", {FREE: ("a",)})], (1,)).legs == {}


def test_overall_is_the_mean_over_pairs_not_over_categories() -> None:
    pairs = [pair("q1", ("a",)), pair("q2", ("a",)), pair("q3", ("b",), category="knowledge-update")]
    outcomes = [Outcome(f"q{number}", {FREE: ("a",)}) for number in (1, 2, 3)]
    scores = judge(pairs, outcomes, (1,)).lanes[FREE]
    assert scores.overall.recall[1].fraction == pytest.approx(2 / 3)
    assert scores.categories["multi-session"].recall[1].fraction == 1
    assert scores.categories["knowledge-update"].recall[1].fraction == 0


def test_random_recall_counts_only_the_gold_that_the_haystack_has() -> None:
    pairs = [pair("q1", ("a", "elsewhere")), pair("q2", ("b",))]
    outcomes = [Outcome("q1", {FREE: ()}), Outcome("q2", {FREE: ()})]
    random = judge(pairs, outcomes, (1, 2)).controls.random
    assert random == {1: pytest.approx((1 / 8 + 1 / 4) / 2), 2: pytest.approx((1 / 4 + 1 / 2) / 2)}


def test_haystacks_that_k_empties_are_counted() -> None:
    pairs = [pair("q1", ("a",), "abc"), pair("q2", ("a",), "abcde")]
    outcomes = [Outcome("q1", {FREE: ("a",)}), Outcome("q2", {FREE: ("a",)})]
    assert judge(pairs, outcomes, (1, 3, 5)).controls.k_not_below_haystack == {3: 1, 5: 2}


def test_tie_bounds_are_averaged_and_a_failed_question_counts_zero() -> None:
    pairs = [pair("q1", ("a",)), pair("q2", ("b",)), pair("q3", ("b",))]
    outcomes = (
        Outcome("q1", {FREE: ("a", "b")}, tied={FREE: (("a", "b"),)}),
        Outcome("q2", {FREE: ("b",)}, tied={FREE: (("b",), ("a",))}),
        Outcome("q3", {FREE: ()}, failed="went away"),
    )
    ties = judge(pairs, outcomes, (1,)).controls.ties
    assert ties == {1: (pytest.approx(1 / 3), pytest.approx(2 / 3))}


@pytest.mark.parametrize("failed", [None, "went away"])
def test_there_are_no_tie_bounds_without_scores(failed: str | None) -> None:
    outcome = Outcome("q1", {FREE: ()}, failed=failed)
    assert judge([pair("q1", ("a",))], [outcome], (1,)).controls.ties == {}


def test_bm25_alone_is_a_control_of_its_own() -> None:
    pairs = [pair("q1", ("a",)), pair("q2", ("b",))]
    outcomes = [Outcome(name, {FREE: ()}) for name in ("q1", "q2")]
    assert judge(pairs, outcomes, (1, 2), "ab").controls.bm25 == {1: 0.5, 2: 1.0}


def test_ranks_of_the_first_gold_are_kept_per_question() -> None:
    found = Outcome("q1", {FREE: ("c", "a")}, {Leg.SEMANTIC: ("a",), Leg.BM25: ()})
    failed = Outcome("q2", {FREE: ()}, failed="went away")
    one, two = judge([pair("q1", ("a", "b")), pair("q2", ("a",))], [found, failed], (1,)).ranks
    assert (one.lanes, one.legs) == ({FREE: 2}, {Leg.SEMANTIC: 1, Leg.BM25: None})
    assert (two.lanes, two.legs) == ({FREE: None}, {})
