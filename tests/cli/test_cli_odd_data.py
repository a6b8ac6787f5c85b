"""Odd but valid data files, from the file to the report: prep and run as a user starts them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
Question = Callable[[int], dict[str, Any]]
Measure = Callable[..., dict[str, Any]]


@pytest.fixture
def measure(cli: Cli, tmp_path: Path) -> Measure:
    """Preps these questions and gives the report of a run with these options."""

    def call(questions: list[dict[str, Any]], *options: str) -> dict[str, Any]:
        file = tmp_path / "odd.json"
        file.write_text(json.dumps(questions))
        done = cli("prep", file, "--cache", "cache")
        assert done.returncode == 0, done.stderr
        done = cli("run", "--cache", "cache", *options)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    return call


def with_sessions(question: dict[str, Any], sessions: dict[str, str], *gold: str) -> dict[str, Any]:
    return question | {
        "haystack_session_ids": list(sessions),
        "haystack_sessions": [[{"role": "user", "content": text}] if text else [] for text in sessions.values()],
        "haystack_dates": ["2023/05/01 (Mon) 08:00"] * len(sessions),
        "answer_session_ids": list(gold),
    }


def ranks(report: dict[str, Any], leg: str) -> list[int | None]:
    return [question["legs"][leg]["first_gold_rank"] for question in report["questions"]]


SYNTAX = [
    "Who's got the zibble?",
    "zibble AND OR NOT NEAR?",
    "NEAR(zibble, 3)",
    '"zibble',
    "zibble*",
    "-zibble ^zibble +zibble",
    "body:zibble (and so on",
    "zibble; DROP TABLE memories; --",
    "it's 50% zibble/day, isn't it?",
    "{zibble} [x] \\ ' \"",
]


@pytest.mark.parametrize("retriever", ["builtin:bm25", "builtin:hybrid", "builtin:hybrid-fts5"])
def test_query_syntax_is_plain_words(measure: Measure, question: Question, retriever: str) -> None:
    fillers = {f"filler{number}": f"the weather on day {number} was and it so" for number in range(5)}
    questions = [
        with_sessions(question(number) | {"question": text}, {**fillers, "gold": "a zibble lies here"}, "gold")
        for number, text in enumerate(SYNTAX)
    ]
    report = measure(questions, "--retriever", retriever)
    assert report["lanes"]["model-dependent"]["overall"]["n"] == len(SYNTAX)
    assert not [question for question in report["questions"] if "failed" in question]
    if retriever == "builtin:bm25":
        assert report["lanes"]["model-dependent"]["overall"]["recall"]["1"]["fraction"] == 1.0


def test_a_word_far_behind_the_models_cut_is_found_by_the_lexical_leg(measure: Measure, question: Question) -> None:
    fillers = {f"filler{number}": f"we spoke of bread number {number}" for number in range(6)}
    late = "small talk " * 12_000 + " the quillfish swims"
    report = measure(
        [with_sessions(question(0) | {"question": "Where is the quillfish?"}, {**fillers, "gold": late}, "gold")]
    )
    assert ranks(report, "bm25") == [1]
    assert report["lanes"]["model-dependent"]["overall"]["recall"]["5"]["fraction"] == 1.0


def test_small_and_empty_haystacks_make_no_nan(measure: Measure, question: Question) -> None:
    report = measure(
        [
            with_sessions(question(0), {"one": "jar 0"}, "one"),
            with_sessions(question(1), {"a": "jar 1", "b": "bread"}, "a", "b"),
            with_sessions(question(2), {"x": "", "y": ""}, "x"),
            with_sessions(question(3), {}, "gone"),
        ]
    )
    lists = [question["lanes"]["model-dependent"]["ranked"] for question in report["questions"]]
    assert [sorted(ranked) for ranked in lists] == [["one"], ["a", "b"], ["x", "y"], []]
    overall = report["lanes"]["model-dependent"]["overall"]
    assert overall["n"] == 4
    assert overall["recall"]["10"]["fraction"] == 0.75
    assert "NaN" not in json.dumps(report)
    assert report["controls"]["k_not_below_haystack"]["5"] == 4
    assert [warning for warning in report["warnings"] if "gone" in warning]


def test_equal_texts_rank_the_same_in_every_run(measure: Measure, question: Question) -> None:
    sessions = {"zz": "the ferry leaves at seven", "aa": "the ferry leaves at seven", "rain": "rain", "mm": "the ferry"}
    asked = with_sessions(question(0) | {"question": "When does the ferry leave?"}, sessions, "aa")
    first = measure([asked])["questions"]
    assert measure([asked])["questions"] == first
    assert set(first[0]["lanes"]["model-dependent"]["ranked"][:3]) == {"zz", "aa", "mm"}
    newest_first = [name for name in first[0]["lanes"]["model-free"]["ranked"] if name in ("zz", "aa")]
    assert newest_first == ["aa", "zz"]


def test_one_id_in_two_haystacks_stays_in_its_own(measure: Measure, question: Question) -> None:
    report = measure(
        [
            with_sessions(question(0), {"shared": "jar 0 is blue", "only0": "bread"}, "shared"),
            with_sessions(question(1), {"shared": "jar 1 is red", "only1": "bread"}, "shared"),
        ]
    )
    lists = [question["lanes"]["model-dependent"]["ranked"] for question in report["questions"]]
    assert [sorted(ranked) for ranked in lists] == [["only0", "shared"], ["only1", "shared"]]


def test_a_question_that_occurs_in_no_session_has_an_empty_lexical_list(measure: Measure, question: Question) -> None:
    asked = with_sessions(question(0) | {"question": "Vermilion xylophones?"}, {"a": "bread", "b": "rain"}, "a")
    report = measure([asked])
    assert report["legs"]["bm25"]["empty"] == 1
    assert ranks(report, "bm25") == [None]


def test_abstention_and_missing_gold_are_counted_and_not_scored(measure: Measure, question: Question) -> None:
    silent = question(1)
    del silent["answer_session_ids"]
    report = measure([question(0), silent, question(2) | {"question_id": "q2_abs"}])
    assert report["dataset"]["dropped"] == {"abstention": 1, "no gold": 1}
    assert report["lanes"]["model-dependent"]["overall"]["n"] == 1
    assert [question["question_id"] for question in report["questions"]] == ["q0"]


@pytest.mark.parametrize("answer", [3, None, ["a", "b"], 1.5, {"text": "a"}])
def test_answers_of_any_type_are_never_read(measure: Measure, question: Question, answer: object) -> None:
    report = measure([question(0) | {"answer": answer}])
    assert report["lanes"]["model-dependent"]["overall"]["n"] == 1


WRONG = {
    "a question_id twice": ({"question_id": "q0"}, "occurs twice"),
    "no question": ({"question": None}, "'question'"),
    "a list as question_id": ({"question_id": ["q1", "q2"]}, "'question_id'"),
    "gold as a string": ({"answer_session_ids": "answer_1"}, "'answer_session_ids'"),
    "fewer ids than sessions": ({"haystack_session_ids": ["walk", "answer_1"]}, "3 haystack_sessions and 2"),
    "a turn that is text": ({"haystack_sessions": [["hello"], [], []]}, "session 0, turn 0"),
    "a session that is null": ({"haystack_sessions": [None, [], []]}, "session 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_instance_is_named_by_place_and_field(cli: Cli, tmp_path: Path, question: Question, case: str) -> None:
    changes, words = WRONG[case]
    (tmp_path / "odd.json").write_text(json.dumps([question(0), question(1) | changes]))
    done = cli("prep", "odd.json", "--cache", "cache")
    last = done.stderr.strip().splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, "")
    assert last.startswith("error: odd.json: instance 1")
    assert words in last
    assert not list((tmp_path / "cache").iterdir())
