from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrieval_eval.github.comment import CommentMode, Wanted, wanted
from retrieval_eval.github.marker import Marker, is_report_id, read_marker, report_id_of, without_marker

MARKER = Marker("nightly", 500, 2, "a" * 40)


def test_marker_line_reads_back() -> None:
    assert str(MARKER) == f"<!-- retrieval-eval:nightly run=500.2 head={'a' * 40} -->"
    assert read_marker(f"{MARKER}\nbody") == MARKER
    assert read_marker(f"{MARKER}\r\nbody") == MARKER
    assert read_marker(str(Marker("nightly", 0, 1, ""))) == Marker("nightly", 0, 1, "")


@pytest.mark.parametrize(
    "text", ["", "body", " " + str(MARKER), f"> {MARKER}", f"body\n{MARKER}", str(MARKER)[:-1], f"{MARKER} x"]
)
def test_text_that_does_not_begin_with_a_whole_marker_has_none(text: str) -> None:
    assert read_marker(text) is None


def test_marker_is_on_later_runs_of_the_same_report_only() -> None:
    assert MARKER.is_on(str(Marker("nightly", 900, 1, "b" * 40)) + "\nother body")
    assert not MARKER.is_on(str(Marker("nightly-2", 500, 2, "a" * 40)))
    assert not MARKER.is_on(f"> {MARKER}\n\nwhat does this mean?")


@given(name=st.text(max_size=100), other=st.text(max_size=100))
def test_any_name_makes_an_id_and_different_names_different_ones(name: str, other: str) -> None:
    assume(name != other)
    assert is_report_id(report_id_of(name))
    assert report_id_of(name) != report_id_of(other)
    assert read_marker(str(Marker(report_id_of(name), 1, 1, ""))) is not None


def test_id_stays_readable() -> None:
    assert report_id_of("nightly.bm25") == "nightly.bm25"
    assert report_id_of("CI / retrieval (ubuntu)").startswith("CI-retrieval-ubuntu-")
    assert not is_report_id("a\n")
    assert not is_report_id("a -->")


def test_bodies_are_compared_without_marker_and_line_ends() -> None:
    assert without_marker(f"{MARKER}\r\none\r\ntwo\r\n") == without_marker("<!-- other -->\none\ntwo") == "one\ntwo"


def comparison(verdict: str, moved: int = 0, comparable: bool = True) -> dict[str, object]:
    lane = {"recall": {"5": {"verdict": verdict}}, "moved": [{"question_id": "q"}] * moved}
    return {"comparison": {"comparable": comparable, "lanes": {"model-free": lane} if comparable else {}}}


@pytest.mark.parametrize(
    ("mode", "report", "expected"),
    [
        ("always", {}, Wanted.POST),
        ("always", comparison("unchanged"), Wanted.POST),
        ("off", comparison("worse", 3), Wanted.NOTHING),
        ("changes", {}, Wanted.UPDATE_ONLY),
        ("changes", {"comparison": None}, Wanted.UPDATE_ONLY),
        ("changes", comparison("unchanged"), Wanted.UPDATE_ONLY),
        ("changes", comparison("no detectable change", 1), Wanted.POST),
        ("changes", comparison("better", 9), Wanted.POST),
        ("changes", comparison("worse"), Wanted.POST),
        ("changes", comparison("", comparable=False), Wanted.POST),
    ],
)
def test_mode_table(mode: str, report: dict[str, object], expected: Wanted) -> None:
    assert wanted(CommentMode(mode), report) is expected
