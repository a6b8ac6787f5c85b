"""What a reader sees before any fold: the heading in words, one sentence, one table, one definition, the notes.

Owns the wording of verdicts. The heading and the table hold our own words and figures only; whatever else is
here may hold text from outside and must be escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from retrieval_eval import figures
from retrieval_eval.report.document import (
    Document,
    compared_headline,
    compared_lanes,
    comparison,
    failed_questions,
    headline_k,
    headline_lane,
    shown_ks,
)
from retrieval_eval.report.escape import visible

LEFT_OUT = {"no gold": "without gold"}
"""Reasons to leave a question out, where the count reads badly before the reason's name."""


@dataclass(frozen=True, slots=True)
class HeadRow:
    """A row of the first table; `tone` is `strong` for the number, `faint` for another lane, else `plain`."""

    label: str
    values: tuple[str, ...]
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Headline:
    """`moved` and `lead` (who moved; how sure that is) are empty where there is nothing to compare."""

    heading: str
    moved: str
    lead: str
    ks: tuple[int, ...]
    rows: tuple[HeadRow, ...]
    definition: str
    notes: tuple[str, ...]


def headline(document: Document) -> Headline:
    """Everything before the first fold."""
    moved, lead = _lead(document)
    return Headline(
        heading=_heading(document),
        moved=moved,
        lead=lead,
        ks=shown_ks(document),
        rows=tuple(_rows(document)),
        definition=_definition(document),
        notes=tuple(_notes(document)),
    )


def _heading(document: Document) -> str:
    k, overall = headline_k(document), headline_lane(document)["overall"]
    if not overall["n"]:
        return "Retrieval: nothing was scored (n = 0)"
    score = overall["recall"][str(k)]
    low, high = score["ci95"]
    name = f"recall@{k}"
    number = f"{name} {figures.three(score['fraction'])} ± {figures.three((high - low) / 2)}"
    number += f" (n = {figures.count(overall['n'])})"
    paired = _paired_at_k(document)
    if paired is None:
        made = comparison(document)
        return f"Retrieval: {number}" if made is None else f"Retrieval: NOT COMPARED · {number}"
    return _verdict(paired, name)


def _verdict(paired: Document, name: str) -> str:
    """Whether `name` moved, and whether that is more than noise."""
    step = f"{name} {figures.three(paired['base'])} → {figures.three(paired['head'])}"
    verdict = paired["verdict"]
    if verdict in {"better", "worse"}:
        return f"Retrieval got {verdict}: {step}, more than noise"
    if verdict == "unchanged":
        return f"Retrieval: unchanged · {name} {figures.three(paired['head'])}"
    if figures.is_less_than_one_question(paired["change"], paired["one_question"]):
        return f"Retrieval: no detectable change · {name} {figures.three(paired['head'])}"
    return f"Retrieval: no detectable change · {step} is within noise"


def _lead(document: Document) -> tuple[str, str]:
    """Who moved; how sure that is and what would have been seen."""
    paired, k = _paired_at_k(document), headline_k(document)
    if paired is None:
        return "", ""
    if paired["verdict"] == "unchanged":
        return f"No question moved at {k}", ""
    flips, share = paired["any"], paired["fraction"]
    partly = (share["better"], share["worse"]) != (flips["gained"], flips["lost"])
    moved = f"{figures.counted(flips['gained'], 'question')} gained, {figures.count(flips['lost'])} lost at {k}"
    parts = [
        *([f"more gold found for {figures.count(share['better'])}, less for {figures.count(share['worse'])}"] * partly),
        figures.p_value(paired["p_permutation_holm"]),
    ]
    if paired["verdict"] == "no detectable change" and paired["detectable_questions"] is not None:
        seen = figures.counted(paired["detectable_questions"], "question")
        parts.append(f"a change of {seen} or more would have been seen")
    return moved, " · ".join(parts)


