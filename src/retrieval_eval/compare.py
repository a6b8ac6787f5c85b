"""Two reports beside each other: whether they may be compared, and what moved. From documents to a document."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict
from typing import Any

from retrieval_eval.model import Judged
from retrieval_eval.scoring.comparison import LaneComparison, MovedQuestion
from retrieval_eval.scoring.comparison import compare as compare_judged

Document = Mapping[str, Any]

COMPARED_LINES = (
    "dataset_sha256",
    "pairs",
    "excluded",
    "gold_source",
    "session_text",
    "model",
    "model_revision",
    "pooling",
    "max_tokens",
    "query_prefix",
    "passage_prefix",
    "limit",
    "k",
    "metric",
)
"""Card lines that define the measurement and must agree. The lines that describe the retriever (its name, paths, legs,
fusion and ties) may differ: they are what a comparison is about."""


BASE_NOTE = "the base "
"""How warnings about a base begin: they belong to a comparison and go when another one is made."""


def with_comparison(head: Document, base: Document, label: str) -> dict[str, Any]:
    """`head` with its `comparison` against `base`, which the report calls `label`.

    Where cards disagree, or the headline lane did not run in both, nothing is compared and the differing lines are
    named. Questions on which the base failed are left out, with a warning: against nothing, anything is a gain. Those
    on which the head failed stay in, as misses. Raises `ReportError` where equal cards hide different questions.
    """
    unanswered = {question["question_id"] for question in base["questions"] if "failed" in question}
    differences = [
        {"line": line, "base": base["card"].get(line), "head": head["card"].get(line)}
        for line in COMPARED_LINES
        if base["card"].get(line) != head["card"].get(line)
    ]
    shared = [lane for lane in head["lanes"] if lane in base["lanes"]]
    if head["headline"]["lane"] not in shared:
        differences.append({"line": "lanes", "base": ", ".join(base["lanes"]), "head": ", ".join(head["lanes"])})
    if len(unanswered) == len(base["questions"]):
        differences.append({"line": "answered by the retriever", "base": 0, "head": len(head["questions"])})
    lanes = {}
    if not differences:
        answered, base_answered = _without(head, unanswered), _without(base, unanswered)
        lanes = {lane: _lane(answered, base_answered, lane) for lane in shared}
    comparison = {"base": label, "comparable": not differences, "differences": differences, "lanes": lanes}
    own = [warning for warning in head["warnings"] if not warning.startswith(BASE_NOTE)]
    return {**head, "comparison": comparison, "warnings": [*_base_failures(base), *own]}


def _base_failures(base: Document) -> list[str]:
    """The one warning that a base needs in the report of its successor, if it needs one."""
    failures = [question["failed"] for question in base["questions"] if "failed" in question]
    if not failures:
        return []
    count = f"{len(failures)} of {len(base['questions'])} questions"
    return [f"{BASE_NOTE}failed on {count}, which are left out of the comparison; the first: {failures[0]}"]


def _without(document: Document, names: Container[str]) -> Document:
    """The document with only those of its questions that are not among `names`."""
    return {**document, "questions": [each for each in document["questions"] if each["question_id"] not in names]}


def _lane(head: Document, base: Document, lane: str) -> dict[str, Any]:
    compared = compare_judged(_judged(base, lane), _judged(head, lane), head["k"])
    questions = {question["question_id"]: question for question in head["questions"]}
    base_questions = {question["question_id"]: question for question in base["questions"]}
    changed = sum(
        question["lanes"][lane]["ranked"] != base_questions[name]["lanes"][lane]["ranked"]
        for name, question in questions.items()
    )
    return {
        "n": compared.n,
        "recall": {str(k): {**asdict(change), "ci95": list(change.ci95)} for k, change in compared.recall.items()},
        "lists_changed": changed,
        "moved": [_moved(moved, questions, base_questions) for moved in compared.moved],
        "categories": _categories(compared),
    }


def _judged(document: Document, lane: str) -> list[Judged]:
    return [
        Judged(
            question["question_id"],
            question["category"],
            tuple(question["gold"]),
            tuple(question["lanes"][lane]["ranked"]),
        )
        for question in document["questions"]
    ]


def _categories(compared: LaneComparison) -> dict[str, Any]:
    return {
        name: {"n": category.n, "recall": {str(k): asdict(change) for k, change in category.recall.items()}}
        for name, category in compared.categories.items()
    }


def _moved(moved: MovedQuestion, heads: Mapping[str, Document], bases: Mapping[str, Document]) -> dict[str, Any]:
    head, base = heads[moved.question_id], bases[moved.question_id]
    legs = {
        leg: {"base": base["legs"][leg]["first_gold_rank"], "head": head["legs"][leg]["first_gold_rank"]}
        for leg in head.get("legs", {})
        if leg in base.get("legs", {})
    }
    return {
        "question_id": moved.question_id,
        "category": head["category"],
        "question": head["question"],
        "k": {str(k): move.value for k, move in moved.k.items()},
        "base_rank": moved.base_rank,
        "head_rank": moved.head_rank,
        "change": {str(k): change for k, change in moved.change.items()},
        "legs": legs,
    }
