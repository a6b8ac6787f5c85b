"""The one shape of everything behind the headline: a titled table with sentences under it.

Titles and column heads are our own words; cells and sentences may hold text from outside and must be escaped.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is `text`, `name` (like text, cut earlier), `figure` (right), `rank` (centred) or `bar` (monospaced)."""

    title: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Every row has one text per column. `strong` is the index of the row that the headline quotes, if any."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """`name` is what budgets and notes call it, in plain words."""

    name: str
    title: str
    table: Table
    sentences: tuple[str, ...] = ()


def at_columns(ks: tuple[int, ...]) -> tuple[Column, ...]:
    """A column of figures for each k."""
    return tuple(Column(f"@{k}", "figure") for k in ks)
