"""What holds for every ranking, checked on generated ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.model import CATEGORIES, Judged
from retrieval_eval.scoring.aggregate import score
from retrieval_eval.scoring.controls import tie_bounds
from retrieval_eval.scoring.recall import ceiling, first_gold_rank, recall_at

SESSIONS = st.sampled_from([f"s{i}" for i in range(9)])
RANKED = st.lists(SESSIONS, max_size=14)
GOLD = st.lists(SESSIONS, min_size=1, max_size=5)
KS = st.integers(1, 12)
PAIRS = st.lists(
    st.builds(
        Judged,
        question_id=st.text(max_size=3),
        category=st.sampled_from([*CATEGORIES, "unknown"]),
        gold=GOLD.map(tuple),
        ranked=RANKED.map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@given(RANKED, GOLD, KS)
def test_recall_is_bounded_and_any_fraction_all_descend(ranked: list[str], gold: list[str], k: int) -> None:
    recall = recall_at(ranked, gold, k)
    assert 1.0 >= recall.any >= recall.fraction >= recall.all >= 0.0
    assert recall.fraction <= ceiling(len(set(gold)), k)


@given(RANKED, GOLD, KS)
def test_recall_never_falls_with_k(ranked: list[str], gold: list[str], k: int) -> None:
    now, wider = recall_at(ranked, gold, k), recall_at(ranked, gold, k + 1)
    assert (now.fraction <= wider.fraction, now.any <= wider.any, now.all <= wider.all) == (True, True, True)


@given(RANKED, GOLD, KS, st.data())
def test_repeats_change_nothing(ranked: list[str], gold: list[str], k: int, data: st.DataObject) -> None:
    seen = list(dict.fromkeys(ranked))
    repeated = list(seen)
    for session in seen:
        at = data.draw(st.integers(repeated.index(session) + 1, len(repeated)))
        repeated.insert(at, session)
    assert recall_at(repeated, gold + gold, k) == recall_at(seen, gold, k)
    assert first_gold_rank(repeated, gold + gold) == first_gold_rank(seen, gold)


@given(RANKED, GOLD, KS)
def test_any_is_the_first_gold_rank_within_k(ranked: list[str], gold: list[str], k: int) -> None:
    rank = first_gold_rank(ranked, gold)
    assert recall_at(ranked, gold, k).any == float(rank is not None and rank <= k)


@given(RANKED, GOLD, KS, st.sets(st.integers(1, 13)))
def test_tie_bounds_enclose_the_measured_fraction(ranked: list[str], gold: list[str], k: int, cuts: set[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(ranked)), len(ranked)]
    groups = [ranked[start:stop] for start, stop in pairwise(edges)]
    low, high = tie_bounds(groups, gold, k)
    assert low <= recall_at(ranked, gold, k).fraction <= high


@settings(max_examples=25, deadline=None)
@given(PAIRS, st.randoms(use_true_random=False))
def test_order_of_the_pairs_changes_no_score(pairs: list[Judged], random: Random) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert score(pairs, (1, 3)) == score(shuffled, (1, 3))


@settings(max_examples=25, deadline=None)
@given(PAIRS)
def test_overall_is_the_category_means_weighed_by_n(pairs: list[Judged]) -> None:
    scores = score(pairs, (2,))
    weighed = sum(group.n * group.recall[2].fraction for group in scores.categories.values())
    assert abs(scores.overall.recall[2].fraction - weighed / scores.overall.n) < 1e-12


@settings(max_examples=25, deadline=None)
@given(PAIRS)
def test_means_stay_under_their_ceiling_and_inside_0_and_1(pairs: list[Judged]) -> None:
    for k, recall in score(pairs, (1, 2, 12)).overall.recall.items():
        assert 0.0 <= recall.all <= recall.fraction <= recall.any <= 1.0, k
        assert recall.fraction <= recall.ceiling <= 1.0
        assert 0.0 <= recall.ci95[0] <= recall.ci95[1] <= 1.0


@given(st.lists(st.sampled_from("gh"), min_size=1, max_size=2, unique=True), KS)
def test_ids_that_sound_like_labels_mean_nothing(gold: list[str], k: int) -> None:
    ranked = ["answer_x", "noise", "h", "answer_y", "g"]
    renamed = {session: f"plain{i}" for i, session in enumerate(ranked)}
    pair = Judged("q", "multi-session", tuple(gold), tuple(ranked))
    plain = replace(pair, gold=tuple(renamed[one] for one in gold), ranked=tuple(renamed[one] for one in ranked))
    assert recall_at(pair.ranked, pair.gold, k) == recall_at(plain.ranked, plain.gold, k)
