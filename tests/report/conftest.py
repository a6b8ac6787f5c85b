"""Report documents of our own making, one per scenario, computed from invented ranks so that their figures agree."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

Document = dict[str, Any]

SIZES = {
    "single-session-user": 16,
    "single-session-assistant": 14,
    "single-session-preference": 8,
    "multi-session": 30,
    "temporal-reasoning": 32,
    "knowledge-update": 20,
}
QUESTIONS = (
    "How many beehives did I say I would move to the orchard?",
    "Which of the two ferries left first, the one to the island or the night boat?",
    "What did you suggest as a glaze for the teapot with the chipped lid?",
    "Where do I keep the spare key of the allotment shed now?",
    "What should I bring to the choir weekend, given what I told you about my knees?",
    "On what date did I post the second parcel to my aunt?",
)
HOSTILE = (
    "a | b `c | d` ``e`` ``` f",
    "</details><img src=x onerror=alert(1)> <!-- retrieval-eval:report --> <script>",
    "@octocat see #123, GH-7, octo/repo#9 and https://evil.example/x or www.evil.example",
    "![pixel](https://evil.example/p.png) [click](javascript:alert(1)) <https://evil.example>",
    "$\\frac{1}{2}$ **bold** _em_ ~~gone~~ [^1] :tada: &lt; &#124; \\| \\",
    "right\u202eleft \u2066iso\u2069 zero\u200bwidth \x1b[31mred\x1b[0m \x00 \x0c form \ud83d half",
    "line one\nline two\r\n\r\n## heading\n| row |\n---\n::error::no\n##[error]no",
    "🦔" * 300,
)


def group(questions: list[Document], ks: list[int]) -> Document:
    """Mean recall over `questions`, whose `found` are the ranks of their gold sessions (None: not found)."""
    n = len(questions)
    recall = {}
    for k in ks if n else []:
        shares = [sum(rank is not None and rank <= k for rank in q["found"]) / len(q["found"]) for q in questions]
        mean = sum(shares) / n
        half = 1.96 * (sum((share - mean) ** 2 for share in shares) / n / n) ** 0.5
        recall[str(k)] = {
            "fraction": mean,
            "any": sum(share > 0 for share in shares) / n,
            "all": sum(share == 1 for share in shares) / n,
            "ci95": [max(mean - half, 0.0), min(mean + half, 1.0)],
            "ceiling": sum(min(k, len(q["found"])) / len(q["found"]) for q in questions) / n,
        }
    return {"n": n, "recall": recall}


def scores(questions: list[Document], ks: list[int], **more: object) -> Document:
    categories = {name: group([q for q in questions if q["category"] == name], ks) for name in SIZES}
    return {**more, "overall": group(questions, ks), "categories": categories}


def invented(n_by_category: dict[str, int], seed: int, spread: float) -> list[Document]:
    """Questions with made-up ranks for their one or two gold sessions; a larger `spread` is a worse retriever."""
    dice = random.Random(seed)  # noqa: S311 -- invented ranks, repeatable
    made = []
    for category, n in n_by_category.items():
        for _ in range(n):
            ranks = [1 + int(dice.expovariate(1 / spread)) for _ in range(1 + (category == "multi-session"))]
            found = [rank if rank <= 10 else None for rank in ranks]
            text = f"{QUESTIONS[len(made) % len(QUESTIONS)][:-1]} ({len(made)})?"
            made.append({"id": f"q{len(made):04d}", "category": category, "question": text, "found": found})
    return made


def first(found: list[int | None]) -> int | None:
    return min((rank for rank in found if rank is not None), default=None)


def row(question: Document, lanes: list[str], max_k: int, legs: bool) -> Document:
    gold = [f"{question['id']}-gold{i}" for i in range(len(question["found"]))]
    ranked = [f"{question['id']}-s{i}" for i in range(max_k)]
    for name, rank in zip(gold, question["found"], strict=True):
        if rank is not None and rank <= max_k:
            ranked[rank - 1] = name
    rank = first(question["found"])
    made = {key: question[key] for key in ("category", "question")} | {"question_id": question["id"], "gold": gold}
    made["lanes"] = {lane: {"ranked": ranked, "first_gold_rank": rank} for lane in lanes}
    if legs:
        bm25 = None if rank is None else rank + 2
        made["legs"] = {"semantic": {"first_gold_rank": rank}, "bm25": {"first_gold_rank": bm25}}
    return made


def report(
    sizes: dict[str, int] | None = None, ks: tuple[int, ...] = (1, 5, 10), spread: float = 2.2, empty: int = 3
) -> Document:
    """A whole document: both lanes, both legs, no comparison."""
    sizes, lanes, measured = SIZES if sizes is None else sizes, ["model-dependent", "model-free"], list(ks)
    questions, n = invented(sizes, 7, spread), sum(sizes.values())
    semantic, bm25 = invented(sizes, 8, spread * 1.3), invented(sizes, 9, spread * 2)
    paths = {"model-dependent": (questions, "search_hybrid"), "model-free": (semantic, "search")}
    random_recall = {str(k): min(k / 48, 1.0) for k in measured}
    return {
        "schema_version": 1,
        "tool": {"name": "retrieval-eval", "version": "0.1.0"},
        "k": measured,
        "headline": {"lane": lanes[0], "k": 5 if 5 in measured else measured[-1]},
        "lanes": {lane: scores(paths[lane][0], measured, path=paths[lane][1]) for lane in lanes},
        "legs": {"semantic": scores(semantic, measured, empty=0), "bm25": scores(bm25, measured, empty=min(empty, n))},
        "controls": {
            "random": random_recall,
            "bm25": random_recall,
            "ties": {"lowest": random_recall, "highest": random_recall},
            "k_not_below_haystack": {},
        },
        "card": card(n, measured),
        "dataset": dataset(sizes),
        "cache": {"reused": 4871, "embedded": 12},
        "timings": {"run_s": 38.2, "report_s": 0.41},
        "questions": [row(question, lanes, measured[-1], True) for question in questions],
        "warnings": [],
    }


def card(n: int, ks: list[int]) -> Document:
    return {
        "dataset": "longmemeval_s.json",
        "dataset_sha256": "0123456789abcdef" * 4,
        "pairs": n,
        "excluded": "8 abstention",
        "gold_source": "answer_session_ids",
        "session_text": "role: content of every turn, joined by newlines (rendering 1)",
        "model": "BAAI/bge-small-en-v1.5",
        "model_revision": "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
        "pooling": "mean, L2",
        "max_tokens": 512,
        "query_prefix": "",
        "retriever": "builtin:hybrid",
        "fusion": "RRF k=25, semantic first",
        "recency_weight": 0,
        "k": ",".join(map(str, ks)),
        "ties": "equal cosine: newest first; equal fused score: row id (hash of question and session id)",
    }


def dataset(sizes: dict[str, int]) -> Document:
    n = sum(sizes.values())
    return {
        "file": "longmemeval_s.json",
        "sha256": "0123456789abcdef" * 4,
        "instances": n + 8,
        "pairs": n,
        "sessions": 48 * n,
        "distinct_sessions": 40 * n,
        "haystack": {"min": 38, "median": 48, "max": 62},
        "categories": dict(sizes),
        "dropped": {"abstention": 8, "no gold": 0},
        "gold_sources": {"answer_session_ids": n, "has_answer": 0},
        "duplicate_session_ids": 0,
        "gold_not_in_haystack": 0,
        "empty_sessions": 1,
        "truncated_sessions": 39 * n,
    }


def compared(document: Document, moves: list[tuple[int, int, int, int]], verdict: str, p: float) -> Document:
    """Add a comparison: (first index, count, +1 gained or -1 lost, k) moved questions."""
    lanes = {}
    for lane, measured in document["lanes"].items():
        n = measured["overall"]["n"]
        moved = [
            moved_row(document["questions"][i], sign, k)
            for start, size, sign, k in moves
            for i in range(start, start + size)
        ]
        recall = {
            k: step(score["fraction"], moved, k, n, verdict, p) for k, score in measured["overall"]["recall"].items()
        }
        categories = {
            name: {"n": scored["n"], "recall": category_steps(scored, [m for m in moved if m["category"] == name])}
            for name, scored in measured["categories"].items()
        }
        lanes[lane] = {"n": n, "recall": recall, "lists_changed": len(moved), "moved": moved, "categories": categories}
    document["comparison"] = {"base": "builtin:hybrid-fts5", "comparable": True, "differences": [], "lanes": lanes}
    return document


def moved_row(question: Document, sign: int, k: int) -> Document:
    near, far = k, None if k == 10 else k + 3
    base, head = (far, near) if sign > 0 else (near, far)
    kept = {key: question[key] for key in ("question_id", "category", "question")}
    legs = {"semantic": {"base": 9, "head": 9}, "bm25": {"base": base, "head": head}}
    flip = {"k": {str(k): "gained" if sign > 0 else "lost"}, "change": {str(k): float(sign)}}
    return kept | flip | {"base_rank": base, "head_rank": head, "legs": legs}


def step(head: float, moved: list[Document], k: str, n: int, verdict: str, p: float) -> Document:
    gained = sum(m["k"].get(k) == "gained" for m in moved)
    lost = sum(m["k"].get(k) == "lost" for m in moved)
    change, p = (gained - lost) / n, p if gained or lost else 1.0
    return {
        "base": min(max(head - change, 0.0), 1.0),
        "head": head,
        "change": change,
        "ci95": [change - 0.02, change + 0.02],
        "p_permutation": p,
        "p_permutation_holm": p,
        "any": {"gained": gained, "lost": lost, "p_mcnemar": p, "p_mcnemar_holm": p},
        "fraction": {"better": gained, "worse": lost},
        "detectable_questions": 6,
        "one_question": 1 / n,
        "verdict": verdict if gained or lost else "unchanged",
    }


def category_steps(scored: Document, moved: list[Document]) -> Document:
    made = {}
    for k, score in scored["recall"].items():
        signs = [m["k"].get(k) for m in moved]
        flips = {"gained": signs.count("gained"), "lost": signs.count("lost")}
        made[k] = {"base": score["fraction"], "head": score["fraction"], "change": 0.0} | flips
    return made


def no_change() -> Document:
    return compared(report(), [(40, 2, +1, 5), (8, 1, -1, 5), (70, 1, -1, 1)], "no detectable change", 1.0)


def not_compared() -> Document:
    document = report()
    differences = [
        {"line": "model_revision", "base": "an older one", "head": document["card"]["model_revision"]},
        {"line": "query_prefix", "base": "query: ", "head": ""},
        {"line": "max_tokens", "base": None, "head": 512},
    ]
    base = {"base": "base.json", "comparable": False, "differences": differences, "lanes": {}}
    return document | {"comparison": base}


def one_lane_no_legs() -> Document:
    document = report()
    del document["lanes"]["model-dependent"]
    document |= {"legs": {}, "headline": {"lane": "model-free", "k": 5}}
    for question in document["questions"]:
        del question["legs"]
        del question["lanes"]["model-dependent"]
    document["controls"]["ties"] = None
    return document


def empty_categories() -> Document:
    document = report({"single-session-user": 3, "knowledge-update": 2})
    for lane in document["lanes"].values():
        del lane["categories"]["multi-session"]
    document["controls"]["k_not_below_haystack"] = {"10": 5}
    return document


def nothing_scored() -> Document:
    return report({})


def trouble() -> Document:
    document = report(empty=101)
    document["warnings"] = [
        "The comment could not be posted: the token is read-only in a fork; this summary is complete.",
        "The embedding cache was not saved: the service answered 503.",
    ]
    for question in document["questions"][:3]:
        question["failed"] = "no answer to search within 60 s"
    document["dataset"]["gold_sources"] = {"answer_session_ids": 118, "has_answer": 2}
    document["drift"] = {"max_difference": 2.3e-4, "lists_changed": 4, "questions": 120}
    return document


def hostile() -> Document:
    document = no_change()
    questions = document["questions"]
    for question, text in zip(questions, HOSTILE * 2, strict=False):
        question |= {"question": text, "question_id": text, "category": text, "failed": text}
    for question in questions[16:]:
        question["lanes"]["model-dependent"]["first_gold_rank"] = None
        question |= {"question": HOSTILE[len(question["question"]) % 8], "category": HOSTILE[4]}
    for lane in document["lanes"].values():
        lane["categories"] = dict(zip(HOSTILE, [*lane["categories"].values()] * 2, strict=False))
    for moved in document["comparison"]["lanes"]["model-dependent"]["moved"]:
        moved |= {"question": HOSTILE[1], "category": HOSTILE[0]}
    document["warnings"] = list(HOSTILE)
    document["card"]["retriever"] = HOSTILE[0]
    document["dataset"]["file"] = HOSTILE[1]
    document["comparison"]["base"] = HOSTILE[6]
    return document


def long_misses() -> Document:
    document = report({"multi-session": 4000})
    for number, question in enumerate(document["questions"]):
        tail = "where did the 🦔 go | and `why` & when, exactly, on that long evening by the weir? " * 5
        question["question"] = f"Miss {number}: {tail}"
        for lane in question["lanes"].values():
            lane["first_gold_rank"] = None
    return document


SCENARIOS: dict[str, Callable[[], Document]] = {
    "no comparison": report,
    "no detectable change": no_change,
    "unchanged": lambda: compared(report(), [], "unchanged", 1.0),
    "change below one question": lambda: compared(
        report(), [(40, 1, +1, 5), (8, 1, -1, 5)], "no detectable change", 1.0
    ),
    "better": lambda: compared(report(), [(30, 14, +1, 5), (8, 1, -1, 5)], "better", 0.0009),
    "worse": lambda: compared(report(spread=4), [(30, 14, -1, 5), (8, 1, +1, 5), (60, 3, -1, 10)], "worse", 0.004),
    "not compared": not_compared,
    "one lane, no legs": one_lane_no_legs,
    "empty categories": empty_categories,
    "nothing scored": nothing_scored,
    "k of 5 only": lambda: compared(report(ks=(5,)), [(40, 2, +1, 5)], "no detectable change", 0.5),
    "many k": lambda: report(ks=(1, 3, 5, 10, 20, 50)),
    "trouble": trouble,
    "hostile texts": hostile,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario" in metafunc.fixturenames:
        metafunc.parametrize("scenario", list(SCENARIOS))


@pytest.fixture
def document(scenario: str) -> Document:
    """The document of the scenario that the test runs for."""
    return deepcopy(SCENARIOS[scenario]())


@pytest.fixture
def make() -> Callable[[str], Document]:
    """Scenario name → a document of one's own to change."""
    return lambda name: deepcopy(SCENARIOS[name]())


@pytest.fixture(scope="session")
def misses() -> Document:
    """4,000 long questions, none of them found."""
    return long_misses()
