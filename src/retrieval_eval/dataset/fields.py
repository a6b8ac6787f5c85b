"""Typed reading of single fields of the data file. Owns how a place in it and a wrong value are worded.

Messages hold ids and kinds of values, never a longer piece of the file than `quote` lets through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrieval_eval.errors import DatasetError

QUOTED_CHARACTERS = 40

MISSING = object()
"""Stands for a field that is not there, which is another thing than null."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the data file something stands. `instance`, `session` and `turn` count from 0."""

    file: str
    instance: int
    question_id: str | None = None
    session: int | None = None
    turn: int | None = None

    def __str__(self) -> str:
        question = "" if self.question_id is None else f" (question {quote(self.question_id)})"
        session = "" if self.session is None else f", session {self.session}"
        turn = "" if self.turn is None else f", turn {self.turn}"
        return f"{self.file}: instance {self.instance}{question}{session}{turn}"


def quote(text: str) -> str:
    """`text` in quotes, escaped to printable ASCII and cut at 40 characters."""
    escaped = ascii(text)[1:-1]
    return f"'{escaped}'" if len(escaped) <= QUOTED_CHARACTERS else f"'{escaped[: QUOTED_CHARACTERS - 3]}...'"


def kind(value: object) -> str:
    """What sort of JSON value this is, in words."""
    if isinstance(value, str):
        return "a string" if value.strip() else "a blank string"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return "an object" if isinstance(value, dict) else "a number"


def unfit(value: object, expected: str, place: Place, field: str, *, hint: str = "") -> DatasetError:
    """The error for a field whose value is missing or of the wrong kind."""
    problem = f"field '{field}' is missing" if value is MISSING else f"field '{field}'"
    return DatasetError(
        problem, where=str(place), got="" if value is MISSING else kind(value), expected=expected, hint=hint
    )


def take_string(record: Mapping[str, object], field: str, place: Place) -> str:
    """A string that is not blank, exactly as it stands in the file. Raises `DatasetError`."""
    value = record.get(field, MISSING)
    if isinstance(value, str) and value.strip():
        return value
    raise unfit(value, "a string that is not blank", place, field)


def take_list(record: Mapping[str, object], field: str, place: Place) -> list[object]:
    """A list of anything. Raises `DatasetError`."""
    value = record.get(field, MISSING)
    if isinstance(value, list):
        return value
    raise unfit(value, "a list", place, field)


def as_ids(values: list[object], field: str, place: Place) -> tuple[str, ...]:
    """`values` as session ids, in order, repeats kept. Raises `DatasetError` naming the first that is none."""
    for position, value in enumerate(values):
        if not isinstance(value, str) or not value.strip():
            raise unfit(value, "a session id (a string that is not blank)", place, f"{field}[{position}]")
    return tuple(str(value) for value in values)
