from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import R, Success

from retrieval_eval.errors import ReportError
from retrieval_eval.pipeline import Effects, score
from retrieval_eval.report.schema import validate
from retrieval_eval.trec import of_sessions, qrels_lines, read_ranked, run_lines

Run = Callable[..., dict[str, Any]]
KS = (1, 5, 10)


@pytest.fixture(scope="module")
def document(run_sample: Run) -> dict[str, Any]:
    return run_sample("builtin:hybrid")


@pytest.fixture
def run_file(document: dict[str, Any], tmp_path: Path) -> Path:
    (tmp_path / "lists.run").write_text("".join(run_lines(document)))
    return tmp_path / "lists.run"


def test_ir_measures_reads_the_files_and_agrees(document: dict[str, Any], run_file: Path) -> None:
    qrels_file = run_file.with_name("gold.qrels")
    qrels_file.write_text("".join(qrels_lines(document)))
    measured = ir_measures.calc_aggregate(
        [*(R @ k for k in KS), *(Success @ k for k in KS)],
        ir_measures.read_trec_qrels(str(qrels_file)),
        ir_measures.read_trec_run(str(run_file)),
    )
    recall = document["lanes"]["model-dependent"]["overall"]["recall"]
    for k in KS:
        assert measured[R @ k] == pytest.approx(recall[str(k)]["fraction"], abs=1e-12)
        assert measured[Success @ k] == pytest.approx(recall[str(k)]["any"], abs=1e-12)


def test_scoring_the_written_run_gives_the_same_scores(
    document: dict[str, Any], run_file: Path, sample_cache: Path, effects: Effects
) -> None:
    scored = score(sample_cache, read_ranked(run_file), "lists.run", KS, effects)
    validate(json.loads(json.dumps(scored)), "report")
    assert scored["lanes"]["model-dependent"]["overall"] == document["lanes"]["model-dependent"]["overall"]
    assert scored["card"]["retriever"] == "lists.run"


def test_json_lines_are_read_as_lists(document: dict[str, Any], tmp_path: Path, run_file: Path) -> None:
    file = tmp_path / "lists.jsonl"
    lines = (
        {"question_id": q["question_id"], "ranked": q["lanes"]["model-dependent"]["ranked"], "extra": 1}
        for q in document["questions"]
    )
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert read_ranked(file) == read_ranked(run_file)


def test_questions_without_a_list_count_as_misses_in_the_open(
    document: dict[str, Any], run_file: Path, sample_cache: Path, effects: Effects
) -> None:
    first = document["questions"][0]["question_id"]
    lists = {question: ranked for question, ranked in read_ranked(run_file).items() if question != first}
    scored = score(sample_cache, {**lists, "stranger": ("a",)}, "lists.run", KS, effects)
    assert scored["lanes"]["model-dependent"]["overall"]["n"] == len(document["questions"])
    assert scored["questions"][0]["failed"] == "the file has no list for this question"
    assert any("questions that the cache does not score: 1" in warning for warning in scored["warnings"])


def test_lists_are_cut_at_the_largest_k_once_repeats_are_gone(
    document: dict[str, Any], run_file: Path, sample_cache: Path, effects: Effects
) -> None:
    lists = {question: (ranked[0], *ranked, "more", "still more") for question, ranked in read_ranked(run_file).items()}
    scored = score(sample_cache, lists, "lists.run", KS, effects)
    assert [q["lanes"] for q in scored["questions"]] == [
        {"model-dependent": q["lanes"]["model-dependent"]} for q in document["questions"]
    ]


def test_no_list_for_any_question_is_refused(sample_cache: Path, effects: Effects) -> None:
    with pytest.raises(ReportError, match="no list for any question"):
        score(sample_cache, {"stranger": ("a",)}, "lists.run", KS, effects)


def test_equal_scores_of_a_foreign_run_are_ordered_by_its_ranks(tmp_path: Path) -> None:
    file = tmp_path / "a.run"
    file.write_text("q Q0 second 2 0.5 x\nq Q0 first 1 0.5 x\nq Q0 best 3 0.9 x\n")
    assert read_ranked(file) == {"q": ("best", "first", "second")}


@pytest.mark.parametrize("start", ["\ufeff", "\n \n"])
def test_json_lines_may_hold_any_character_and_begin_with_a_mark_or_blank_lines(tmp_path: Path, start: str) -> None:
    file = tmp_path / "lists.jsonl"
    line = json.dumps({"question_id": "q", "ranked": ["one\u2028id", "b\x85"]}, ensure_ascii=False)
    file.write_text(f"{start}{line}\r\n", encoding="utf-8")
    assert of_sessions(read_ranked(file), "q", ["one\u2028id", "b\x85"]) == ("one\u2028id", "b\x85")


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("", "is empty"),
        ("q Q0 s 1 0.5\n", "line 1"),
        ("q Q0 s 1 0.5 t\nq Q0 s one 0.5 t\n", "line 2"),
        ("q Q0 s 1 nan t\n", "line 1"),
        ("\n\nq Q0 s 1 0.5\n", "line 3"),
        ('{"question_id": "q"}\n', "line 1"),
        ('{"question_id": 3, "ranked": []}\n', "line 1"),
        ('{"question_id": ' + "[" * 100_000 + "\n", "line 1"),
        ('{"question_id": "q", "ranked": ["a"]}\n{"question_id": "q", "ranked": []}\n', "line 2"),
        ('{"question_id": "q", "ranked": "abc"}\n', "line 1"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, content: str, where: str) -> None:
    file = tmp_path / "lists"
    file.write_text(content)
    with pytest.raises(ReportError, match=where):
        read_ranked(file)


def test_ids_with_white_space_survive_both_ways() -> None:
    question = {"question_id": "a b%", "gold": ["s\t1"], "lanes": {"model-dependent": {"ranked": ["s\t1", "ü 2"]}}}
    document = {"headline": {"lane": "model-dependent", "k": 5}, "questions": [question]}
    lines = list(run_lines(document))
    assert [len(line.split()) for line in lines] == [6, 6]
    lists = {lines[0].split()[0]: tuple(line.split()[2] for line in lines)}
    assert of_sessions(lists, "a b%", ["ü 2", "s\t1"]) == ("s\t1", "ü 2")
