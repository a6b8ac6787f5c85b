"""The view-model: everything that a rendering shows, as text. The only argument of the templates.

Owns the order of the sections: where it moved, which questions, which half, how sure, then what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retrieval_eval.report import breakdown, paired, provenance
from retrieval_eval.report.document import Document, comparison
from retrieval_eval.report.headline import Headline, headline
from retrieval_eval.report.section import Section

SECTIONS: tuple[Callable[[Document], Section | None], ...] = (
    paired.differences,
    breakdown.categories,
    paired.moved,
    breakdown.failed,
    breakdown.legs,
    paired.tests,
    breakdown.controls,
    breakdown.hardest,
    breakdown.readings,
    provenance.card,
    provenance.dataset,
)


@dataclass(frozen=True, slots=True)
class View:
    """`base` names what it was compared with (text from outside), empty where nothing was compared."""

    headline: Headline
    base: str
    sections: tuple[Section, ...]
    facts: tuple[str, ...]


def view(document: Document) -> View:
    """Format a document that `schema.validate` has passed. Sections without content are left out."""
    made = comparison(document)
    return View(
        headline=headline(document),
        base="" if made is None else str(made["base"]),
        sections=tuple(section for draw in SECTIONS if (section := draw(document)) is not None),
        facts=provenance.facts(document),
    )
