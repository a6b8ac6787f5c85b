"""What exactly was measured, and from which data: the definition card, the dataset's counts, the footer's facts."""

from __future__ import annotations

from retrieval_eval import figures
from retrieval_eval.report.document import Document
from retrieval_eval.report.section import Column, Section, Table

DIGEST_SHOWN = 12
"""Hex digits of a digest or revision that are shown; the JSON has them all."""


def card(document: Document) -> Section:
    """The definition card, in its own order; empty values say so."""
    rows = tuple((line.replace("_", " "), card_value(line, value)) for line, value in document["card"].items())
    return Section("definition card", "What exactly was measured", Table((Column("line"), Column("value")), rows))


def card_value(line: str, value: object) -> str:
    """A value of the definition card: one that is empty or missing says so, digests are shortened."""
    text = "(none)" if value is None or value == "" else str(value)
    if line.endswith(("sha256", "revision")) and len(text) > DIGEST_SHOWN:
        return f"{text[:DIGEST_SHOWN]}…"
    return text


def dataset(document: Document) -> Section:
    """What the file held, what was left out and why."""
    data = document["dataset"]
    haystack = data["haystack"]
    rows = [
        ("questions in the file", figures.count(data["instances"])),
        ("scored", figures.count(data["pairs"])),
        *((f"left out: {reason}", figures.count(n)) for reason, n in data["dropped"].items()),
        *((f"gold from {source}", figures.count(n)) for source, n in data.get("gold_sources", {}).items()),
        ("sessions", f"{figures.count(data['sessions'])}, {figures.count(data['distinct_sessions'])} of them distinct"),
        (
            "sessions per question",
            f"{figures.count(haystack['min'])} to {figures.count(haystack['max'])}, median {haystack['median']:g}",
        ),
        (
            f"distinct sessions cut at {document['card'].get('max_tokens', 'the token limit')} tokens",
            f"{figures.count(data['truncated_sessions'])} "
            f"({figures.percent(data['truncated_sessions'], data['distinct_sessions'])})",
        ),
        ("empty sessions", figures.count(data["empty_sessions"])),
        ("session ids repeated in a haystack", figures.count(data["duplicate_session_ids"])),
        ("gold sessions missing from the haystack", figures.count(data["gold_not_in_haystack"])),
    ]
    table = Table((Column("dataset"), Column("count", "figure")), tuple(rows))
    return Section("dataset", "The dataset, counted", table)


def facts(document: Document) -> tuple[str, ...]:
    """The footer's facts: cache, time, tool."""
    cache, tool = document["cache"], document["tool"]
    times = [f"{name.removesuffix('_s')} {figures.duration(s)}" for name, s in document["timings"].items()]
    return (
        f"embedding cache: {figures.count(cache['reused'])} reused, {figures.count(cache['embedded'])} embedded",
        *([", ".join(times)] if times else []),
        f"{tool['name']} {tool['version']}",
    )
