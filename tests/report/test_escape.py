from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.report.escape import cell, link_target, plain, visible

# Everything that Unicode has, lone surrogates too, with the awkward characters more often.
texts = st.text(st.one_of(st.sampled_from("|`\\<>&[]*_~$@#:!\n\r\t\x1b\x0c\x00\u202e\u200b\ud83d🦔"), st.characters()))


@given(texts, st.integers(8, 200))
def test_visible_is_one_line_within_its_limit_and_can_be_written(text: str, limit: int) -> None:
    shown = visible(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert all(char.isprintable() for char in shown)
    assert shown.encode().decode() == shown


@given(texts, st.integers(8, 200))
def test_cell_opens_no_cell_code_html_or_escape(text: str, limit: int) -> None:
    shown = cell(text, limit)
    without_dollars = shown.replace("<span>$</span>", "")
    assert not set(without_dollars) & set("|`\\<>[]*_~$")
    assert re.sub(r"&(?:#\d+|amp|lt|gt);", "", without_dollars).count("&") == 0


@given(texts)
def test_cell_mentions_nobody_and_links_to_nothing(text: str) -> None:
    shown = cell(text)
    assert not re.search(r"@\w|://|www\.|GH-\d", shown, re.IGNORECASE)
    assert not re.search(r"(?<!&)#\w", shown)


@given(texts)
def test_plain_starts_no_workflow_command(text: str) -> None:
    shown = plain(text, 200)
    assert "::" not in shown
    assert "##[" not in shown


def test_ordinary_text_is_left_alone() -> None:
    assert cell("What did I plant in spring (the blue ones)?") == "What did I plant in spring (the blue ones)?"
    assert cell("👍🏽 é 漢字") == "👍🏽 é 漢字"


def test_what_cannot_be_seen_is_shown() -> None:
    assert visible("a\u202eb\x1b[0m\x00\u200b\ud83d\U000e0041", 80) == "a\\u202eb\\x1b[0m\\x00\\u200b\\ud83d\\U000e0041"


def test_cut_falls_between_escapes() -> None:
    assert visible("abcdef\u202e\u202e", 13) == "abcdef\\u202e…"
    assert visible("abcdef\u202e\u202e", 12) == "abcdef…"


def test_text_of_exactly_the_limit_is_not_cut() -> None:
    assert visible("x" * 20, 20) == "x" * 20
    assert visible("x" * 21, 20) == "x" * 19 + "…"


def test_a_very_long_text_is_cut_although_its_beginning_is_white_space() -> None:
    assert visible(" " * 1000 + "end", 10) == "…"


def test_links_are_http_and_end_where_we_end_them() -> None:
    assert link_target("https://example.invalid/a/1?b=2#c") == "https://example.invalid/a/1?b=2#c"
    assert (
        link_target("https://example.invalid/a) [b](x `|\n") == "https://example.invalid/a%29%20%5Bb%5D%28x%20%60%7C%0A"
    )
    assert link_target("javascript:alert(1)") is None
