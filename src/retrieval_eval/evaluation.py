"""From answers to scores: puts outcomes beside their pairs and has `scoring/` judge them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval_eval.cache.records import StoredPair
from retrieval_eval.lanes import Outcome
from retrieval_eval.measure import Measured
from retrieval_eval.model import Judged, Lane, Scores
from retrieval_eval.retriever.protocol import Leg
from retrieval_eval.scoring.aggregate import mean, score
from retrieval_eval.scoring.controls import random_recall, tie_bounds
from retrieval_eval.scoring.recall import first_gold_rank


@dataclass(frozen=True, slots=True)
class LegScores:
    """Scores of one leg by itself; `empty` counts the pairs for which it found nothing."""

    scores: Scores
    empty: int


@dataclass(frozen=True, slots=True)
class Controls:
    """What the numbers are read against, keyed by k: fractions, and how many pairs have at most k sessions."""

    random: Mapping[int, float]
    bm25: Mapping[int, float]
    ties: Mapping[int, tuple[float, float]]
    k_not_below_haystack: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where one question's best-placed gold session stands in each list; None where a list holds none."""

    lanes: Mapping[Lane, int | None]
    legs: Mapping[Leg, int | None]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All scores of one retriever over one cache; `ranks` are in the order of the pairs."""

    lanes: Mapping[Lane, Scores]
    legs: Mapping[Leg, LegScores]
    controls: Controls
    ranks: tuple[Ranks, ...]


def evaluate(
    pairs: Sequence[StoredPair], measured: Measured, ks: Sequence[int], bm25_alone: Sequence[Outcome]
) -> Evaluation:
    """Score every lane and leg at each of `ks`; pairs and outcomes are in the same order.

    `bm25_alone` holds the outcomes of `builtin:bm25`, the control that needs no vectors.
    """
    outcomes = measured.outcomes
    lanes = {lane: score(_judged(pairs, [o.ranked[lane] for o in outcomes]), ks) for lane in measured.paths}
    legs = {}
    for leg in Leg:
        if any(leg in outcome.legs for outcome in outcomes):
            lists = [outcome.legs.get(leg, ()) for outcome in outcomes]
            empty = sum(not ranked and not outcome.failed for ranked, outcome in zip(lists, outcomes, strict=True))
            legs[leg] = LegScores(score(_judged(pairs, lists), ks), empty)
    controls = _controls(pairs, measured, bm25_alone, ks)
    return Evaluation(lanes, legs, controls, tuple(_ranks(s, o) for s, o in zip(pairs, outcomes, strict=True)))


def _ranks(stored: StoredPair, outcome: Outcome) -> Ranks:
    gold = stored.pair.gold
    return Ranks(
        {lane: first_gold_rank(ranked, gold) for lane, ranked in outcome.ranked.items()},
        {leg: first_gold_rank(outcome.legs.get(leg, ()), gold) for leg in Leg} if outcome.legs else {},
    )


def _judged(pairs: Sequence[StoredPair], lists: Sequence[tuple[str, ...]]) -> list[Judged]:
    return [
        Judged(stored.pair.question_id, stored.pair.category, stored.pair.gold, ranked)
        for stored, ranked in zip(pairs, lists, strict=True)
    ]


def _controls(
    pairs: Sequence[StoredPair], measured: Measured, bm25_alone: Sequence[Outcome], ks: Sequence[int]
) -> Controls:
    outcomes, headline = measured.outcomes, next(iter(measured.paths))
    bm25 = score(_judged(pairs, [outcome.ranked[Lane.MODEL_DEPENDENT] for outcome in bm25_alone]), ks).overall
    random = {k: mean([_expected(stored, k) for stored in pairs]) for k in ks}
    saturated = Counter(k for k in ks for stored in pairs if len(stored.session_ids) <= k)
    ties: dict[int, tuple[float, float]] = {}
    answered = [outcome for outcome in outcomes if outcome.failed is None]
    if answered and all(headline in outcome.tied for outcome in answered):
        for k in ks:
            bounds = [
                tie_bounds(o.tied.get(headline, ()), s.pair.gold, k) for o, s in zip(outcomes, pairs, strict=True)
            ]
            ties[k] = mean([low for low, _ in bounds]), mean([high for _, high in bounds])
    return Controls(
        random=random,
        bm25={k: recall.fraction for k, recall in bm25.recall.items()},
        ties=ties,
        k_not_below_haystack={k: saturated[k] for k in ks if saturated[k]},
    )


def _expected(stored: StoredPair, k: int) -> float:
    """The expected fraction at k of a random ranking of this pair's haystack."""
    present = len(set(stored.pair.gold).intersection(stored.session_ids))
    return random_recall(len(stored.session_ids), present, len(stored.pair.gold), k).fraction
