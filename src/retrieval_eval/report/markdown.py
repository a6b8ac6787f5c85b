"""Markdown from the report document: the page, the job summary, the pull-request comment. jinja2's only home.

Owns which part gives way when a page is too big. Writes no file and posts nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from retrieval_eval import figures
from retrieval_eval.report.budget import Part, Size, characters, fit, utf8_bytes
from retrieval_eval.report.document import Document
from retrieval_eval.report.escape import cell, link_target
from retrieval_eval.report.section import Section
from retrieval_eval.report.view import View, view

if TYPE_CHECKING:
    import jinja2

SUMMARY_BYTES = 900 * 1024
SUMMARY_LIMIT_BYTES = 1024 * 1024
"""GitHub drops a step summary that is larger, whole."""
SUMMARY_RESERVE_BYTES = 64 * 1024
"""What this report may use of the limit when the file is already past our own budget."""
COMMENT_CHARACTERS = 60_000
"""GitHub refuses 65,536; the margin is for what it adds."""

GIVES_WAY = (
    "hardest questions",
    "dataset",
    "every reading",
    "controls",
    "definition card",
    "tests",
    "legs",
    "failed questions",
    "questions that moved",
    "differences",
)
"""The order in which parts are shortened and then left out. The head, the categories and the footer always stay."""

ROWS_KEPT = 24
"""Categories shown at most: they stay whatever the size, and a file may name any number of them."""
NOTES_KEPT = 6
"""With these two and the cut of every text, what always stays fits a comment even if each character needs 14."""
COMMENT_ROWS = {"questions that moved": 50, "hardest questions": 20, "failed questions": 20}


@dataclass(frozen=True, slots=True)
class Links:
    """Where the comment's reader finds the rest. What is no http(s) URL is left out."""

    report_url: str | None = None
    run_url: str | None = None


@dataclass(frozen=True, slots=True)
class _Link:
    text: str
    target: str


def page(document: Document) -> str:
    """The whole report, unfolded and uncut but for more than `ROWS_KEPT` categories."""
    return _Page(view(document), folded=False, links=Links()).within(None, utf8_bytes)


def summary(document: Document, budget_bytes: int = SUMMARY_BYTES, used_bytes: int = 0) -> str:
    """The page for the job summary, to be appended to a file that holds `used_bytes` already.

    File and page together stay under `budget_bytes`. Where the file leaves less than `SUMMARY_RESERVE_BYTES` of that,
    the page may use as much again while GitHub's own limit holds; with no room for the head it is the heading alone,
    and without room even for that it is empty.
    """
    room = budget_bytes - used_bytes
    if room < SUMMARY_RESERVE_BYTES:
        room = max(room, min(SUMMARY_RESERVE_BYTES, SUMMARY_LIMIT_BYTES - 1024 - used_bytes))
    drawing = _Page(view(document), folded=False, links=Links())
    text = drawing.within(room, utf8_bytes)
    if utf8_bytes(text) <= room:
        return text
    heading = f"### {drawing.view.headline.heading}\n"
    return heading if utf8_bytes(heading) <= room else ""


def comment(document: Document, marker: str, budget: int = COMMENT_CHARACTERS, links: Links = Links()) -> str:
    """The pull-request comment: `marker` as first line, everything behind the head folded, at most `budget` characters.

    Counted in UTF-16 units, which are never fewer than code points.
    """
    drawing = _Page(view(document), folded=True, links=links)
    return f"{marker}\n{drawing.within(budget - characters(marker) - 1, characters)}"


@dataclass(frozen=True, slots=True)
class _Page:
    view: View
    folded: bool
    links: Links

    def within(self, room: int | None, size: Size) -> str:
        """Head, sections and footer; `room` None is without limit."""
        parts = [Part("head", lambda _: self._head(), 1), *map(self._part, self.view.sections)]
        if room is None:
            return "".join(part.draw(part.rows) for part in parts) + self._foot(())
        room -= size(self._foot(tuple(part.name for part in parts)))
        fitted = fit(parts, room, size)
        return "".join(fitted.texts) + self._foot(fitted.left_out)

    def _part(self, section: Section) -> Part:
        rows = len(section.table.rows)
        if section.name == "categories":
            rows = min(rows, ROWS_KEPT)
        elif self.folded:
            rows = min(rows, COMMENT_ROWS.get(section.name, rows))
        order = GIVES_WAY.index(section.name) if section.name in GIVES_WAY else None
        return Part(section.name, partial(self._section, section), rows, order)

    def _head(self) -> str:
        notes = self.view.headline.notes
        return _draw("head.md.j2", view=self.view, notes=notes[:NOTES_KEPT], more_notes=len(notes[NOTES_KEPT:]))

    def _section(self, section: Section, rows: int) -> str:
        folded = self.folded and section.name != "differences"
        return _draw("section.md.j2", section=section, rows=rows, folded=folded, rest=self._rest())

    def _foot(self, left_out: tuple[str, ...]) -> str:
        named = (("full report", self.links.report_url), ("this run", self.links.run_url))
        targets = [(text, link_target(url)) for text, url in named if url]
        links = [_Link(text, target) for text, target in targets if target]
        return _draw("foot.md.j2", view=self.view, links=links, left_out=left_out, rest=self._rest())

    def _rest(self) -> str:
        return "the job summary and the report JSON" if self.folded else "the report JSON"


def _draw(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    """Autoescape would write HTML for Markdown; instead every text from outside goes through `cell`."""
    import jinja2  # noqa: PLC0415 -- 40 ms that a run without Markdown need not pay

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("retrieval_eval.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 -- Markdown; `cell` escapes
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = environment.filters
    filters.update(cell=cell, figure=figures.count)
    return environment
