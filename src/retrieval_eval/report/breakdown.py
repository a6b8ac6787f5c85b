"""Where the number comes from: categories, legs, controls, every reading, the questions that were missed or failed.

Each function gives one section, or None where the document has nothing to put into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from retrieval_eval import figures
from retrieval_eval.report.document import (
    Document,
    compared_headline,
    failed_questions,
    headline_k,
    headline_lane,
    shown_ks,
)
from retrieval_eval.report.section import Column, Section, Table, at_columns


def categories(document: Document) -> Section | None:
    """Recall per category with a bar at the headline's k; questions gained and lost where there is a comparison."""
    k, ks = str(headline_k(document)), shown_ks(document)
    groups = headline_lane(document)["categories"]
    paired = (compared_headline(document) or {}).get("categories")
    if not groups:
        return None
    rows = []
    for name, group in groups.items():
        values = [_recall(group, str(shown), figures.two) for shown in ks]
        drawn = figures.bar(group["recall"][k]["fraction"]) if group["n"] else ""
        moved = [_moved(paired.get(name), k)] if paired is not None else []
        rows.append((name, figures.count(group["n"]), *moved, *values, drawn))
    columns = (
        Column("category", "name"),
        Column("n", "figure"),
        *([Column("moved", "rank")] if paired is not None else []),  # before what a phone cuts off
        *at_columns(ks),
        Column("", "bar"),
    )
    return Section("categories", "By category", Table(columns, tuple(rows)), (_worth(groups, k),))


def legs(document: Document) -> Section | None:
    """The halves beside the whole, with their empty lists."""
    if not document["legs"]:
        return None
    ks = [str(k) for k in shown_ks(document)]
    names = {"semantic": "semantic", "bm25": "BM25"}
    rows = [
        (names.get(name, name), *(_recall(leg["overall"], k, figures.three) for k in ks), figures.count(leg["empty"]))
        for name, leg in document["legs"].items()
    ]
    path = headline_lane(document)["path"]
    rows.append(
        (
            "hybrid" if path == "search_hybrid" else path,
            *(_recall(headline_lane(document)["overall"], k, figures.three) for k in ks),
            "",
        )
    )
    columns = (Column("leg"), *at_columns(shown_ks(document)), Column("empty", "figure"))
    sentences = ("empty: questions for which the leg found nothing; the other leg then decides alone.",)
    return Section("legs", "Which half found it", Table(columns, tuple(rows), len(rows) - 1), sentences)


def controls(document: Document) -> Section | None:
    """What the number must be read against: chance, BM25 alone, the best possible, and the luck of ties."""
    overall = headline_lane(document)["overall"]
    if not overall["n"]:
        return None
    ks, recall = [str(k) for k in shown_ks(document)], overall["recall"]
    given = document["controls"]
    rows = [("random ranking", *_by_k(given["random"], ks))]
    rows.append(("BM25 alone", *_by_k(given["bm25"], ks)))
    strong = len(rows)
    rows.append(("measured", *(figures.three(recall[k]["fraction"]) for k in ks)))
    rows.append(("best possible", *(figures.three(recall[k]["ceiling"]) for k in ks)))
    if given.get("ties"):
        rows.append(("every tie falls badly", *_by_k(given["ties"]["lowest"], ks)))
        rows.append(("every tie falls well", *_by_k(given["ties"]["highest"], ks)))
    sentences = ["Best possible is below 1 where a question has more gold sessions than k."]
    drift = document.get("drift")
    if drift is not None:
        largest = drift["max_difference"]
        sentences.append(
            f"Lane drift: fresh and cached query vectors differ by at most {largest:.1e}; "
            f"{figures.counted(drift['lists_changed'], 'ranked list')} changed because of that."
            if largest
            else "Lane drift: none, fresh and cached query vectors are equal to the bit."
        )
    table = Table((Column(""), *at_columns(shown_ks(document))), tuple(rows), strong)
    return Section("controls", "What to read the number against", table, tuple(sentences))


