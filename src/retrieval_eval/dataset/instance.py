"""One parsed object of the data file becomes one `Instance`. Owns which fields are read and what is refused.

Reads no files and counts nothing over the file. `answer` is never read: it may be of any type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from retrieval_eval.dataset.fields import MISSING, Place, as_ids, kind, quote, take_list, take_string, unfit
from retrieval_eval.dataset.gold import Turns, exclusion_of, gold_of
from retrieval_eval.dataset.notes import Finding, Oddity
from retrieval_eval.dataset.text import render
from retrieval_eval.errors import DatasetError
from retrieval_eval.model import Instance, Pair, Session

UNKNOWN_CATEGORY = "unknown"


def to_instance(raw: object, place: Place, known_ids: Collection[str]) -> tuple[Instance, tuple[Finding, ...]]:
    """The instance and what was odd about it.

    `known_ids` are the question ids of the file so far; a repeat is refused. Raises `DatasetError` with the place,
    the field, what was found and what was expected.
    """
    if not isinstance(raw, dict):
        raise DatasetError("not an instance", where=str(place), got=kind(raw), expected="an object with a question_id")
    question_id = take_string(raw, "question_id", place)
    place = replace(place, question_id=question_id)
    if question_id in known_ids:
        raise DatasetError(
            f"question_id {quote(question_id)} occurs twice in the file",
            where=str(place),
            expected="every question_id once",
            hint="a persona is keyed by its question_id; rename or remove one of the two",
        )
    question = take_string(raw, "question", place)
    category = _category(raw, place)
    named_ids, haystack = _haystack(raw, place)
    gold, source = gold_of(raw, haystack, place)
    date = raw.get("question_date")
    instance = Instance(
        pair=Pair(question_id, category, question, date if isinstance(date, str) else "", gold, source),
        sessions=tuple(Session(session_id, render(turns)) for session_id, turns in haystack),
        exclusion=exclusion_of(question_id, gold),
    )
    return instance, tuple(_findings(raw, named_ids, instance))


def _category(raw: Mapping[str, object], place: Place) -> str:
    value = raw.get("question_type")
    if value is None or (isinstance(value, str) and not value.strip()):
        return UNKNOWN_CATEGORY
    if not isinstance(value, str):
        raise unfit(value, "a string or null", place, "question_type")
    return value


def _haystack(raw: Mapping[str, object], place: Place) -> tuple[tuple[str, ...], list[tuple[str, Turns]]]:
    """The ids as the file names them, and the sessions under ids of their own, both in the file's order."""
    named_ids = as_ids(take_list(raw, "haystack_session_ids", place), "haystack_session_ids", place)
    sessions = take_list(raw, "haystack_sessions", place)
    if len(named_ids) != len(sessions):
        raise DatasetError(
            "sessions and ids do not match",
            where=str(place),
            got=f"{len(sessions)} haystack_sessions and {len(named_ids)} haystack_session_ids",
            expected="one id for each session",
        )
    turns = (_turns(session, replace(place, session=number)) for number, session in enumerate(sessions))
    return named_ids, list(zip(distinct_ids(named_ids), turns, strict=True))


def distinct_ids(named_ids: Sequence[str]) -> tuple[str, ...]:
    """The same ids, made distinct: from its second occurrence on an id gets a suffix (`id#2`, `id#3`, ...).

    The first occurrence keeps its id, so gold, which is a list of ids, means the first. A suffix that would make an
    id of the haystack is passed over.
    """
    taken, occurrences, distinct = set(named_ids), Counter[str](), []
    for named in named_ids:
        occurrences[named] += 1
        number = occurrences[named]
        session_id = named if number == 1 else f"{named}#{number}"
        while number > 1 and session_id in taken:
            number += 1
            session_id = f"{named}#{number}"
        taken.add(session_id)
        distinct.append(session_id)
    return tuple(distinct)


def _turns(session: object, place: Place) -> Turns:
    if not isinstance(session, list):
        raise DatasetError("not a session", where=str(place), got=kind(session), expected="a list of turns")
    for number, turn in enumerate(session):
        if not isinstance(turn, dict):
            where = str(replace(place, turn=number))
            raise DatasetError("not a turn", where=where, got=kind(turn), expected="an object with role and content")
        role, content = turn.get("role", MISSING), turn.get("content")
        if not isinstance(role, str) or not role.strip():
            raise unfit(role, "a string such as user or assistant", replace(place, turn=number), "role")
        if content is not None and not isinstance(content, str | list):
            raise unfit(content, "a string, null or a list of parts", replace(place, turn=number), "content")
    return session


def _findings(raw: Mapping[str, object], named_ids: Sequence[str], instance: Instance) -> Iterator[Finding]:
    texts = {session.session_id: session.text for session in instance.sessions}
    gold = instance.pair.gold
    dates = raw.get("haystack_dates")
    count = len(named_ids)
    date_count = len(dates) if isinstance(dates, list) else 0
    repeated = next((name for name, times in Counter(named_ids).items() if times > 1), "")
    lost = [name for name in gold if name not in texts]
    empty_gold = [name for name in gold if texts.get(name) == ""]
    if repeated:
        yield Finding(Oddity.DUPLICATE_SESSION_IDS, count - len(set(named_ids)), quote(repeated))
    if lost:
        yield Finding(Oddity.GOLD_NOT_IN_HAYSTACK, len(lost), quote(lost[0]))
    if empty := [name for name, text in texts.items() if not text]:
        yield Finding(Oddity.EMPTY_SESSIONS, len(empty), quote(empty[0]))
    if empty_gold:
        yield Finding(Oddity.EMPTY_GOLD_SESSIONS, len(empty_gold), quote(empty_gold[0]))
    if not count:
        yield Finding(Oddity.EMPTY_HAYSTACKS, 1)
    if date_count != count:
        lengths = f"{count} sessions, {count} ids, {date_count} dates ({count}/{count}/{date_count})"
        yield Finding(Oddity.DATES_MISMATCHED, 1, lengths)
