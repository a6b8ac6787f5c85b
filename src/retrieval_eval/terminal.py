"""The terminal: the report as a table on stderr, and a progress bar. rich's only home.

Text from outside is shown through `escape.plain` and never read as markup. Where the stream is no terminal rich
writes plain text, and progress is lines instead of bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import compress
from typing import TYPE_CHECKING, Any, TextIO

from retrieval_eval import figures
from retrieval_eval.progress import Lines, Progress
from retrieval_eval.report.escape import plain
from retrieval_eval.report.section import Section
from retrieval_eval.report.view import View, view

if TYPE_CHECKING:
    from rich import progress as bars
    from rich.console import Console

SHOWN = ("differences", "categories", "questions that moved", "legs")
"""Sections that a terminal shows; the Markdown has them all."""
ROWS = 12
WIDTH = 100
"""Columns where the stream is no terminal, so that a log reads the same everywhere."""
NARROW = 80
"""Below this many columns a bar takes the room of the figures beside it, which say the same."""


def print_report(document: Mapping[str, Any], stream: TextIO) -> None:
    """Write the heading, the first table, the notes and the `SHOWN` sections of a validated report document."""
    from rich.text import Text  # noqa: PLC0415 -- see _console

    console, shown = _console(stream), view(document)
    console.print(Text(shown.headline.heading, style="bold"))
    if shown.headline.moved:
        console.print(Text(" · ".join(filter(None, (shown.headline.moved, shown.headline.lead)))))
    _print_headline(console, shown)
    for note in shown.headline.notes:
        console.print(Text(f"⚠ {plain(note, 300)}", style="yellow"))
    compared = f" · compared with {shown.base}" if shown.base else ""
    console.print(Text(plain(shown.headline.definition + compared, 500), style="dim"))
    for section in shown.sections:
        if section.name in SHOWN:
            _print_section(console, section)


def progress_on(stream: TextIO, clock: Callable[[], float]) -> Progress:
    """Bars where `stream` is a terminal, else lines; `clock` gives seconds that only grow."""
    return Bars(stream) if stream.isatty() else Lines(stream, clock)


class Bars:
    """A bar a stage, which stays on the screen when the stage ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Bar]:
        """Show a bar for one stage; `total` None shows a count without an end."""
        from rich import progress as bars  # noqa: PLC0415 -- see _console

        class Rate(bars.ProgressColumn):
            """`10.3/s`, of the unit that the count beside it names."""

            def render(self, task: bars.Task) -> str:
                speed = task.finished_speed or task.speed
                return "" if speed is None else f"{speed:,.1f}/s"

        console = _console(self._stream)
        columns = (
            bars.TextColumn("{task.description}"),
            *([bars.BarColumn()] if console.width >= NARROW else []),
            bars.TextColumn("{task.completed:,.0f}" + ("" if total is None else f" of {total:,}") + f" {unit}"),
            Rate(),
            bars.TimeRemainingColumn(),
        )
        with bars.Progress(*columns, console=console) as shown:
            yield Bar(shown, shown.add_task(name, total=total))


class Bar:
    """A bar with rate and time left, drawn while its stage is open."""

    def __init__(self, progress: bars.Progress, task: bars.TaskID) -> None:
        self._progress, self._task = progress, task

    def advance(self, n: int = 1) -> None:
        """Count `n` more."""
        self._progress.advance(self._task, n)


def _console(stream: TextIO) -> Console:
    """A console on `stream`; rich is imported on first use, as it takes longer than the rest of the package."""
    from rich.console import Console  # noqa: PLC0415

    width = None if stream.isatty() else WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def _print_headline(console: Console, shown: View) -> None:
    from rich.table import Table  # noqa: PLC0415 -- see _console

    table = Table("recall")
    for k in shown.headline.ks:
        table.add_column(f"@{k}", justify="right")
    styles = {"strong": "bold", "faint": "italic", "plain": ""}
    for row in shown.headline.rows:
        table.add_row(row.label, *row.values, style=styles[row.tone])
    console.print(table)


def _print_section(console: Console, section: Section) -> None:
    from rich.table import Table  # noqa: PLC0415 -- see _console
    from rich.text import Text  # noqa: PLC0415

    console.print(Text(f"\n{section.title}", style="bold"))
    table = Table()
    is_shown = [column.kind != "bar" or console.width >= NARROW for column in section.table.columns]
    for column in compress(section.table.columns, is_shown):
        table.add_column(column.title, justify="right" if column.kind == "figure" else "left")
    for number, row in enumerate(section.table.rows[:ROWS]):
        style = "bold" if number == section.table.strong else ""
        table.add_row(*(Text(plain(text, 120)) for text in compress(row, is_shown)), style=style)
    console.print(table)
    if len(section.table.rows) > ROWS:
        console.print(Text(f"and {figures.count(len(section.table.rows) - ROWS)} more", style="dim"))
