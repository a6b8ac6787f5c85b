"""What a comparison shows behind the headline: the questions that moved, the tests, the card lines that differ.

Words and figures only; the verdicts and p-values come from scoring.
"""

from __future__ import annotations

from collections.abc import Iterator

from retrieval_eval import figures
from retrieval_eval.report.document import (
    Document,
    compared_headline,
    compared_lanes,
    comparison,
    headline_k,
)
from retrieval_eval.report.provenance import card_value
from retrieval_eval.report.section import Column, Section, Table


def differences(document: Document) -> Section | None:
    """The card lines on which two reports disagree, where that forbade to compare them."""
    made = comparison(document)
    if made is None or made["comparable"]:
        return None
    rows = tuple(
        (line["line"].replace("_", " "), card_value(line["line"], line["base"]), card_value(line["line"], line["head"]))
        for line in made["differences"]
    )
    table = Table((Column("definition card"), Column("base"), Column("this run")), rows)
    return Section("differences", "Not compared: these lines of the definition cards differ", table)


def moved(document: Document) -> Section | None:
    """Questions whose fraction moved at some k: at the headline's k first, then in the document's order."""
    paired, k = compared_headline(document), str(headline_k(document))
    if paired is None or not paired["moved"]:
        return None
    questions = sorted(paired["moved"], key=lambda question: not question["change"].get(k))
    has_legs = any(question.get("legs") for question in questions)
    rows = tuple(
        (
            _arrows(question["change"]),
            f"{question['category']} · {question['question']}",
            figures.ranks(question["base_rank"], question["head_rank"]),
            *([_leg_ranks(question, "semantic"), _leg_ranks(question, "bm25")] if has_legs else []),
        )
        for question in questions
    )
    columns = [Column("at"), Column("category · question"), Column("gold rank", "rank")]
    columns += [Column("semantic", "rank"), Column("BM25", "rank")] if has_legs else []
    sentences = (f"Rank of the first gold session, base → this change; {figures.NOTHING} is not in the list.",)
    return Section("questions that moved", _moved_title(paired, k), Table(tuple(columns), rows), sentences)


def tests(document: Document) -> Section | None:
    """Per lane and k: the change, its interval, the flips, both tests, and what this n could have seen."""
    rows = tuple(_test_rows(document))
    if not rows:
        return None
    columns = (
        Column("lane and k"),
        *(Column(title, "figure") for title in ("change", "95 % of it", "gained", "lost")),
        *(Column(title, "figure") for title in ("p fraction", "p any", "seen from")),
    )
    sentences = (
        "p fraction: sign-flip permutation test of the share of gold found; p any: exact McNemar test of gained "
        "against lost; both after Holm's correction over the k. seen from: the smallest number of questions, all "
        "moving the same way, that this n would tell from noise.",
        *_lists_changed(document),
    )
    return Section("tests", "How sure that is", Table(columns, rows), sentences)


def _test_rows(document: Document) -> Iterator[tuple[str, ...]]:
    for name, lane in compared_lanes(document).items():
        for k, step in lane["recall"].items():
            low, high = step["ci95"]
            seen = step["detectable_questions"]
            yield (
                f"{name} @{k}",
                figures.change(step["change"], step["one_question"]),
                f"{figures.signed(low)} to {figures.signed(high)}",
                figures.count(step["any"]["gained"]),
                figures.count(step["any"]["lost"]),
                figures.p_number(step["p_permutation_holm"]),
                figures.p_number(step["any"]["p_mcnemar_holm"]),
                figures.NOTHING if seen is None else figures.count(seen),
            )


def _lists_changed(document: Document) -> Iterator[str]:
    lanes = {name: lane for name, lane in compared_lanes(document).items() if "lists_changed" in lane}
    if lanes:
        counts = (
            f"{figures.count(o['lists_changed'])} of {figures.count(o['n'])} ({name})" for name, o in lanes.items()
        )
        yield f"Ranked lists that changed: {', '.join(counts)}. The model-free lane changes by the code alone."


def _moved_title(paired: Document, k: str) -> str:
    step = paired["recall"].get(k)
    if step is None:
        return f"Questions that moved: {figures.count(len(paired['moved']))}"
    flips, here = step["any"], sum(bool(question["change"].get(k)) for question in paired["moved"])
    elsewhere = len(paired["moved"]) - here
    title = f"Questions that moved: {figures.count(flips['gained'])} gained, {figures.count(flips['lost'])} lost at {k}"
    return title + (f" ({figures.count(elsewhere)} more at another k)" if elsewhere else "")


def _arrows(changes: Document) -> str:
    """`▲@1 ▼@5`: the direction at each k where the fraction moved."""
    return " ".join(f"{'▲' if change > 0 else '▼'}@{k}" for k, change in changes.items() if change)


def _leg_ranks(question: Document, leg: str) -> str:
    ranks = question.get("legs", {}).get(leg)
    return figures.ranks(ranks["base"], ranks["head"]) if ranks else figures.NOTHING
