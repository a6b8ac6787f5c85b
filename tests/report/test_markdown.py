from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest

from retrieval_eval import figures
from retrieval_eval.report import markdown
from retrieval_eval.report.budget import characters

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"
MARKER = "<!-- retrieval-eval:report -->"
LINKS = markdown.Links("https://example.invalid/report", "https://example.invalid/run/1")

Make = Callable[[str], dict[str, Any]]


def held(name: str, text: str) -> None:
    """Compare with the golden file, or write it with UPDATE_GOLDEN=1."""
    path = GOLDEN / f"{re.sub('[^a-z0-9]+', '-', name)}.md"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def wrong_rows(text: str) -> list[str]:
    """Rows of a table that have another number of cells than its header; a pipe splits unless it is escaped."""
    wrong: list[str] = []
    width = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        cells = len(re.findall(r"(?<!\\)\|", line))
        if not line.startswith("|"):
            width = 0
        elif not width:
            width = cells
            if not re.fullmatch(r"\|(:?-+:?\|)+", lines[number + 1]):
                wrong.append(f"no rule under {line}")
        elif cells != width:
            wrong.append(line)
    return wrong


def test_comment_is_the_golden_one(scenario: str, document: dict[str, Any]) -> None:
    held(f"{scenario} comment", markdown.comment(document, MARKER, links=LINKS))


def test_page_is_the_golden_one(make: Make) -> None:
    held("better page", markdown.page(make("better")))


def test_every_table_keeps_its_cells(scenario: str, document: dict[str, Any]) -> None:
    assert wrong_rows(markdown.page(document)) == []
    assert wrong_rows(markdown.comment(document, MARKER)) == []


def test_folds_are_closed_and_headings_are_ours(scenario: str, document: dict[str, Any]) -> None:
    text = markdown.comment(document, MARKER)
    assert text.count("<details>\n") == text.count("\n</details>\n") == text.count("details>") / 2
    assert len(re.findall("^#", text, re.MULTILINE)) == 1 + ("not compared" in scenario)
    assert "<details>" not in markdown.page(document)


def test_html_is_ours_alone(scenario: str, document: dict[str, Any]) -> None:
    tags = set(re.findall(r"<[^>]*>", markdown.comment(document, MARKER)))
    allowed = {MARKER, "<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>", "<span>", "</span>"}
    assert tags <= allowed


def test_marker_is_the_first_line_and_nowhere_else(scenario: str, document: dict[str, Any]) -> None:
    text = markdown.comment(document, MARKER)
    assert text.startswith(MARKER + "\n")
    assert text.count("<!--") == 1


def test_nobody_is_mentioned_and_nothing_invisible_is_raw(scenario: str, document: dict[str, Any]) -> None:
    text = markdown.page(document)
    assert not re.search(r"(^|[^A-Za-z0-9_])@[a-z0-9]", text, re.IGNORECASE | re.MULTILINE)
    assert all(char.isprintable() or char in "\n\u00a0" for char in text)


def test_first_table_fits_a_phone(scenario: str, document: dict[str, Any]) -> None:
    table = markdown.page(document).split("\n\n")[
        2 if "comparison" in document and document["comparison"]["lanes"] else 1
    ]
    rows = [line for line in table.split("\n") if line.startswith("|")]
    assert len(rows) <= 2 + 7
    assert all(line.count("|") <= 1 + 1 + 3 for line in rows)


def test_summary_is_the_page_where_there_is_room(make: Make) -> None:
    document = make("better")
    assert markdown.summary(document) == markdown.page(document)


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("no comparison", r"Retrieval: recall@5 0\.\d{3} ± 0\.\d{3} \(n = 120\)"),
        ("better", r"Retrieval got better: recall@5 0\.\d{3} → 0\.\d{3}, more than noise"),
        ("worse", r"Retrieval got worse: recall@5 0\.\d{3} → 0\.\d{3}, more than noise"),
        ("no detectable change", r"Retrieval: no detectable change · recall@5 0\.\d{3} → 0\.\d{3} is within noise"),
        ("change below one question", r"Retrieval: no detectable change · recall@5 0\.\d{3}"),
        ("unchanged", r"Retrieval: unchanged · recall@5 0\.\d{3}"),
        ("not compared", r"Retrieval: NOT COMPARED · recall@5 0\.\d{3} ± 0\.\d{3} \(n = 120\)"),
        ("nothing scored", r"Retrieval: nothing was scored \(n = 0\)"),
    ],
)
def test_heading_answers_in_words(make: Make, name: str, heading: str) -> None:
    assert re.fullmatch(f"### {heading}", markdown.page(make(name)).split("\n")[0])


def test_change_below_one_question_is_not_shown_as_a_change(make: Make) -> None:
    document = make("change below one question")
    step = document["comparison"]["lanes"]["model-dependent"]["recall"]["5"]
    step |= {"change": 0.004, "verdict": "no detectable change"}
    assert "| change | 0 | ≈ 0 | 0 |" in markdown.page(document)


