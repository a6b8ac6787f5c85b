"""Numbers as people read them: the only place where a figure becomes text. Proportions come as 0-1, times in seconds.

Three digits overall, two in categories (one question of 30 is worth 0.033).
"""

from __future__ import annotations

import math

DASH = "\N{EN DASH}"

NOTHING = DASH
"""No value: an empty group, or a rank that does not exist."""

ALMOST_NOTHING = "≈ 0"
"""A change that is smaller than one question."""

MINUS = "\N{MINUS SIGN}"


def three(value: float) -> str:
    """`0.919`."""
    return f"{value:.3f}"


def two(value: float) -> str:
    """`0.92`."""
    return f"{value:.2f}"


def interval(bounds: tuple[float, float] | list[float]) -> str:
    """`0.49-0.57` with a longer dash; narrow, so that three stand side by side on a phone."""
    low, high = bounds
    return f"{two(low)}{DASH}{two(high)}"


def signed(value: float, digits: int = 3) -> str:
    """`+0.002`, minus 0.002 with a real minus sign, `0`."""
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return "0"
    return f"{'+' if value > 0 else MINUS}{text}"


def change(value: float, one_question: float) -> str:
    """A change of recall. What is smaller than one question reads `≈ 0`; a fourth digit where one question needs it."""
    if value == 0:
        return "0"
    if is_less_than_one_question(value, one_question):
        return ALMOST_NOTHING
    return signed(value, 3 if one_question >= 0.001 else 4)


def is_less_than_one_question(value: float, one_question: float) -> bool:
    """Whether a change is below 1/n, with room for rounding in the last digits."""
    return abs(value) < one_question * (1 - 1e-6)


def p_number(p: float) -> str:
    """`0.25`, `0.013`, `< 0.001`."""
    if p < 0.001:
        return "< 0.001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.3f}"


def p_value(p: float) -> str:
    """`p = 0.25`, `p < 0.001`."""
    number = p_number(p)
    return f"p {number}" if number.startswith("<") else f"p = {number}"


def count(number: int) -> str:
    """`19,195`."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """`1 question`, `2 questions`."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def percent(part: int, whole: int) -> str:
    """`97 %`, never rounded up to 100 or down to 0; a dash when there is no whole."""
    if not whole:
        return NOTHING
    share = 100 * part / whole
    if 0 < share < 1:
        return "< 1 %"
    return "> 99 %" if 99 < share < 100 else f"{share:.0f} %"


def rank(value: int | None) -> str:
    """A rank from 1; a dash when the session is not in the list."""
    return NOTHING if value is None else count(value)


def ranks(base: int | None, head: int | None) -> str:
    """`7 → 4`."""
    return f"{rank(base)} → {rank(head)}"


def duration(seconds: float) -> str:
    """`0.4 s`, `38 s`, `29 min`, `3.1 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def bar(share: float, cells: int = 10) -> str:
    """`█████████▌ `: a proportion in eighths of a cell, padded to `cells` with no-break spaces."""
    eighths = min(max(math.floor(share * cells * 8 + 0.5), 0), cells * 8)
    drawn = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return drawn.ljust(cells, "\u00a0")
