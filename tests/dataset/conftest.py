"""Small data files of our own making."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def _question(question_id: str = "q_lamp", **changes: Any) -> dict[str, Any]:
    """One instance in the file's own shape: three sessions, gold is the second. A change to `...` removes the field."""
    record: dict[str, Any] = {
        "question_id": question_id,
        "question_type": "multi-session",
        "question": "Which bulb fits the hall lamp?",
        "question_date": "2023/06/01 (Thu) 08:00",
        "answer": "a small bayonet",
        "answer_session_ids": ["answer_bulb"],
        "haystack_dates": ["2023/05/01 (Mon) 08:00", "2023/05/02 (Tue) 08:00", "2023/05/03 (Wed) 08:00"],
        "haystack_session_ids": ["walk", "answer_bulb", "bread"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "A walk by the canal?"},
                {"role": "assistant", "content": "Take the towpath."},
            ],
            [{"role": "user", "content": "The hall lamp takes a small bayonet bulb.", "has_answer": True}],
            [{"role": "assistant", "content": "Let the dough rest."}],
        ],
    }
    record.update(changes)
    return {field: value for field, value in record.items() if value is not ...}


@pytest.fixture
def question() -> Callable[..., dict[str, Any]]:
    """Makes one instance: question(question_id, **changed_fields)."""
    return _question


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a data file: bytes as they are, anything else as JSON."""

    def write_file(content: object, name: str = "data.json") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write_file