def test_empty_category_shows_a_dash(make: Make) -> None:
    assert "| temporal-reasoning | 0 | - | - | - | |".replace(" - ", f" {figures.NOTHING} ") in markdown.page(
        make("empty categories")
    )


def test_what_differs_is_in_the_open(make: Make) -> None:
    head = markdown.comment(make("not compared"), MARKER).split("<details>")[0]
    assert "| query prefix | query: | (none) |" in head
    assert "| max tokens | (none) | 512 |" in head


def test_trouble_is_in_the_open(make: Make) -> None:
    head = markdown.comment(make("trouble"), MARKER).split("<details>")[0]
    assert "⚠ 3 of 120 questions have no answer and count as nothing found" in head
    assert "⚠ The BM25 leg came back empty for 101 of 120 questions: for these the hybrid is the semantic leg." in head
    assert "⚠ The comment could not be posted" in head


def test_k_that_no_haystack_exceeds_is_flagged(make: Make) -> None:
    head = markdown.comment(make("empty categories"), MARKER).split("<details>")[0]
    assert "⚠ k ≥ haystack: 5 of 5 questions have at most 10 sessions to choose from" in head


def test_warnings_beyond_the_first_are_counted(make: Make) -> None:
    document = make("no comparison")
    document["warnings"] = [f"warning number {number}" for number in range(20)]
    text = markdown.comment(document, MARKER)
    assert "warning number 5" in text
    assert "warning number 6" not in text
    assert "⚠ and 14 more, in the report JSON" in text


def test_link_that_is_no_url_is_left_out(make: Make) -> None:
    text = markdown.comment(
        make("no comparison"), MARKER, links=markdown.Links("file:///etc/passwd", "https://a.invalid/(b)")
    )
    assert "passwd" not in text
    assert "[this run](https://a.invalid/%28b%29)" in text


def test_missing_field_is_an_error_and_not_nothing() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'view' is undefined"):
        markdown._draw("head.md.j2", notes=(), more_notes=0)


def test_comment_of_4000_misses_is_cut_at_rows(misses: dict[str, Any]) -> None:
    text = markdown.comment(misses, MARKER, links=LINKS)
    assert max(characters(text), len(text)) <= 60_000
    assert wrong_rows(text) == []
    assert text.count("<details>") == text.count("</details>")
    assert "and 3,980 more rows, in the job summary and the report JSON" in text


@pytest.mark.parametrize("used", [0, 500_000, 1_000_000, 1_040_000])
def test_summary_of_4000_misses_fits_behind_what_is_there(misses: dict[str, Any], used: int) -> None:
    text = markdown.summary(misses, used_bytes=used)
    size = used + len(text.encode())
    assert size <= (900 * 1024 if used < 800_000 else 1024 * 1024)
    assert text.startswith("### Retrieval: recall@5")
    assert wrong_rows(text) == []
    if used <= 1_000_000:
        assert "#### By category" in text
        assert re.search(r"and [\d,]+ more rows, in the report JSON|Left out for size: .*hardest questions", text)


def test_summary_without_any_room_is_empty(misses: dict[str, Any]) -> None:
    assert markdown.summary(misses, used_bytes=1024 * 1024) == ""


@pytest.mark.parametrize("budget", [4_000, 6_000])
def test_comment_names_the_parts_that_it_left_out(make: Make, budget: int) -> None:
    text = markdown.comment(make("worse"), MARKER, budget=budget, links=LINKS)
    assert characters(text) <= budget
    assert "By category" in text
    left_out = re.search("Left out for size: (.*)\\. All of it is in the job summary and the report JSON", text)
    assert left_out
    assert "hardest questions" in left_out[1].split(", ")


def test_comment_loses_rows_of_the_hardest_questions_first(make: Make) -> None:
    document = make("worse")
    full = characters(markdown.comment(document, MARKER))
    text = markdown.comment(document, MARKER, budget=full - 100)
    assert characters(text) < full
    assert re.search(
        r"more rows, in the job summary and the report JSON</sub>\n\n<sub>Rank of the first gold session; ", text
    )
    assert "Left out for size" not in text


@pytest.mark.parametrize("char", ["$", "@", "🦔", "\u202e", "|"])
def test_comment_fits_whatever_every_text_is_made_of(make: Make, char: str) -> None:
    document, text = make("trouble"), char * 2000
    document["warnings"] = [text] * 50
    document["dataset"] |= {"file": text}
    document["tool"] = {"name": text, "version": text}
    for lane in document["lanes"].values():
        lane["categories"] = {f"{number}{text}": group for number in range(60) for group in [lane["overall"]]}
    for question in document["questions"]:
        question |= {"question": text, "question_id": text, "category": text, "failed": text}
    drawn = markdown.comment(document, MARKER)
    assert characters(drawn) <= 60_000
    assert wrong_rows(drawn) == []
