"""Our recall against ir-measures on random runs, question by question and in the mean."""

from __future__ import annotations

import random

import ir_measures
import pytest
from ir_measures import Qrel, R, ScoredDoc, Success

from retrieval_eval.model import Judged
from retrieval_eval.scoring.aggregate import score
from retrieval_eval.scoring.recall import recall_at

KS = (1, 5, 10)


def random_run(seed: int) -> list[Judged]:
    chance = random.Random(seed)  # noqa: S311 (test data, not a secret)
    sessions = [f"s{i:02}" for i in range(40)]
    return [
        Judged(
            question_id=f"q{i}",
            category="multi-session",
            gold=tuple(chance.sample([*sessions, "absent"], chance.randint(1, 6))),
            ranked=tuple(chance.sample(sessions, chance.choice([1, 3, 10, 40]))),
        )
        for i in range(60)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_fraction_is_r_at_k_and_any_is_success_at_k(seed: int) -> None:
    pairs = random_run(seed)
    qrels = [Qrel(pair.question_id, session, 1) for pair in pairs for session in pair.gold]
    run = [
        ScoredDoc(pair.question_id, session, -float(rank)) for pair in pairs for rank, session in enumerate(pair.ranked)
    ]
    measures = [measure @ k for k in KS for measure in (R, Success)]
    theirs = {(one.query_id, str(one.measure)): one.value for one in ir_measures.iter_calc(measures, qrels, run)}
    means = ir_measures.calc_aggregate(measures, qrels, run)
    overall = score(pairs, KS).overall
    for k in KS:
        assert overall.recall[k].fraction == pytest.approx(means[R @ k], abs=1e-9)
        assert overall.recall[k].any == pytest.approx(means[Success @ k], abs=1e-9)
        for pair in pairs:
            ours = recall_at(pair.ranked, pair.gold, k)
            assert ours.fraction == pytest.approx(theirs[pair.question_id, f"R@{k}"], abs=1e-9)
            assert ours.any == theirs[pair.question_id, f"Success@{k}"]
