"""The paired comparison: a worked example, verdicts, refusals."""

from __future__ import annotations

import dataclasses
import random

import pytest

from retrieval_eval.errors import ReportError
from retrieval_eval.model import Judged
from retrieval_eval.scoring.comparison import AnyChange, CategoryChange, FractionChange, Verdict, compare
from retrieval_eval.scoring.pairing import Move


def judged(question_id: str, ranked: str, gold: str = "g", category: str = "multi-session") -> Judged:
    """One letter a session."""
    return Judged(question_id, category, tuple(gold), tuple(ranked))


BASE = [
    judged("gains", "abg"),
    judged("loses", "gab", category="knowledge-update"),
    judged("half more", "gabh", gold="gh"),
    judged("stays", "gab"),
    judged("never", "abc", category="knowledge-update"),
]
HEAD = [
    judged("never", "cba", category="knowledge-update"),
    judged("gains", "gab"),
    judged("loses", "abcdg", category="knowledge-update"),
    judged("half more", "ghab", gold="gh"),
    judged("stays", "gba"),
]


def test_worked_example_at_two_ks() -> None:
    lane = compare(BASE, HEAD, (2, 1))
    assert lane.n == 5
    assert list(lane.recall) == [1, 2]
    at_1, at_2 = lane.recall[1], lane.recall[2]
    assert (at_1.base, at_1.head, at_1.change) == pytest.approx((2.5 / 5, 2.5 / 5, 0.0))
    assert (at_2.base, at_2.head, at_2.change) == pytest.approx((2.5 / 5, 3 / 5, 0.5 / 5))
    assert at_1.any == AnyChange(gained=1, lost=1, p_mcnemar=1.0, p_mcnemar_holm=1.0)
    assert at_2.any == AnyChange(gained=1, lost=1, p_mcnemar=1.0, p_mcnemar_holm=1.0)
    assert at_1.fraction == FractionChange(better=1, worse=1)
    assert at_2.fraction == FractionChange(better=2, worse=1)
    assert at_2.p_permutation == pytest.approx(1.0)  # sums of ±1 ±1 ±1/2: none is nearer to 0 than the 1/2 seen
    assert at_2.ci95[0] < 0.1 < at_2.ci95[1]
    assert at_2.one_question == 1 / 5
    assert at_2.detectable_questions is None
    assert at_1.verdict == at_2.verdict == Verdict.NO_DETECTABLE_CHANGE


def test_worked_example_names_what_moved_largest_first() -> None:
    moved = compare(BASE, HEAD, (1, 2)).moved
    assert [one.question_id for one in moved] == ["gains", "loses", "half more"]
    gains, loses, half_more = moved
    assert (gains.base_rank, gains.head_rank) == (3, 1)
    assert gains.k == {1: Move.GAINED, 2: Move.GAINED}
    assert gains.change == {1: 1.0, 2: 1.0}
    assert (loses.base_rank, loses.head_rank, loses.category) == (1, 5, "knowledge-update")
    assert loses.k == {1: Move.LOST, 2: Move.LOST}
    assert half_more.k == {}
    assert half_more.change == {2: 0.5}


def test_worked_example_by_category() -> None:
    categories = compare(BASE, HEAD, (2,)).categories
    assert list(categories) == ["multi-session", "knowledge-update"]
    assert categories["multi-session"].n == 3
    assert categories["multi-session"].recall[2] == CategoryChange(
        base=pytest.approx(0.5), head=1.0, change=pytest.approx(0.5), gained=1, lost=0
    )
    assert categories["knowledge-update"].recall[2] == CategoryChange(base=0.5, head=0.0, change=-0.5, gained=0, lost=1)


def many(count: int, ranked: str) -> list[Judged]:
    return [judged(f"q{i:02}", ranked) for i in range(count)]


@pytest.mark.parametrize(
    ("gained", "verdict"), [(0, Verdict.UNCHANGED), (6, Verdict.NO_DETECTABLE_CHANGE), (7, Verdict.BETTER)]
)
def test_verdict_turns_at_the_detectable_number_of_questions(gained: int, verdict: Verdict) -> None:
    base = many(40, "abcdefghij")  # rank 7: in the ten, not in the five
    head = many(gained, "abcdgefhij") + base[gained:]  # rank 5: moves at k 5 only
    lane = compare(base, head, (1, 5, 10))
    at_5 = lane.recall[5]
    assert at_5.detectable_questions == 7
    assert at_5.verdict == verdict
    assert at_5.p_permutation == pytest.approx(min(1.0, 2 / 2**gained))
    assert at_5.p_permutation_holm == pytest.approx(min(1.0, 3 * 2 / 2**gained))
    assert at_5.any.p_mcnemar_holm == pytest.approx(min(1.0, 3 * 2 / 2**gained))
    assert lane.recall[1].verdict == lane.recall[10].verdict == Verdict.UNCHANGED
    assert len(lane.moved) == gained


