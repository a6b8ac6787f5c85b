"""Which question of one run stands beside which of the other. Owns the pairing and what may not be paired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from retrieval_eval.errors import ReportError
from retrieval_eval.model import Judged, Recall
from retrieval_eval.scoring.recall import recall_at

_HINT = "measure both on the same data file"


class Move(StrEnum):
    """A question whose `any` changed: GAINED from 0 to 1, LOST from 1 to 0."""

    GAINED = "gained"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PairedQuestion:
    """One question of both runs; `at` holds the recall of (base, head) by k, ascending."""

    base: Judged
    head: Judged
    at: Mapping[int, tuple[Recall, Recall]]

    def change(self, k: int) -> float:
        """Fraction of head - fraction of base, in [-1, 1].

        Taken over whole hits: 1 - 2/3 is the same float as 1/3, so equal changes are equal and opposite ones cancel.
        """
        gold = len(set(self.head.gold))
        base, head = self.at[k]
        return (round(head.fraction * gold) - round(base.fraction * gold)) / gold

    def move(self, k: int) -> Move | None:
        """Which side of `any` the question changed to; None where it stayed."""
        base, head = self.at[k]
        if base.any == head.any:
            return None
        return Move.GAINED if head.any else Move.LOST


def pair_questions(base: Sequence[Judged], head: Sequence[Judged], ks: Sequence[int]) -> list[PairedQuestion]:
    """Every question of both runs, judged at each of `ks` (ascending), in the order of `head`.

    Raises ReportError where the two do not hold the same questions once each, with the same gold and category, and
    ValueError as `recall_at` does.
    """
    base_by_id, head_by_id = _by_id("base", base), _by_id("head", head)
    for name, lacking in (
        ("base", head_by_id.keys() - base_by_id.keys()),
        ("head", base_by_id.keys() - head_by_id.keys()),
    ):
        if lacking:
            raise ReportError(
                f"only the other run holds {_listed(lacking)}",
                where=name,
                expected="the same questions in both",
                hint=_HINT,
            )
    _refuse_unlike(base_by_id, head_by_id, "gold", lambda judged: set(judged.gold))
    _refuse_unlike(base_by_id, head_by_id, "category", lambda judged: judged.category)
    return [_paired(base_by_id[question_id], judged, ks) for question_id, judged in head_by_id.items()]


def _paired(base: Judged, head: Judged, ks: Sequence[int]) -> PairedQuestion:
    at = {k: (recall_at(base.ranked, base.gold, k), recall_at(head.ranked, head.gold, k)) for k in ks}
    return PairedQuestion(base=base, head=head, at=at)


def _by_id(name: str, run: Sequence[Judged]) -> dict[str, Judged]:
    by_id: dict[str, Judged] = {}
    for judged in run:
        if judged.question_id in by_id:
            raise ReportError(f"question {judged.question_id!r} occurs twice", where=name, expected="each once")
        by_id[judged.question_id] = judged
    return by_id


def _refuse_unlike(
    base: Mapping[str, Judged], head: Mapping[str, Judged], what: str, of: Callable[[Judged], object]
) -> None:
    unlike = [question_id for question_id in head if of(base[question_id]) != of(head[question_id])]
    if unlike:
        raise ReportError(f"base and head disagree on the {what} of {_listed(unlike)}", hint=_HINT)


def _listed(question_ids: Iterable[str]) -> str:
    """The count and the first three, sorted."""
    ordered = sorted(question_ids)
    names = ", ".join(repr(question_id) for question_id in ordered[:3])
    return f"{len(ordered)} question(s): {names}{', …' if len(ordered) > 3 else ''}"
