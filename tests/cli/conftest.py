"""The command line in a process of its own, with a model that needs no files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
DRIVER = HERE / "cli_with_fake_model.py"

Result = subprocess.CompletedProcess[str]
Cli = Callable[..., Result]


def record(number: int) -> dict[str, Any]:
    """One question of ours with three sessions; gold is the second."""
    return {
        "question_id": f"q{number}",
        "question_type": "single-session-user",
        "question": f"Which shelf holds jar {number}?",
        "question_date": "2023/06/01 (Thu) 08:00",
        "answer": "-",
        "answer_session_ids": [f"answer_{number}"],
        "haystack_dates": ["2023/05/01 (Mon) 08:00"] * 3,
        "haystack_session_ids": ["walk", f"answer_{number}", f"rest_{number}"],
        "haystack_sessions": [
            [{"role": "user", "content": "A walk along the canal."}],
            [{"role": "user", "content": f"The shelf by the door holds jar {number}."}],
            [{"role": "assistant", "content": f"Let the dough of loaf {number} rest."}],
        ],
    }


@pytest.fixture
def question() -> Callable[[int], dict[str, Any]]:
    """Makes the question of this number."""
    return record


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three questions."""
    file = tmp_path / "data.json"
    file.write_text(json.dumps([record(number) for number in range(3)]))
    return file


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """`cli("run", "--cache", folder)`: the command in a process of its own, in `tmp_path`; `start` only starts it."""

    def call(*arguments: object, start: bool = False, env: dict[str, str] | None = None, **options: Any) -> Any:
        command = [sys.executable, str(DRIVER), *map(str, arguments)]
        options = {"cwd": tmp_path, "env": {**os.environ, **(env or {})}, "text": True, **options}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if start:
            return subprocess.Popen(command, **pipes, **options)
        return subprocess.run(command, **{**pipes, **options}, timeout=120, check=False)

    return call


@pytest.fixture
def prepared(cli: Cli, data: Path, tmp_path: Path) -> Path:
    """A cache that `prep` has made."""
    folder = tmp_path / "cache"
    done = cli("prep", data, "--cache", folder)
    assert done.returncode == 0, done.stderr
    return folder
