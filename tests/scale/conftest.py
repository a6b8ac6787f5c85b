"""Data files of our own making, caches prepared from them with a model that costs nothing, and a look at their rows."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from retrieval_eval.cache.sharding import Shard
from retrieval_eval.pipeline import Effects, Model, Prepared, Seed, prep

FAKE_CLI = Path(__file__).with_name("fake_cli.py")
CATEGORIES = ("multi-session", "temporal-reasoning", "knowledge-update")


def _load_fake() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scale_fake_cli", FAKE_CLI)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_FAKE = _load_fake()


class _Quiet:
    def advance(self, n: int = 1) -> None:
        """Nothing."""

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[_Quiet]:
        yield self


def _question(number: int, sessions: int) -> dict[str, Any]:
    """Sessions are drawn from a common stock, so most texts occur in several haystacks, as in the real file."""
    stock = [(number * 3 + step) % 997 for step in range(sessions)]
    ids = [f"answer_{item}" if item == stock[0] else f"s{item}" for item in stock]
    return {
        "question_id": f"q{number:03}",
        "question_type": CATEGORIES[number % 3],
        "question": f"What became of plan {number}?",
        "question_date": "2023/06/01 (Thu) 08:00",
        "answer": "it was dropped",
        "answer_session_ids": ids[:1],
        "haystack_dates": ["2023/05/01 (Mon) 08:00"] * sessions,
        "haystack_session_ids": ids,
        "haystack_sessions": [
            [{"role": "user", "content": f"Plan {item}: " + " ".join(f"word{item * step}" for step in range(item % 9))}]
            for item in stock
        ],
    }


class Lab:
    """Everything that a test needs to make caches, below one folder."""

    quiet = _Quiet()
    model = staticmethod(_FAKE.fake_model)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def data(self, questions: int = 12, sessions: int = 9, name: str = "data.json") -> Path:
        """Write a data file."""
        file = self._folder / f"of-{questions}-{sessions}" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps([_question(number, sessions) for number in range(questions)]), encoding="utf-8")
        return file

    def prepare(
        self, file: Path, folder: Path, shard: str | None = None, seed: Seed | None = None, model: Model | None = None
    ) -> Prepared:
        """Run prep."""
        effects = Effects(self.quiet, lambda: 0.0)
        part = None if shard is None else Shard.parse(shard)
        return prep(file, folder, model or self.model(), effects, shard=part, seed=seed)

    def shards(self, file: Path, count: int) -> list[Path]:
        """Prepare every shard of a file; each call goes on in the same folders."""
        folders = [self._folder / f"shard-{index}-of-{count}" for index in range(1, count + 1)]
        for index, folder in enumerate(folders, 1):
            self.prepare(file, folder, f"{index}/{count}")
        return folders

    def rows(self, folder: Path) -> dict[str, list[Any]]:
        """Every row of every table of a cache, as stored."""
        with closing(sqlite3.connect(folder / "embeddings.sqlite")) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            assert len(tables) == 5
            return {table: database.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables}  # noqa: S608 - our own names

    def manifest_of(self, folder: Path) -> dict[str, Any]:
        """The manifest of a cache without the digest of its database, which depends on how its pages came about."""
        facts: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        del facts["database_sha256"]
        return facts

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start the command line in another process, with the fake model."""
        return subprocess.Popen(
            [sys.executable, str(FAKE_CLI), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Run the command line to its end: (exit code, stdout, stderr)."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@dataclass
class FileServer:
    """Serves `content` with ranges and an ETag; once hangs up after `cut_at` bytes. `starts`: of each answer."""

    url: str = ""
    content: bytes = b""
    cut_at: int | None = None
    starts: list[int] = field(default_factory=list)


@pytest.fixture
def file_server() -> Iterator[FileServer]:
    plan = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            plan.starts.append(start)
            body, size = plan.content[start:], len(plan.content)
            self.send_response(206 if start else 200)
            self.send_header("ETag", '"one"')
            self.send_header("Content-Length", str(len(body)))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.end_headers()
            self.wfile.write(body[: plan.cut_at])
            plan.cut_at = None

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        plan.url = f"http://127.0.0.1:{listening.server_address[1]}/cache.tar.zst"
        yield plan
        listening.shutdown()
