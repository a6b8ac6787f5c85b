"""The field's own files, as trec_eval and ir-measures read them: a run, its qrels, and lists of other programs.

Owns the formats only: `run` writes them from a report, `score` reads lists that some other program made.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from retrieval_eval.errors import ReportError

TAG = "retrieval-eval"
_AWKWARD = re.compile(r"[%\s]")


def run_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """`question Q0 session rank score tag` of the headline lane; scores fall by one a rank, so no reader sees ties."""
    lane = document["headline"]["lane"]
    for question in document["questions"]:
        ranked = question["lanes"][lane]["ranked"]
        for rank, session in enumerate(ranked, start=1):
            yield f"{_word(question['question_id'])} Q0 {_word(session)} {rank} {len(ranked) - rank + 1} {TAG}\n"


def qrels_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """`question 0 session 1` for every gold session."""
    for question in document["questions"]:
        for session in question["gold"]:
            yield f"{_word(question['question_id'])} 0 {_word(session)} 1\n"


def _word(text: str) -> str:
    """`text` without white space: per cent signs and white space as %XX of their UTF-8 bytes."""
    return _AWKWARD.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


def read_ranked(file: Path) -> dict[str, tuple[str, ...]]:
    """Ranked lists by question id, best first: a TREC run (ordered by falling score, equal ones by rank) or JSON Lines.

    A line of JSON holds `question_id` and `ranked`, a list of session ids. Ids come back as `run_lines` writes them.
    Raises `ReportError` naming the line.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError("cannot be read", where=str(file), got=str(error)) from error
    lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
    if not lines:
        raise ReportError("is empty", where=str(file), expected="a TREC run or JSON Lines")
    is_json = next(iter(lines.values())).lstrip().startswith("{")
    return _from_json(lines, file) if is_json else _from_trec(lines, file)


def _from_json(lines: Mapping[int, str], file: Path) -> dict[str, tuple[str, ...]]:
    lists: dict[str, tuple[str, ...]] = {}
    for number, line in lines.items():
        try:
            item = json.loads(line)
            question, ranked = item["question_id"], item["ranked"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _wrong(file, number, line, 'an object with "question_id" and "ranked"') from error
        if not isinstance(question, str) or not isinstance(ranked, list) or not all(isinstance(i, str) for i in ranked):
            raise _wrong(file, number, line, 'a string "question_id" and a list of strings "ranked"')
        if _word(question) in lists:
            raise _wrong(file, number, line, "each question once")
        lists[_word(question)] = tuple(map(_word, ranked))
    return lists


def _from_trec(lines: Mapping[int, str], file: Path) -> dict[str, tuple[str, ...]]:
    scored: dict[str, list[tuple[float, int, str]]] = {}
    for number, line in lines.items():
        try:
            question, _, session, rank, score, _ = line.split()
            entry = (-float(score), int(rank), session)
            if math.isnan(entry[0]):
                raise ValueError("a score that cannot be put in order")
        except ValueError as error:
            raise _wrong(file, number, line, "question Q0 session rank score tag") from error
        scored.setdefault(question, []).append(entry)
    return {question: tuple(session for _, _, session in sorted(found)) for question, found in scored.items()}


def _wrong(file: Path, number: int, line: str, expected: str) -> ReportError:
    return ReportError("ranked lists", where=f"{file}, line {number}", got=ascii(line[:60]), expected=expected)


def of_sessions(lists: Mapping[str, tuple[str, ...]], question: str, sessions: Iterable[str]) -> tuple[str, ...]:
    """The list of `question` in session ids as the data file has them; an id that is none of `sessions` stays."""
    names = {_word(session): session for session in sessions}
    return tuple(names.get(word, word) for word in lists.get(_word(question), ()))
