from __future__ import annotations

import io
import subprocess
import sys

import pytest

from retrieval_eval.progress import Lines
from retrieval_eval.terminal import Bars, progress_on


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(steps: list[tuple[float, int]], total: int | None) -> list[str]:
    """Lines written when `steps` = (seconds that pass, units then done)."""
    clock, stream = Clock(), io.StringIO()
    with Lines(stream, clock).stage("embed", total, "sessions") as stage:
        for seconds, done in steps:
            clock.now_s += seconds
            stage.advance(done)
    return stream.getvalue().splitlines()


def test_first_line_after_a_second_then_one_every_ten() -> None:
    lines = run([(0.25, 5)] * 100, 500)
    assert lines == [
        "embed: 20 of 500 sessions (4 %), 20.0 sessions/s, 24 s left",
        "embed: 220 of 500 sessions (44 %), 20.0 sessions/s, 14 s left",
        "embed: 420 of 500 sessions (84 %), 20.0 sessions/s, 4.0 s left",
        "embed: 500 sessions, 20.0 sessions/s, took 25 s",
    ]


def test_long_stage_says_minutes_left() -> None:
    assert run([(120.0, 1240)], 19195)[0] == "embed: 1,240 of 19,195 sessions (6 %), 10.3 sessions/s, 29 min left"


def test_short_stage_is_one_line() -> None:
    assert run([(0.1, 3), (0.1, 4)], 7) == ["embed: 7 sessions, 35.0 sessions/s, took 0.2 s"]


def test_total_may_be_unknown() -> None:
    assert run([(2.0, 30)], None) == [
        "embed: 30 sessions, 15.0 sessions/s",
        "embed: 30 sessions, 15.0 sessions/s, took 2.0 s",
    ]


def test_stage_without_work_or_time() -> None:
    assert run([], 0) == ["embed: 0 sessions, took 0.0 s"]
    assert run([], 10) == ["embed: 0 of 10 sessions (0 %), took 0.0 s"]


def test_interrupted_stage_says_how_far_it_came() -> None:
    clock, stream = Clock(), io.StringIO()
    with pytest.raises(KeyboardInterrupt), Lines(stream, clock).stage("embed", 10, "sessions") as stage:
        clock.now_s += 0.5
        stage.advance(4)
        raise KeyboardInterrupt
    assert stream.getvalue() == "embed: 4 of 10 sessions (40 %), 8.0 sessions/s, took 0.5 s\n"


def test_bars_only_on_a_terminal() -> None:
    assert isinstance(progress_on(Screen(), Clock()), Bars)
    assert isinstance(progress_on(io.StringIO(), Clock()), Lines)


def test_bar_is_drawn_on_a_terminal() -> None:
    screen = Screen()
    with progress_on(screen, Clock()).stage("embed", 3, "sessions") as stage:
        stage.advance(3)
    assert "3 of 3 sessions" in screen.getvalue()


def test_slow_libraries_are_imported_on_first_use_only() -> None:
    code = (
        "import sys, retrieval_eval.progress, retrieval_eval.terminal\n"
        "import retrieval_eval.report.schema, retrieval_eval.report.markdown\n"
        "print(sorted({'jinja2', 'jsonschema', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
