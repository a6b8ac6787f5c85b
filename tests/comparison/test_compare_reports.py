from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.cli import main
from retrieval_eval.compare import COMPARED_LINES, with_comparison
from retrieval_eval.errors import ReportError, RetrieverError
from retrieval_eval.model import Lane
from retrieval_eval.pipeline import Effects, Model, RunRequest, run
from retrieval_eval.report.markdown import page
from retrieval_eval.report.schema import validate
from retrieval_eval.retriever.spec import parse_spec

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def hybrid(run_sample: Run) -> dict[str, Any]:
    return run_sample("builtin:hybrid")


@pytest.fixture(scope="module")
def semantic(run_sample: Run) -> dict[str, Any]:
    return run_sample("builtin:semantic")


def swapped(document: dict[str, Any], number: int, ranks: tuple[int, int]) -> dict[str, Any]:
    """The document with two places of one question's headline list exchanged."""
    changed = copy.deepcopy(document)
    ranked = changed["questions"][number]["lanes"]["model-dependent"]["ranked"]
    first, second = ranks
    ranked[first], ranked[second] = ranked[second], ranked[first]
    return changed


def test_compared_in_one_run_equals_compared_from_two_reports(
    run_sample: Run, hybrid: dict[str, Any], semantic: dict[str, Any]
) -> None:
    in_one_run = run_sample("builtin:hybrid", base="builtin:semantic")
    assert in_one_run["comparison"] == with_comparison(hybrid, semantic, "builtin:semantic")["comparison"]
    validate(json.loads(json.dumps(in_one_run)), "report")


def test_against_itself_nothing_moved(hybrid: dict[str, Any]) -> None:
    comparison = with_comparison(hybrid, hybrid, "base.json")["comparison"]
    for lane in comparison["lanes"].values():
        assert (lane["moved"], lane["lists_changed"]) == ([], 0)
        assert {step["verdict"] for step in lane["recall"].values()} == {"unchanged"}
    heading = page(with_comparison(hybrid, hybrid, "base.json")).splitlines()[0]
    assert heading.startswith("### Retrieval: unchanged · ")


def test_a_lost_question_is_named_with_both_ranks(hybrid: dict[str, Any]) -> None:
    number, question = next(
        (i, q)
        for i, q in enumerate(hybrid["questions"])
        if q["lanes"]["model-dependent"]["first_gold_rank"] == 1 and len(q["gold"]) == 1
    )
    head = swapped(hybrid, number, (0, 5))
    comparison = with_comparison(head, hybrid, "base.json")["comparison"]["lanes"]["model-dependent"]
    assert comparison["lists_changed"] == 1
    (moved,) = comparison["moved"]
    assert moved["question_id"] == question["question_id"]
    assert (moved["base_rank"], moved["head_rank"]) == (1, 6)
    assert moved["k"] == {"1": "lost", "5": "lost"}
    assert moved["change"] == {"1": -1.0, "5": -1.0}
    assert moved["legs"]["bm25"]["base"] == question["legs"]["bm25"]["first_gold_rank"]
    n = comparison["n"]
    assert comparison["recall"]["5"]["change"] == pytest.approx(-1 / n)
    assert comparison["recall"]["5"]["any"]["lost"] == 1


@pytest.mark.parametrize("line", COMPARED_LINES)
def test_cards_that_disagree_are_not_compared_and_the_line_is_named(hybrid: dict[str, Any], line: str) -> None:
    base = copy.deepcopy(hybrid)
    base["card"][line] = "something else"
    document = with_comparison(hybrid, base, "base.json")
    comparison = document["comparison"]
    assert not comparison["comparable"]
    assert comparison["lanes"] == {}
    assert [d["line"] for d in comparison["differences"]] == [line]
    assert "NOT COMPARED" in page(document)


def test_the_retriever_may_differ(hybrid: dict[str, Any], semantic: dict[str, Any]) -> None:
    assert hybrid["card"]["retriever"] != semantic["card"]["retriever"]
    assert hybrid["card"]["path_model_dependent"] != semantic["card"]["path_model_dependent"]
    assert with_comparison(hybrid, semantic, "base")["comparison"]["comparable"]


def test_only_lanes_that_ran_in_both_are_compared(run_sample: Run, hybrid: dict[str, Any]) -> None:
    dependent = run_sample("builtin:hybrid", lanes=(Lane.MODEL_DEPENDENT,))
    assert list(with_comparison(hybrid, dependent, "b")["comparison"]["lanes"]) == ["model-dependent"]


def test_a_base_without_the_headline_lane_is_not_compared_and_the_line_is_named(
    run_sample: Run, hybrid: dict[str, Any]
) -> None:
    document = with_comparison(hybrid, run_sample("builtin:hybrid", lanes=(Lane.MODEL_FREE,)), "b")
    assert document["comparison"]["lanes"] == {}
    assert document["comparison"]["differences"] == [
        {"line": "lanes", "base": "model-free", "head": "model-dependent, model-free"}
    ]
    assert "model-dependent, model-free" in page(document)


