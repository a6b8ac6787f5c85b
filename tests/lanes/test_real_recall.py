"""The whole pipeline on real data gives the real crate's numbers: prep and run, with its own vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_eval.dataset.text import render
from retrieval_eval.model import Lane

PAIRS = 120


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory, new_bench: Callable[[], Any]) -> dict[str, Any]:
    """Reports on the composed set of 48 sessions, by retriever, beside what they must say."""
    data = tmp_path_factory.mktemp("composed") / "48.json"
    subprocess.run([sys.executable, str(shared / "data" / "compose.py"), str(data)], check=True, capture_output=True)
    arrays = np.load(shared / "golden" / "vectors.npz")
    sessions = dict(zip(map(str, arrays["session_ids"]), arrays["session_vectors"], strict=True))
    questions = dict(zip(map(str, arrays["question_ids"]), arrays["question_vectors"], strict=True))
    vectors = {}
    for item in json.loads(data.read_text(encoding="utf-8")):
        vectors[item["question"]] = questions[item["question_id"]]
        for session_id, turns in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True):
            vectors[render(turns)] = sessions[session_id]
    bench = new_bench()
    model = bench.model(vectors.__getitem__, dims=384)
    bench.prep(data, model)
    golden = json.loads((shared / "golden" / "recall.json").read_text(encoding="utf-8"))["--sessions 48"]
    return {
        "golden": golden,
        "okapi": bench.run("builtin:hybrid", model),
        "fts5": bench.run("builtin:hybrid-fts5", model),
        "semantic": bench.run("builtin:semantic", model),
        "bm25": bench.run("builtin:bm25", model, lanes=(Lane.MODEL_DEPENDENT,)),
    }


def numbers(scores: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A report's scores in the form of the expected ones, confidence intervals and ceilings left out."""
    groups = {"overall": scores["overall"], **scores["categories"]}
    return {
        name: {
            "n": group["n"],
            **{k: {kind: cell[kind] for kind in ("fraction", "any", "all")} for k, cell in group["recall"].items()},
        }
        for name, group in groups.items()
        if group["n"]
    }


@pytest.mark.parametrize(
    ("report", "part", "path"),
    [
        ("okapi", ("lanes", "model-dependent"), "hybrid_okapi"),
        ("okapi", ("lanes", "model-free"), "semantic"),
        ("okapi", ("legs", "semantic"), "semantic"),
        ("okapi", ("legs", "bm25"), "okapi"),
        ("fts5", ("lanes", "model-dependent"), "hybrid_fts5"),
        ("fts5", ("lanes", "model-free"), "semantic"),
        ("fts5", ("legs", "bm25"), "fts5"),
        ("semantic", ("lanes", "model-dependent"), "semantic"),
        ("bm25", ("lanes", "model-dependent"), "okapi"),
    ],
)
def test_recall_overall_and_per_category_is_that_of_the_golden_lists(
    real: dict[str, Any], report: str, part: tuple[str, str], path: str
) -> None:
    want = real["golden"]["paths"][path]
    found = numbers(real[report][part[0]][part[1]])
    assert want["overall"]["n"] == PAIRS
    assert set(found) == set(want)
    for name, group in want.items():
        assert found[name].keys() == group.keys()
        for key, cell in group.items():
            assert found[name][key] == pytest.approx(cell, abs=1e-12), (name, key)


@pytest.mark.parametrize("leg", ["okapi", "fts5"])
def test_questions_without_a_bm25_match_are_counted(real: dict[str, Any], leg: str) -> None:
    assert real[leg]["legs"]["bm25"]["empty"] == real["golden"]["bm25_leg_empty"][leg]


def test_headline_numbers_are_those_of_the_issue(real: dict[str, Any]) -> None:
    rounded = {
        leg: [
            round(real[leg]["lanes"]["model-dependent"]["overall"]["recall"][k]["fraction"], 3)
            for k in ("1", "5", "10")
        ]
        for leg in ("fts5", "okapi")
    }
    assert rounded == {"fts5": [0.468, 0.865, 0.912], "okapi": [0.530, 0.919, 0.967]}


def test_the_control_is_okapi_alone(real: dict[str, Any]) -> None:
    want = real["golden"]["paths"]["okapi"]["overall"]
    assert real["fts5"]["controls"]["bm25"] == pytest.approx({k: want[k]["fraction"] for k in ("1", "5", "10")})
