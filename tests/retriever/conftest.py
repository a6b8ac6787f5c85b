"""What the tests of external retrievers share: rows of our own making, and programs that misbehave on purpose."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
import pytest

from retrieval_eval.retriever.conversation import Timeouts
from retrieval_eval.retriever.process import ExternalRetriever, child_environment
from retrieval_eval.retriever.protocol import Path, Query, Vector

SHORT = Timeouts(hello_s=20.0, open_s=20.0, insert_s=20.0, search_s=2.0, close_s=20.0, exit_s=2.0, term_s=0.5)

PREAMBLE = """
import json, os, signal, subprocess, sys, time

PATHS = {path: {"needs": ["text"]} for path in ("search_hybrid", "search", "search_bm25")}
rows = {}
ended = False

def reply_to(request):
    kind = request["type"]
    if kind == "hello":
        return {"version": 1, "name": "fake", "paths": PATHS}
    if kind == "open":
        rows.clear()
    if kind == "insert":
        rows.update((row["id"], row) for row in request["rows"])
        return {"inserted": len(request["rows"])}
    if kind == "search":
        return {"ids": list(rows)[:request["limit"]]}
    return {}

def send(request, reply):
    print(json.dumps({"type": request["type"], "seq": request["seq"], **reply}), flush=True)

def serve(answer):
    for line in sys.stdin:
        request = json.loads(line)
        if request["type"] == "bye":
            break
        answer(request)

def plain(request):
    send(request, reply_to(request))
"""


@dataclass(frozen=True)
class StoredRow:
    row_id: str
    text: str
    vector: Vector


def rows_of(count: int, text: str = "row") -> list[StoredRow]:
    return [
        StoredRow(f"{number:032x}", f"{text} {number}", np.array([number, 1.0, 0.5], np.float32))
        for number in range(count)
    ]


def query_for(path: Path = Path.SEARCH_HYBRID, limit: int = 3, question_id: str = "q7") -> Query:
    return Query(question_id, path, limit, "which row?", np.array([1.0, 0.0, 0.0], np.float32))


@pytest.fixture
def make_rows() -> Callable[..., list[StoredRow]]:
    """`count` rows with ids 0, 1, … as 32 hex digits and vectors of three components."""
    return rows_of


@pytest.fixture
def make_query() -> Callable[..., Query]:
    """A query with text and vector."""
    return query_for


@pytest.fixture
def program(tmp_path: FilePath) -> Callable[[str], list[str]]:
    """A program made of `PREAMBLE` and the given lines; returns the command that runs it."""

    def write(body: str) -> list[str]:
        script = tmp_path / "program.py"
        script.write_text(PREAMBLE + textwrap.dedent(body), encoding="utf-8")
        return [sys.executable, str(script)]

    return write


@pytest.fixture
def start() -> Callable[..., ExternalRetriever]:
    """Retrievers with short time-outs and this process's environment."""

    def make(command: list[str], **options: object) -> ExternalRetriever:
        return ExternalRetriever(command, **{"env": child_environment(os.environ), "timeouts": SHORT, **options})

    return make
