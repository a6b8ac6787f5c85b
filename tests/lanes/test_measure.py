"""The loop over a cache: the same outcomes however it is spread, and the cases that broke other harnesses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrieval_eval import measure as module
from retrieval_eval.errors import RetrieverError
from retrieval_eval.measure import Plan, measure
from retrieval_eval.model import Lane
from retrieval_eval.retriever.spec import parse_spec


class Counter:
    """A stage that counts."""

    done = 0

    def advance(self, n: int = 1) -> None:
        self.done += n


def ranked(report: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    return {
        question["question_id"]: {lane: found["ranked"] for lane, found in question["lanes"].items()}
        for question in report["questions"]
    }


def plan(bench: Any, retriever: str = "builtin:hybrid", lanes: tuple[Lane, ...] = tuple(Lane)) -> Plan:
    questions = {"q": np.ones(16, np.float32)}
    return Plan(bench.cache, parse_spec(retriever), lanes, 10, questions)


@pytest.mark.parametrize("retriever", ["builtin:hybrid", "builtin:hybrid-fts5"])
def test_outcomes_are_the_same_in_one_process_and_in_two(
    bench: Any, dataset: Callable[..., Any], retriever: str
) -> None:
    bench.prep(dataset(21, 12))
    fresh = {f"q{'_' * (number % 3)}{number}": np.ones(16, np.float32) for number in range(21)}
    asked = Plan(bench.cache, parse_spec(retriever), tuple(Lane), 10, fresh)
    stages = [Counter(), Counter()]
    one, two = (measure(asked, stage, processes) for stage, processes in zip(stages, (1, 2), strict=True))
    assert one == two
    assert [outcome.question_id for outcome in one.outcomes] == list(fresh)
    assert all(outcome.failed is None and len(outcome.ranked) == 2 for outcome in one.outcomes)
    assert [stage.done for stage in stages] == [21, 21]


def test_a_retriever_without_a_path_for_the_lanes_is_refused(bench: Any, dataset: Callable[..., Any]) -> None:
    bench.prep(dataset(2, 3))
    with pytest.raises(RetrieverError, match=r"builtin:bm25.*has no path for the lanes"):
        measure(plan(bench, "builtin:bm25", (Lane.MODEL_FREE,)), Counter())


def test_a_question_that_the_store_refuses_is_a_failed_outcome_and_the_others_stand(
    bench: Any, question: Callable[..., Any]
) -> None:
    sessions = {"a": "the heron", "b": "the kiln", "c": "the ferry"}
    bench.prep([question("q1", "heron\0?", sessions, ["a"]), question("q2", "the kiln", sessions, ["b"])])
    report = bench.run("builtin:hybrid-fts5")
    first, second = report["questions"]
    assert "full-text search refused the query" in first["failed"]
    assert first["lanes"]["model-dependent"]["ranked"] == first["lanes"]["model-free"]["ranked"] == []
    assert "failed" not in second
    assert second["lanes"]["model-dependent"]["ranked"][0] == "b"
    assert report["lanes"]["model-dependent"]["overall"]["n"] == 2


def test_a_session_id_shared_by_two_questions_keeps_each_ones_own_text(
    bench: Any, question: Callable[..., Any]
) -> None:
    one = {"shared": "the heron nests", "x1": "rain", "x2": "soup", "x3": "bikes"}
    two = {"y1": "snow", "shared": "the kiln cools", "y2": "tea", "y3": "trams"}
    data = [question("q1", "heron nests", one, ["shared"]), question("q2", "kiln cools", two, ["shared"])]
    for instances in (data, data[::-1]):
        bench.prep(instances)
        report = bench.run("builtin:bm25", lanes=(Lane.MODEL_DEPENDENT,))
        assert report["lanes"]["model-dependent"]["overall"]["recall"]["1"]["fraction"] == 1
        for name, sessions in (("q1", one), ("q2", two)):
            assert set(ranked(report)[name]["model-dependent"]) <= set(sessions)


def test_labels_answers_and_unknown_fields_change_no_list(bench: Any, dataset: Callable[..., Any]) -> None:
    plain = dataset(6, 9)
    labelled = copy.deepcopy(plain)
    for instance in labelled:
        instance["answer"] = instance["question"]
        for turns in instance["haystack_sessions"]:
            turns[0].update(has_answer=True, note="the heron and the kiln")
    bench.prep(plain)
    before = bench.run()
    bench.prep(labelled)
    after = bench.run()
    assert ranked(after) == ranked(before)
    assert (after["lanes"], after["legs"]) == (before["lanes"], before["legs"])
    assert after["cache"] == {"reused": before["cache"]["embedded"], "embedded": 0}


def test_the_word_answer_in_a_question_does_not_find_gold_by_its_id(bench: Any, question: Callable[..., Any]) -> None:
    sessions = {"filler": "the heron", "answer_1": "the kiln", "other": "the ferry"}
    bench.prep([question("q1", "answer_1 answer", sessions, ["answer_1"])])
    report = bench.run("builtin:bm25", lanes=(Lane.MODEL_DEPENDENT,))
    assert ranked(report)["q1"]["model-dependent"] == []


def test_equal_sessions_rank_alike_in_repeated_runs_and_by_a_stated_rule(
    bench: Any, question: Callable[..., Any]
) -> None:
    same = dict.fromkeys(("mm", "aa", "zz"), "the heron by the weir")
    bench.prep([question("q1", "heron", {**same, "b": "kiln", "c": "quilt", "d": "tea", "e": "tram"}, ["aa"])])
    first, second = bench.run(), bench.run()
    assert first == second
    semantic = [name for name in ranked(first)["q1"]["model-free"] if name in same]
    assert semantic == ["zz", "aa", "mm"]
    low, high = first["controls"]["ties"]["lowest"]["5"], first["controls"]["ties"]["highest"]["5"]
    assert low <= first["lanes"]["model-dependent"]["overall"]["recall"]["5"]["fraction"] <= high


def test_questions_are_embedded_anew_and_the_distance_to_the_cached_vectors_is_told(
    bench: Any, dataset: Callable[..., Any], vector_of: Callable[[str], np.ndarray]
) -> None:
    bench.prep(dataset(6, 9))
    assert bench.run()["drift"] == {"max_difference": 0.0, "lists_changed": 0, "questions": 6}
    report = bench.run(model=bench.model(lambda text: vector_of(text) * np.float32(-1)))
    largest = max(float(np.abs(2 * vector_of(item["question"])).max()) for item in dataset(6, 9))
    assert report["drift"] == {"max_difference": pytest.approx(largest), "lists_changed": 6, "questions": 6}


def test_a_large_cache_is_spread_over_the_cores_and_a_small_one_is_not(
    bench: Any, dataset: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def in_processes(given: Plan, pairs: int, processes: int) -> Any:
        asked.append(processes)
        return iter(())

    monkeypatch.setattr(module, "_in_processes", in_processes)
    monkeypatch.setattr(module, "available_cores", lambda: 7)
    bench.prep(dataset(2, 3))
    measure(plan(bench), Counter())
    assert asked == []
    monkeypatch.setattr(module, "ROWS_FOR_PROCESSES", 6)
    measure(plan(bench), Counter())
    assert asked == [7]
