from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval_eval.github.escaping import harmless
from retrieval_eval.github.log import MAX_ANNOTATIONS, ActionsLog

PIECES = [
    *("::", ":", "##[", "##", "[", "]", "error", "add-mask", "set-output", "stop-commands", "group", "name=x"),
    *(" ", "\t", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u3000", "\xa0", "%0A", "%25", "%"),
    *("\u200b", "\ufe0f", "\u034f", "\xad", "\ufeff", "\x1b[2K", "\x00", "\ud83d", "@octocat", "@org/team"),
    *("::error file=a::b", "##[error]x", "::add-mask::e", ",", "="),
]
HOSTILE = (st.lists(st.sampled_from(PIECES), max_size=12) | st.lists(st.text(max_size=4))).map("".join)


def written_by(act: Callable[[ActionsLog], None]) -> str:
    stream = io.StringIO()
    with redirect_stdout(stream):
        act(ActionsLog(clock=iter(range(100)).__next__))
    return stream.getvalue()


@given(text=HOSTILE)
@example("::error::x")
@example("\u200b::error::x")
@example(":\u200b:error::x")
@example("ok\r::error::x")
@example("text ##\ufe0f[error]x")
@example("\u2003\u3000::add-mask::a")
def test_harmless_text_runs_no_command(runner_commands, text: str) -> None:
    assert runner_commands(harmless(text)) == []


@given(text=HOSTILE)
def test_harmless_text_is_printable_and_pings_nobody(text: str) -> None:
    made = harmless(text)
    assert not any(c in made for c in "\r\x1b\x00\u200b\u2028\ud83d\x85")
    assert "@o" not in made
    assert harmless(made) == made


@pytest.mark.parametrize(
    "text",
    [
        "recall@5 of 470 pairs",
        "crate::store::open failed",
        "a: b",
        "  indented",
        "30 % done",
        "naïve 記憶 😀",
        "[1/3] ##",
    ],
)
def test_plain_text_comes_back_as_it_was(text: str) -> None:
    assert harmless(text) == text.replace("recall@5", "recall\uff205")


@given(text=HOSTILE)
def test_info_and_debug_run_nothing_of_the_text(runner_commands, text: str) -> None:
    assert runner_commands(written_by(lambda log: log.info(text))) == []
    commands = runner_commands(written_by(lambda log: log.debug(text)))
    assert {command.name for command in commands} == {"debug"}


@given(text=HOSTILE)
def test_warning_and_error_are_one_command_whose_lines_run_nothing(runner_commands, text: str) -> None:
    for level in ("warning", "error"):
        (command,) = runner_commands(written_by(lambda log, level=level: getattr(log, level)(text)))
        assert command.name == level
        assert command.data == harmless(text)
        assert runner_commands(command.data) == []


@given(name=HOSTILE, figures=HOSTILE)
def test_group_is_two_commands_and_a_line(runner_commands, name: str, figures: str) -> None:
    def act(log: ActionsLog) -> None:
        with log.group(name) as stage:
            stage.figures = figures

    assert [command.name for command in runner_commands(written_by(act))] == ["group", "endgroup"]


def test_group_closes_with_time_and_figures_outside_the_fold() -> None:
    def act(log: ActionsLog) -> None:
        with log.group("prep") as stage:
            log.info("inside")
            stage.figures = "12 embedded, 19,195 reused"

    assert written_by(act) == "::group::prep\ninside\n::endgroup::\nprep: 1.0 s · 12 embedded, 19,195 reused\n"


def test_group_that_fails_is_closed_and_says_so() -> None:
    def act(log: ActionsLog) -> None:
        with pytest.raises(RuntimeError), log.group("run"):
            raise RuntimeError

    assert written_by(act).endswith("::endgroup::\nrun: failed after 1.0 s\n")


def test_annotations_are_a_handful_and_the_rest_plain_lines() -> None:
    lines = written_by(lambda log: [log.warning(f"w{i}") for i in range(9)] + [log.error(f"e{i}") for i in range(4)])
    assert lines.count("::warning") == MAX_ANNOTATIONS["warning"] <= 5
    assert lines.count("::error") == MAX_ANNOTATIONS["error"] <= 5
    assert "Warning: w8\n" in lines
    assert "Error: e3\n" in lines
    assert "notice" not in lines


def test_masked_secret_is_masked_by_the_runner_and_by_us(runner_commands) -> None:
    def act(log: ActionsLog) -> None:
        log.mask("s3cret")
        log.mask("s3cret")
        log.mask(" \n")
        log.info("Authorization: s3cret")
        log.warning("s3cret in a warning")

    lines = written_by(act).splitlines()
    assert lines == ["::add-mask::s3cret", "Authorization: ***", "::warning::*** in a warning"]


def test_every_line_of_a_masked_text_is_masked() -> None:
    assert written_by(lambda log: log.mask("one\ntwo")) == "::add-mask::one\n::add-mask::two\n"


@pytest.fixture
def package_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("retrieval_eval")
    before = (list(logger.handlers), logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before


def test_records_of_the_package_go_to_the_log_by_level(package_logger: logging.Logger, runner_commands) -> None:
    def act(log: ActionsLog) -> None:
        log.attach()
        child = logging.getLogger("retrieval_eval.cache")
        child.debug("reading %s", "::error::d")
        child.info("%d texts", 3)
        child.warning("line one\n::set-output name=x::y")
        try:
            raise ValueError("::stop-commands::x")
        except ValueError:
            child.exception("broken")
        child.info("%d", "no number")

    text = written_by(act)
    commands = runner_commands(text)
    assert [command.name for command in commands] == ["debug", "warning", "error"]
    assert "\n3 texts\n" in text
    assert "Traceback" in commands[2].data
    assert "a log record of retrieval_eval.cache could not be written: TypeError" in text
