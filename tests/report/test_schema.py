from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.errors import ReportError
from retrieval_eval.report.schema import load, validate

Make = Callable[[str], dict[str, Any]]


def test_every_scenario_is_a_report(scenario: str, document: dict[str, Any]) -> None:
    validate(document, scenario)
    validate(json.loads(json.dumps(document)), scenario)


def test_schema_in_docs_is_the_one_in_the_package(root: Path) -> None:
    link = root / "docs" / "report.schema.json"
    assert link.is_symlink()
    assert link.resolve() == root / "src" / "retrieval_eval" / "report" / "report.schema.json"


def test_keys_that_are_not_known_are_allowed(make: Make) -> None:
    validate(make("no comparison") | {"later": 1}, "report.json")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("k",), [], r"\$\.k: got an array, expected minItems 1"),
        (("headline", "lane"), "fast", r'\$\.headline\.lane: got "fast", expected one of model-dependent, model-free'),
        (("headline", "k"), 3, r"\$\.headline\.k: got 3, expected one of \[1, 5, 10\]"),
        (("lanes",), {}, r"\$\.lanes: got an object, expected minProperties 1"),
        (
            ("lanes", "model-free", "overall", "recall", "5", "fraction"),
            1.5,
            r"model-free.*overall\.recall.*5.*fraction: got 1\.5, expected maximum 1",
        ),
        (("lanes", "model-free", "overall", "n"), "120", r'overall\.n: got "120", expected integer'),
        (("lanes", "model-free", "overall", "n"), True, r"overall\.n: got true, expected integer"),
        (
            ("lanes", "model-free", "overall"),
            {"n": 3, "recall": {}},
            r"overall\.recall: got the k \[\], expected the k \[1, 5, 10\]",
        ),
        (("legs", "lexical"), {}, r'\$\.legs: got "lexical", expected one of semantic, bm25'),
        (("warnings",), ["fine", 7], r"\$\.warnings\[1\]: got 7, expected string"),
        (("questions", 4, "question_id"), None, r"\$\.questions\[4\]\.question_id: got null, expected string"),
        (("questions", 4, "lanes", "model-free", "first_gold_rank"), 0, r"first_gold_rank: got 0, expected minimum 1"),
        (("questions", 4, "gold"), [], r"\$\.questions\[4\]\.gold: got an array, expected minItems 1"),
        (("questions", 4, "lanes"), {}, r"questions\[4\]\.lanes: got none, expected model-dependent, model-free"),
        (("controls", "random"), {"five": 0.1}, r"\$\.controls\.random: got .*, expected a k as a string"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(
    make: Make, path: tuple[str | int, ...], value: object, says: str
) -> None:
    document = make("no comparison")
    inner: Any = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(ReportError, match=says) as caught:
        validate(document, "base.json")
    assert str(caught.value).startswith("base.json: ")


def test_missing_key_is_named(make: Make) -> None:
    document = make("no comparison")
    del document["dataset"]["sessions"]
    with pytest.raises(ReportError, match=r"\$\.dataset: got keys file, sha256, .*expected key 'sessions'"):
        validate(document, "base.json")


def test_long_wrong_value_is_shown_short_and_on_one_line(make: Make) -> None:
    with pytest.raises(ReportError) as caught:
        validate(make("no comparison") | {"questions": "x\n\x1b" * 10_000}, "base.json")
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON: got Expecting value"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON|not a report"),
        (b"[]", "not a report: got an array, expected a JSON object"),
        (b"{}", "schema_version: got none, expected 1"),
        (b'{"schema_version": 2}', "schema_version: got 2, expected 1"),
        (b'{"schema_version": true}', "schema_version: got true, expected 1"),
        (b'{"schema_version": NaN}', "not JSON: got NaN is no JSON number"),
        (b'{"schema_version": 1}', r"\$: got keys schema_version, expected key 'tool'"),
    ],
)
def test_file_that_is_no_report_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "base.json"
    path.write_bytes(content)
    with pytest.raises(ReportError, match=says) as caught:
        load(path)
    assert caught.value.where == str(path)
    assert caught.value.hint


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ReportError, match=re.escape("base.json: cannot read the report: got No such file or directory")
    ):
        load(tmp_path / "base.json")


def test_report_file_is_read_back_as_it_was(tmp_path: Path, make: Make) -> None:
    document = make("hostile texts")
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert load(path) == document