def test_verdict_of_a_loss_is_worse() -> None:
    assert compare(many(9, "g"), many(9, "ag"), (1,)).recall[1].verdict == Verdict.WORSE


def test_a_run_against_itself_is_unchanged() -> None:
    lane = compare(BASE, BASE, (1, 5))
    assert lane.moved == ()
    assert {change.verdict for change in lane.recall.values()} == {Verdict.UNCHANGED}
    assert {(change.change, change.ci95, change.p_permutation) for change in lane.recall.values()} == {
        (0.0, (0.0, 0.0), 1.0)
    }


def test_order_of_either_run_changes_nothing() -> None:
    shuffled = random.Random(1).sample(HEAD, len(HEAD))  # noqa: S311 (a test order, not a secret)
    assert compare(BASE, HEAD, (1, 2)) == compare(BASE[::-1], shuffled, (1, 2))


def test_swapping_the_runs_turns_the_signs() -> None:
    there, back = compare(BASE, HEAD, (2,)).recall[2], compare(HEAD, BASE, (2,)).recall[2]
    assert (back.change, back.p_permutation) == (-there.change, there.p_permutation)
    assert (back.any.gained, back.any.lost) == (there.any.lost, there.any.gained)


def test_opposite_thirds_cancel_exactly() -> None:
    base = [judged("one", "ghxi", gold="ghi"), judged("two", "xyz", gold="ghi")]
    head = [judged("one", "ghix", gold="ghi"), judged("two", "xyz", gold="ghi")]
    less = [judged("one", "gxhi", gold="ghi"), judged("two", "gyz", gold="ghi")]
    assert compare(base, head, (3,)).moved[0].change == {3: 1 / 3}
    assert compare(base, less, (2,)).recall[2].change == 0.0


def test_gold_counts_that_share_no_fine_unit_still_compare() -> None:
    letters = "abcdefghijklmnopq"
    base = [judged(f"q{n}", "zyxwv", gold=letters[:n]) for n in (7, 11, 13, 16, 17)]
    head = [dataclasses.replace(one, ranked=("a", "b")) for one in base]
    change = compare(base, head, (5,)).recall[5]
    assert change.change == pytest.approx(sum(2 / n for n in (7, 11, 13, 16, 17)) / 5)
    assert change.p_permutation == pytest.approx(2 / 2**5)


def test_no_questions_are_n_0_and_no_number() -> None:
    lane = compare([], [], (1,))
    assert (lane.n, lane.recall, lane.moved, lane.categories) == (0, {}, (), {})


def test_questions_that_one_run_lacks_are_named() -> None:
    with pytest.raises(ReportError, match=r"base: only the other run holds 1 question\(s\): 'stays'"):
        compare([one for one in BASE if one.question_id != "stays"], HEAD, (1,))
    with pytest.raises(ReportError, match=r"head: only the other run holds 5 question\(s\): 'gains', .*, …"):
        compare(BASE, [], (1,))


def test_a_question_that_occurs_twice_is_named() -> None:
    with pytest.raises(ReportError, match="head: question 'never' occurs twice"):
        compare(BASE, [*HEAD, HEAD[0]], (1,))


def test_other_gold_or_category_is_named() -> None:
    with pytest.raises(ReportError, match=r"disagree on the gold of 1 question\(s\): 'never'"):
        compare(BASE, [dataclasses.replace(HEAD[0], gold=("h",)), *HEAD[1:]], (1,))
    with pytest.raises(ReportError, match=r"disagree on the category of 1 question\(s\): 'never'"):
        compare(BASE, [dataclasses.replace(HEAD[0], category="unknown"), *HEAD[1:]], (1,))


def test_gold_in_another_order_is_the_same_gold() -> None:
    assert compare([judged("q", "gh", gold="gh")], [judged("q", "gh", gold="hgg")], (1,)).moved == ()
