"""What all tests share: where the real data is, and how its absence shows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data, models and stand-ins; its tests are skipped where it is missing."""
    folder = Path(os.environ.get("RETRIEVAL_EVAL_SHARED", ROOT.parent / "shared"))
    if not (folder / "design.md").is_file():
        pytest.skip(f"no shared data at {folder} (set RETRIEVAL_EVAL_SHARED)")
    return folder
