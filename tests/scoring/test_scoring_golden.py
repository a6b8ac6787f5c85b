"""The recall that follows from the lists of the real crate and of rank-bm25, number for number."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.model import Judged
from retrieval_eval.scoring.aggregate import score

KS = (1, 5, 10)
SIZES = {"--sessions 48": "lists_48.json.gz", "--sessions 300": "lists_300.json.gz"}


def read_gzip(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture(scope="module")
def questions(shared: Path) -> dict[str, Any]:
    instances = read_gzip(shared / "data" / "longmemeval_oracle_122.json.gz")
    return {one["question_id"]: one for one in instances if not one["question_id"].endswith("_abs")}


@pytest.fixture(scope="module", params=SIZES)
def size(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def lists(shared: Path, size: str) -> dict[str, dict[str, list[str]]]:
    """Session ids by path and question."""
    golden = read_gzip(shared / "golden" / SIZES[size])
    okapi = read_gzip(shared / "golden" / "okapi_lists.json.gz")[size]
    paths: dict[str, dict[str, list[str]]] = {}
    for one in golden["instances"]:
        positions = {
            "semantic": one["semantic"],
            "fts5": one["bm25"],
            "hybrid_fts5": one["hybrid"]["10"],
            **okapi[one["question_id"]],
        }
        for path, ranked in positions.items():
            ids = [golden["session_ids"][one["haystack"][position]] for position in ranked]
            paths.setdefault(path, {})[one["question_id"]] = ids
    return paths


@pytest.mark.parametrize("path", ["semantic", "fts5", "hybrid_fts5", "okapi", "hybrid_okapi"])
def test_golden_recall_is_reproduced(
    shared: Path, size: str, questions: dict[str, Any], lists: dict[str, dict[str, list[str]]], path: str
) -> None:
    expected = json.loads((shared / "golden" / "recall.json").read_text())[size]
    scores = score(
        [
            Judged(question_id, one["question_type"], tuple(one["answer_session_ids"]), tuple(lists[path][question_id]))
            for question_id, one in questions.items()
        ],
        KS,
    )
    groups = {"overall": scores.overall, **scores.categories}
    assert scores.overall.n == expected["n"] == 120
    assert groups.keys() == expected["paths"][path].keys()
    for name, group in groups.items():
        wanted = expected["paths"][path][name]
        assert group.n == wanted["n"]
        for k in KS:
            ours = group.recall[k]
            theirs = wanted[str(k)]
            assert (ours.fraction, ours.any, ours.all) == pytest.approx(
                (theirs["fraction"], theirs["any"], theirs["all"]), abs=1e-12
            ), (name, k)
