"""Small stores of our own making, and the real crate's lists with what was stored to get them."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from retrieval_eval.dataset.text import render
from retrieval_eval.store.database import Database
from retrieval_eval.terms import Vocabulary

DIMS = 4


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than ten seconds; part of the suite all the same")


class Store:
    """A database of one leg that takes texts; vectors default to ones that favour no row."""

    def __init__(self, file: Path, leg: str, dims: int = DIMS) -> None:
        self.leg = leg
        self.vocabulary = Vocabulary() if leg == "okapi" else None
        self.database = Database(file, dims, self.vocabulary)

    def add(self, row_id: str, text: str = "", vector: npt.ArrayLike = (1, 0, 0, 0)) -> None:
        content = self.vocabulary.count(text) if self.vocabulary is not None else text
        self.database.insert(row_id, content, np.asarray(vector, dtype=np.float32))

    def bm25(self, query: str, limit: int = 100) -> list[str]:
        return [row_id for row_id, _ in self.database.search_bm25(query, limit)]

    def semantic(self, vector: npt.ArrayLike, limit: int = 100) -> list[str]:
        return [row_id for row_id, _ in self.database.search(np.asarray(vector, dtype=np.float32), limit)]


@pytest.fixture
def new_store(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Makes a store of a leg, filled with the texts given: new_store("fts5", first="a text", second="another")."""
    made: list[Store] = []

    def make(leg: str, texts: dict[str, str] | None = None, dims: int = DIMS) -> Store:
        store = Store(tmp_path / f"{len(made)}.sqlite", leg, dims)
        made.append(store)
        for row_id, text in (texts or {}).items():
            store.add(row_id, text)
        return store

    yield make
    for store in made:
        store.database.close()


@dataclass(frozen=True)
class GoldenInstance:
    """One question of a lists file: `sessions` in order of insertion, `lists` as the file has them."""

    question_id: str
    question: str
    vector: npt.NDArray[np.float32]
    sessions: tuple[str, ...]
    lists: dict[str, Any]
    okapi: dict[str, list[int]]

    @property
    def row_ids(self) -> list[str]:
        keys = (f"{self.question_id}\n{session}" for session in self.sessions)
        return [hashlib.sha256(key.encode()).hexdigest()[:32] for key in keys]


@dataclass(frozen=True)
class Golden:
    """Texts and vectors by session id, and the instances of the sets of 48 and 300 sessions."""

    texts: dict[str, str]
    vectors: dict[str, npt.NDArray[np.float32]]
    instances: dict[int, list[GoldenInstance]]


def _read(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="session")
def golden(shared: Path) -> Golden:
    """What the real crate was given, and its answers."""
    folder = shared / "golden"
    texts: dict[str, str] = {}
    questions: dict[str, str] = {}
    for name in ("longmemeval_oracle_122.json.gz", "longmemeval_s_2.json.gz"):
        for item in _read(shared / "data" / name):
            questions.setdefault(item["question_id"], item["question"])
            for session_id, turns in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True):
                texts.setdefault(session_id, render(turns))
    arrays = np.load(folder / "vectors.npz")
    vectors = dict(zip(map(str, arrays["session_ids"]), arrays["session_vectors"], strict=True))
    queries = dict(zip(map(str, arrays["question_ids"]), arrays["question_vectors"], strict=True))
    okapi = _read(folder / "okapi_lists.json.gz")
    instances: dict[int, list[GoldenInstance]] = {}
    for size in (48, 300):
        lists = _read(folder / f"lists_{size}.json.gz")
        ids = lists["session_ids"]
        instances[size] = [
            GoldenInstance(
                found["question_id"],
                questions[found["question_id"]],
                queries[found["question_id"]],
                tuple(ids[number] for number in found["haystack"]),
                found,
                okapi[f"--sessions {size}"][found["question_id"]],
            )
            for found in lists["instances"]
        ]
    return Golden(texts, vectors, instances)


@pytest.fixture(scope="session")
def environment(root: Path) -> Callable[..., dict[str, str]]:
    """The environment of a child process that imports this package; keywords are added."""
    return lambda **more: {**os.environ, "PYTHONPATH": str(root / "src"), **more}
