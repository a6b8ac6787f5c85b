"""Small caches of our own making, with an embedder that needs no model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.pipeline import Effects, Model, RunRequest, prep, run
from retrieval_eval.retriever.spec import parse_spec

DIMS = 16
TOPICS = ("heron", "cello", "allotment", "kiln", "ferry", "quilt", "orchard", "sundial", "bakery", "glacier")
CATEGORIES = ("multi-session", "temporal-reasoning", "single-session-user")


class Silent:
    """Progress that says nothing."""

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Silent]:
        yield self

    def advance(self, n: int = 1) -> None:
        """Count nothing."""


EFFECTS = Effects(Silent(), lambda: 0.0)


def vector_of(text: str) -> npt.NDArray[np.float32]:
    """A vector of length one that depends on the text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(DIMS).astype(np.float32)
    return vector / np.linalg.norm(vector)


@dataclass
class FakeEmbedder:
    """Looks vectors up, or makes them by `make`."""

    identity: ModelIdentity
    make: Callable[[str], npt.NDArray[np.float32]] = vector_of
    backend: str = "fake"
    asked: list[tuple[str, Role]] = field(default_factory=list)

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        for text in texts:
            self.asked.append((text, role))
            yield Embedded(self.make(text), is_truncated=len(text) > 200)


@pytest.fixture(scope="session", name="vector_of")
def vector_of_fixture() -> Callable[[str], npt.NDArray[np.float32]]:
    return vector_of


class Bench:
    """Prepares data and runs on it, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self._folder = folder

    def model(self, make: Callable[[str], npt.NDArray[np.float32]] = vector_of, dims: int = DIMS) -> Model:
        identity = ModelIdentity(name="fake", content="sha256:00", dims=dims, rendering=1)
        return Model("/no/such/model", None, identity, lambda: FakeEmbedder(identity, make))

    def prep(self, data: list[dict[str, Any]] | Path, model: Model | None = None) -> Path:
        if isinstance(data, list):
            file = self._folder / "data.json"
            file.write_text(json.dumps(data), encoding="utf-8")
        else:
            file = data
        prep(file, self.cache, model or self.model(), EFFECTS)
        return self.cache

    def run(self, retriever: str = "builtin:hybrid", model: Model | None = None, **request: Any) -> dict[str, Any]:
        return run(RunRequest(self.cache, parse_spec(retriever), **request), lambda _: model or self.model(), EFFECTS)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def new_bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Bench]:
    """A bench for fixtures that live longer than one test."""
    return lambda: Bench(tmp_path_factory.mktemp("bench"))


def make_question(question_id: str, question: str, sessions: dict[str, str], gold: list[str]) -> dict[str, Any]:
    """One instance; each session is one turn."""
    return {
        "question_id": question_id,
        "question_type": CATEGORIES[len(question_id) % len(CATEGORIES)],
        "question": question,
        "answer": "-",
        "question_date": "2023/06/01 (Thu) 08:00",
        "answer_session_ids": gold,
        "haystack_dates": ["2023/05/01 (Mon) 08:00"] * len(sessions),
        "haystack_session_ids": list(sessions),
        "haystack_sessions": [[{"role": "user", "content": text}] for text in sessions.values()],
    }


@pytest.fixture(scope="session")
def question() -> Callable[..., dict[str, Any]]:
    return make_question


def make_dataset(pairs: int, size: int) -> list[dict[str, Any]]:
    """Questions about topics that several sessions share, so that ranks differ and ties occur."""
    made = []
    for number in range(pairs):
        ids = [f"s{number}_{row}" for row in range(size)]
        topics = [(TOPICS[(row * 3 + number) % 10], TOPICS[row % 7], row % 9) for row in range(size)]
        texts = [f"About the {first} and the {second}, note {note}." for first, second, note in topics]
        gold = [ids[number % size], ids[(number * 5 + 2) % size]]
        question = f"What about the {TOPICS[number % 10]}?"
        made.append(make_question(f"q{'_' * (number % 3)}{number}", question, dict(zip(ids, texts, strict=True)), gold))
    return made


@pytest.fixture(scope="session")
def dataset() -> Callable[[int, int], list[dict[str, Any]]]:
    """Makes a data file's content: dataset(pairs, sessions each)."""
    return make_dataset


@pytest.fixture(scope="session")
def environment(root: Path) -> Callable[..., dict[str, str]]:
    """The environment of a child process that imports this package; keywords are added."""
    return lambda **more: {**os.environ, "PYTHONPATH": str(root / "src"), **more}
