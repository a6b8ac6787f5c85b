"""Small data files, a fake model, and looks into a cache."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.cache import schema
from retrieval_eval.model import Lane
from retrieval_eval.pipeline import Prepared, RunRequest, prep, run
from retrieval_eval.retriever.spec import parse_spec

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # the scripts that tests start import the same fake model by this name

import fake_model  # noqa: E402 - only now it can be found


@dataclass
class Cache:
    """A cache folder of one test, and what is done with it."""

    folder: Path
    embedder: fake_model.FakeEmbedder = field(default_factory=fake_model.FakeEmbedder)

    @property
    def file(self) -> Path:
        return self.folder / schema.FILE_NAME

    def prep(self, data: Path) -> Prepared:
        return prep(data, self.folder, fake_model.model(self.embedder), fake_model.effects())

    def report(self, *lanes: Lane) -> dict[str, Any]:
        """The report without what two equal runs may differ in: timings, and how the cache came to be filled."""
        request = RunRequest(cache=self.folder, spec=parse_spec("builtin:hybrid"), lanes=lanes or tuple(Lane))
        document = run(request, lambda _: fake_model.model(self.embedder), fake_model.effects())
        return {key: value for key, value in document.items() if key not in ("timings", "cache")}

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        connection = sqlite3.connect(self.file)
        try:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in names}  # noqa: S608 - our own names
        finally:
            connection.close()

    def bytes(self) -> dict[str, bytes]:
        """Every file of the folder."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def copy(self, folder: Path) -> Cache:
        shutil.copytree(self.folder, folder)
        return Cache(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """An empty cache."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Six questions with four sessions each: 25 distinct texts."""
    return fake_model.write(tmp_path / "data.json", fake_model.instances(6))


@pytest.fixture
def finished(cache: Cache, data: Path) -> Cache:
    """A cache that prep has finished."""
    cache.prep(data)
    return cache


@pytest.fixture
def scripted(cache: Cache, data: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Preps in a process of its own that dies, fails or is limited as the options say (see `prep_script.py`)."""

    def start(**options: Any) -> subprocess.CompletedProcess[str]:
        settings = {"data": str(data), "folder": str(cache.folder), **options}
        return subprocess.run(
            [sys.executable, str(HERE / "prep_script.py"), json.dumps(settings)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait five seconds for a lock that will not go."""
    monkeypatch.setattr(schema, "BUSY_TIMEOUT_S", 0.05)