@pytest.mark.parametrize(
    ("base", "reason"), [("no-such-program-here", "cannot be started"), ("builtin:bm25", "has no path for the lanes")]
)
def test_a_base_that_cannot_be_measured_costs_the_comparison_and_not_the_numbers(
    run_sample: Run, base: str, reason: str
) -> None:
    alone = run_sample("builtin:hybrid", lanes=(Lane.MODEL_FREE,))
    document = run_sample("builtin:hybrid", base=base, lanes=(Lane.MODEL_FREE,))
    validate(json.loads(json.dumps(document)), "report")
    assert "comparison" not in document
    assert document["lanes"] == alone["lanes"]
    (warning,) = document["warnings"]
    assert "NOT COMPARED" in warning
    assert reason in warning


def failed(document: dict[str, Any], numbers: range) -> dict[str, Any]:
    """The document as it were if its retriever had failed on these questions."""
    changed = copy.deepcopy(document)
    for number in numbers:
        question = changed["questions"][number]
        question["failed"] = "ended before it answered"
        question["lanes"] = {lane: {"ranked": [], "first_gold_rank": None} for lane in question["lanes"]}
    return changed


def test_a_base_that_failed_on_questions_makes_no_gains(hybrid: dict[str, Any]) -> None:
    comparison = with_comparison(hybrid, failed(hybrid, range(10)), "base.json")["comparison"]
    lane = comparison["lanes"]["model-dependent"]
    assert (lane["n"], lane["moved"]) == (len(hybrid["questions"]) - 10, [])
    assert lane["recall"]["5"]["verdict"] == "unchanged"


def test_a_head_that_failed_on_questions_has_lost_them(hybrid: dict[str, Any]) -> None:
    lane = with_comparison(failed(hybrid, range(10)), hybrid, "base.json")["comparison"]["lanes"]["model-dependent"]
    assert lane["n"] == len(hybrid["questions"])
    assert lane["recall"]["5"]["any"]["lost"] >= 8
    assert lane["recall"]["5"]["verdict"] == "worse"


def test_a_base_that_answered_nothing_is_not_compared(hybrid: dict[str, Any]) -> None:
    document = with_comparison(hybrid, failed(hybrid, range(len(hybrid["questions"]))), "base.json")
    assert [d["line"] for d in document["comparison"]["differences"]] == ["answered by the retriever"]
    assert "NOT COMPARED" in page(document)


def test_questions_on_which_the_base_failed_are_a_warning_of_this_comparison_only(hybrid: dict[str, Any]) -> None:
    base = copy.deepcopy(hybrid)
    base["questions"][3]["lanes"]["model-dependent"] = {"ranked": [], "first_gold_rank": None}
    base["questions"][3]["failed"] = "ended before it answered"
    document = with_comparison(hybrid, base, "base.json")
    (warning,) = document["warnings"]
    n = len(hybrid["questions"])
    assert warning.startswith(f"the base failed on 1 of {n} questions, ")
    assert warning.endswith("; the first: ended before it answered")
    assert with_comparison(document, hybrid, "base.json")["warnings"] == []


def test_equal_cards_with_other_gold_are_refused(hybrid: dict[str, Any]) -> None:
    base = copy.deepcopy(hybrid)
    base["questions"][3]["gold"] = ["elsewhere"]
    with pytest.raises(ReportError, match=base["questions"][3]["question_id"]):
        with_comparison(hybrid, base, "base.json")


def test_compare_command_reads_two_files(
    tmp_path: Path, hybrid: dict[str, Any], semantic: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, document in (("base.json", semantic), ("head.json", hybrid)):
        (tmp_path / name).write_text(json.dumps(document))
    markdown = tmp_path / "report.md"
    arguments = ["compare", str(tmp_path / "base.json"), str(tmp_path / "head.json"), "--markdown", str(markdown)]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["comparison"]["base"] == "base.json"
    assert "base.json" in markdown.read_text()


def test_bm25_alone_is_the_same_control_for_every_retriever(
    run_sample: Run, hybrid: dict[str, Any], semantic: dict[str, Any]
) -> None:
    alone = run_sample("builtin:bm25")
    fractions = {k: recall["fraction"] for k, recall in alone["lanes"]["model-dependent"]["overall"]["recall"].items()}
    assert fractions == hybrid["controls"]["bm25"] == semantic["controls"]["bm25"] == alone["controls"]["bm25"]


def test_a_program_that_is_not_there_is_named_before_the_model_is_asked_for(
    sample_cache: Path, effects: Effects
) -> None:
    def find_model(_: object) -> Model:
        raise AssertionError("too late")

    with pytest.raises(RetrieverError, match="no such program"):
        run(RunRequest(cache=sample_cache, spec=parse_spec("./no-such-store --stdio")), find_model, effects)