def readings(document: Document) -> Section | None:
    """Every lane at every measured k: fraction, any, all, interval, ceiling."""
    rows = tuple(
        (f"{name} @{k}", *map(figures.three, (score["fraction"], score["any"], score["all"])), *_bounds(score))
        for name, lane in document["lanes"].items()
        for k, score in lane["overall"]["recall"].items()
    )
    if not rows:
        return None
    titles = ("fraction", "any", "all", "95 % interval", "best possible")
    columns = (Column("lane and k"), *(Column(title, "figure") for title in titles))
    sentences = (
        "fraction: share of the gold sessions in the top k; any: at least one of them is there; all: every one is. "
        "Other reports print any of the three as recall.",
    )
    return Section("every reading", "Every reading of recall", Table(columns, rows), sentences)


def hardest(document: Document) -> Section | None:
    """Questions of the headline lane without any gold in the top k: never found first, then by falling rank."""
    lane, k = document["headline"]["lane"], headline_k(document)
    missed = []
    for question in document["questions"]:
        found = question["lanes"].get(lane, {}).get("first_gold_rank")
        if not question.get("failed") and (found is None or found > k):
            missed.append((found is not None, -(found or 0), question, found))
    if not missed:
        return None
    missed.sort(key=lambda entry: entry[:2])
    has_legs = bool(document["legs"])
    rows = tuple(
        (
            f"{question['category']} · {question['question']}",
            figures.rank(found),
            *([_leg_rank(question, "semantic"), _leg_rank(question, "bm25")] if has_legs else []),
            question["question_id"],
        )
        for _, _, question, found in missed
    )
    columns = [Column("category · question"), Column("gold rank", "rank")]
    columns += [Column("semantic", "rank"), Column("BM25", "rank")] if has_legs else []
    columns += [Column("id", "name")]
    title = f"Hardest questions: {figures.count(len(rows))} without gold in the top {k}"
    sentences = (f"Rank of the first gold session; {figures.NOTHING} is not in the list.",)
    return Section("hardest questions", title, Table(tuple(columns), rows), sentences)


def failed(document: Document) -> Section | None:
    """Questions on which the retriever failed, with its reason."""
    questions = failed_questions(document)
    if not questions:
        return None
    rows = tuple((question["question_id"], question["category"], question["failed"]) for question in questions)
    table = Table((Column("id", "name"), Column("category", "name"), Column("reason")), rows)
    return Section("failed questions", f"Failed in the retriever: {figures.count(len(rows))}", table)


def _worth(groups: Document, k: str) -> str:
    sizes = sorted({group["n"] for group in groups.values() if group["n"]})
    if not sizes:
        return f"Bar: recall@{k}."
    points = list(dict.fromkeys(f"{100 / size:.1f}" for size in reversed(sizes)))
    spread = points[0] if len(points) == 1 else f"{points[0]} to {points[-1]}"
    return f"Bar: recall@{k}. One question is worth {spread} points here."


def _moved(paired: Document | None, k: str) -> str:
    step = (paired or {}).get("recall", {}).get(k)
    if not step or not (step["gained"] or step["lost"]):
        return ""
    signs = (("▲", step["gained"]), ("▼", step["lost"]))
    return " ".join(f"{sign}{figures.count(questions)}" for sign, questions in signs if questions)


def _recall(group: Document, k: str, text: Callable[[float], str]) -> str:
    return text(group["recall"][k]["fraction"]) if group["n"] else figures.NOTHING


def _by_k(values: Document, ks: list[str]) -> Iterator[str]:
    return (figures.three(values[k]) if k in values else figures.NOTHING for k in ks)


def _bounds(score: Document) -> tuple[str, str]:
    low, high = score["ci95"]
    return f"{figures.three(low)}{figures.DASH}{figures.three(high)}", figures.three(score["ceiling"])


def _leg_rank(question: Document, leg: str) -> str:
    return figures.rank(question.get("legs", {}).get(leg, {}).get("first_gold_rank"))