def _rows(document: Document) -> Iterator[HeadRow]:
    """At most seven: the number, what qualifies it, the base and the change, the other lane."""
    ks, overall = [str(k) for k in shown_ks(document)], headline_lane(document)["overall"]
    if not overall["n"]:
        yield HeadRow(document["headline"]["lane"], (figures.NOTHING,) * len(ks), "strong")
        return
    scores = [overall["recall"][k] for k in ks]
    paired = compared_headline(document)
    label = document["headline"]["lane"] if paired is None else "this change"
    yield HeadRow(label, tuple(figures.three(score["fraction"]) for score in scores), "strong")
    yield HeadRow("95 % interval", tuple(figures.interval(score["ci95"]) for score in scores))
    yield HeadRow("best possible", tuple(figures.two(score["ceiling"]) for score in scores))
    if paired is not None:
        steps = [paired["recall"].get(k) for k in ks]
        yield HeadRow("base", tuple(figures.three(step["base"]) if step else figures.NOTHING for step in steps))
        yield HeadRow("change", tuple(_change(step) for step in steps))
    for name, lane in document["lanes"].items():
        if name != document["headline"]["lane"] and lane["overall"]["n"]:
            recall = lane["overall"]["recall"]
            yield HeadRow(name, tuple(figures.three(recall[k]["fraction"]) for k in ks), "faint")


def _change(step: Document | None) -> str:
    return figures.NOTHING if step is None else figures.change(step["change"], step["one_question"])


def _definition(document: Document) -> str:
    k, overall, dataset = headline_k(document), headline_lane(document)["overall"], document["dataset"]
    haystack = dataset["haystack"]
    sizes = dict.fromkeys((figures.count(haystack["min"]), figures.count(haystack["max"])))
    left_out = [
        f"{figures.count(n)} {LEFT_OUT.get(reason, reason)} left out" for reason, n in dataset["dropped"].items() if n
    ]
    inside = ", ".join([*left_out, f"{figures.DASH.join(sizes)} sessions each"])
    parts = [
        f"{document['headline']['lane']} lane",
        f"share of the gold sessions in the top k, mean over n = {figures.count(overall['n'])} questions "
        f"of {visible(dataset['file'], 60)} ({inside})",
    ]
    if overall["n"]:
        score = overall["recall"][str(k)]
        parts.append(f"at {k}: any gold {figures.three(score['any'])}, all gold {figures.three(score['all'])}")
    return " · ".join(parts)


def _notes(document: Document) -> Iterator[str]:
    """What a reader must know before trusting the number, gravest first; the run's own warnings last."""
    n = headline_lane(document)["overall"]["n"]
    failed = failed_questions(document)
    if failed:
        yield (
            f"{figures.count(len(failed))} of {figures.counted(n, 'question')} have no answer and count as "
            f"nothing found; the first: {failed[0]['failed']}"
        )
    bm25 = document["legs"].get("bm25")
    if bm25 is not None and bm25["empty"] * 2 > bm25["overall"]["n"]:
        yield (
            f"The BM25 leg came back empty for {figures.count(bm25['empty'])} of "
            f"{figures.counted(bm25['overall']['n'], 'question')}: for these the hybrid is the semantic leg."
        )
    for k, pairs in document["controls"].get("k_not_below_haystack", {}).items():
        if pairs:
            yield (
                f"k ≥ haystack: {figures.count(pairs)} of {figures.counted(n, 'question')} "
                f"{'has' if pairs == 1 else 'have'} at most {k} sessions to choose from, "
                f"so recall@{k} says nothing there."
            )
    drift = document.get("drift")
    if drift is not None and drift["lists_changed"]:
        yield (
            f"Lane drift: {figures.counted(drift['lists_changed'], 'ranked list')} changed because the model gave "
            f"another query vector than the cached one (largest difference {drift['max_difference']:.1e})."
        )
    if document["dataset"].get("gold_sources", {}).get("has_answer"):
        fallback = figures.counted(document["dataset"]["gold_sources"]["has_answer"], "question")
        yield f"Gold of {fallback} was read off has_answer turns, for want of answer_session_ids: it may be incomplete."
    yield from (str(warning) for warning in document["warnings"])


def _paired_at_k(document: Document) -> Document | None:
    lane = compared_lanes(document).get(document["headline"]["lane"], {})
    paired: Document | None = lane.get("recall", {}).get(str(headline_k(document)))
    return paired
