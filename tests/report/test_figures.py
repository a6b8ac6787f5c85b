from __future__ import annotations

import pytest

from retrieval_eval import figures


@pytest.mark.parametrize(("value", "text"), [(0.002, "+0.002"), (-0.002, "\u22120.002"), (0.0004, "0"), (-0.0, "0")])
def test_signed_has_a_real_minus_and_no_signed_zero(value: float, text: str) -> None:
    assert figures.signed(value) == text


@pytest.mark.parametrize(
    ("value", "one_question", "text"),
    [
        (0.0, 1 / 470, "0"),
        (1 / 470, 1 / 470, "+0.002"),
        (0.5 / 470, 1 / 470, "≈ 0"),
        (-0.5 / 470, 1 / 470, "≈ 0"),
        (2 / 4000, 1 / 4000, "+0.0005"),
    ],
)
def test_change_below_one_question_is_none(value: float, one_question: float, text: str) -> None:
    assert figures.change(value, one_question) == text


@pytest.mark.parametrize(
    ("p", "text"), [(1.0, "p = 1.00"), (0.25, "p = 0.25"), (0.0131, "p = 0.013"), (1e-5, "p < 0.001")]
)
def test_p_value(p: float, text: str) -> None:
    assert figures.p_value(p) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (4999, 5000, "> 99 %"),
        (1, 5000, "< 1 %"),
        (97, 100, "97 %"),
        (0, 0, figures.NOTHING),
    ],
)
def test_percent_says_all_or_none_only_when_it_is_so(part: int, whole: int, text: str) -> None:
    assert figures.percent(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.41, "0.4 s"), (9.96, "10 s"), (38.2, "38 s"), (119.4, "119 s"), (1740, "29 min"), (11160, "3.1 h")],
)
def test_duration(seconds: float, text: str) -> None:
    assert figures.duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, ""), (1.0, "█" * 10), (0.95, "█" * 9 + "▌"), (0.004, ""), (0.0125, "▏"), (0.999, "█" * 10)],
)
def test_bar_is_ten_cells_of_eighths(share: float, drawn: str) -> None:
    bar = figures.bar(share)
    assert len(bar) == 10
    assert bar.rstrip("\u00a0") == drawn


def test_counts_and_ranks() -> None:
    assert figures.counted(1, "question") == "1 question"
    assert figures.counted(19195, "session") == "19,195 sessions"
    assert figures.ranks(7, None) == f"7 → {figures.NOTHING}"
