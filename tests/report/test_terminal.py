from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from retrieval_eval.terminal import Bars, print_report


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(document: dict[str, Any]) -> str:
    stream = io.StringIO()
    print_report(document, stream)
    return stream.getvalue()


def test_report_is_plain_text_that_runs_no_command(scenario: str, document: dict[str, Any]) -> None:
    text = printed(document)
    assert text.startswith("Retrieval")
    assert all(char.isprintable() or char in "\n\u00a0" for char in text)
    assert "##[" not in text
    assert not re.search(r"^\s*::", text, re.MULTILINE)


def test_report_shows_the_number_and_the_categories(make: Callable[[str], dict[str, Any]]) -> None:
    text = printed(make("no detectable change"))
    assert re.search(r"this change +│ +0\.463 │ +0\.938 │ +0\.988", text)
    assert re.search(r"multi-session +│ 30 │ +(▲\d+ ?)?(▼\d+)? +│ 0\.32", text)
    assert "2 questions gained, 1 lost at 5 · p = 1.00" in text


def test_long_lists_end_with_a_count(make: Callable[[str], dict[str, Any]]) -> None:
    assert "and 6 more" in printed(make("worse"))


def test_markup_in_texts_is_text(make: Callable[[str], dict[str, Any]]) -> None:
    document = make("no comparison")
    document["warnings"] = ["[bold]kept[/bold] :tada:"]
    assert "[bold]kept[/bold] :tada:" in printed(document)


def test_bar_counts_on_a_terminal() -> None:
    screen = Screen()
    with Bars(screen).stage("embed", 1240, "sessions") as stage:
        stage.advance(1000)
        stage.advance(240)
    assert "1,240 of 1,240 sessions" in screen.getvalue()


def test_narrow_terminal_keeps_each_stage_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    screen = Screen()
    with Bars(screen).stage("embed questions", 470, "questions") as stage:
        stage.advance(470)
    last = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).strip())[-1]
    assert re.fullmatch(r"embed questions 470 of 470 questions ([\d,.]+/s)? +[\d:]+", last.strip())


def test_narrow_terminal_shows_whole_categories_rather_than_bars(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[str], dict[str, Any]]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    screen = Screen()
    print_report(make("no comparison"), screen)
    assert "single-session-preference" in screen.getvalue()
    assert "█" not in screen.getvalue()


def test_bar_without_an_end() -> None:
    screen = Screen()
    with Bars(screen).stage("read", None, "pairs") as stage:
        stage.advance()
    assert "1 pairs" in screen.getvalue()
