"""How the rest of `report/` reads the report JSON: which lane, which k, which comparison. Formats nothing.

Every function expects a document that `schema.validate` has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval_eval.model import DEFAULT_KS

Document = Mapping[str, Any]
"""The report JSON, as parsed: `report.schema.json` says what is in it."""

COLUMNS = 3
"""Columns of figures that still fit a phone."""


def headline_k(document: Document) -> int:
    """The k that the heading is about."""
    return int(document["headline"]["k"])


def headline_lane(document: Document) -> Document:
    """The lane that the heading is about."""
    lane: Document = document["lanes"][document["headline"]["lane"]]
    return lane


def shown_ks(document: Document) -> tuple[int, ...]:
    """At most `COLUMNS` of the measured k, ascending: the headline's, then 1, 5 and 10, then whatever else there is."""
    measured = [int(k) for k in document["k"]]
    wanted = [headline_k(document), *(k for k in DEFAULT_KS if k in measured), *measured]
    return tuple(sorted(list(dict.fromkeys(wanted))[:COLUMNS]))


def comparison(document: Document) -> Document | None:
    """The comparison, comparable or not; None where none was made."""
    return document.get("comparison")


def compared_lanes(document: Document) -> Mapping[str, Document]:
    """Lane → its paired comparison; empty where nothing was compared."""
    made = comparison(document)
    return made.get("lanes", {}) if made is not None and made["comparable"] else {}


def compared_headline(document: Document) -> Document | None:
    """The paired comparison of the headline lane."""
    return compared_lanes(document).get(document["headline"]["lane"])


def failed_questions(document: Document) -> tuple[Document, ...]:
    """Questions on which the retriever failed, in the document's order."""
    return tuple(question for question in document["questions"] if question.get("failed"))
