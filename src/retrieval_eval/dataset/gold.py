"""Which sessions answer a question, and whether the question counts. Owns the gold rule and the reasons to exclude."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from retrieval_eval.dataset.fields import Place, as_ids, unfit
from retrieval_eval.model import Exclusion, GoldSource

ABSTENTION_SUFFIX = "_abs"

Turns = Sequence[Mapping[str, object]]


def gold_of(
    record: Mapping[str, object], haystack: Iterable[tuple[str, Turns]], place: Place
) -> tuple[tuple[str, ...], GoldSource]:
    """Gold session ids, sorted and free of repeats, and the field that named them.

    `answer_session_ids` as it stands where it is a list, an empty one included (the file then says that there is no
    gold). Where it is missing or null: the `haystack` sessions with a turn whose `has_answer` is true.
    LongMemEval's own script drops gold sessions without a labelled user turn; this does not.
    Raises `DatasetError` where `answer_session_ids` is anything else, one string included.
    """
    named = record.get("answer_session_ids")
    if named is None:
        labelled = {
            session_id for session_id, turns in haystack if any(turn.get("has_answer") is True for turn in turns)
        }
        return tuple(sorted(labelled)), GoldSource.HAS_ANSWER
    if not isinstance(named, list):
        raise unfit(named, "a list of session ids", place, "answer_session_ids")
    return tuple(sorted(set(as_ids(named, "answer_session_ids", place)))), GoldSource.ANSWER_SESSION_IDS


def exclusion_of(question_id: str, gold: Sequence[str]) -> Exclusion | None:
    """Why the question is not scored, or None. An abstention question without gold is an abstention question."""
    if question_id.endswith(ABSTENTION_SUFFIX):
        return Exclusion.ABSTENTION
    return None if gold else Exclusion.NO_GOLD
