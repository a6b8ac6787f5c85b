"""A model that needs no files: deterministic vectors from a text's hash. Fast, counted, and able to stop anywhere."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_eval import pipeline
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.model import RENDERING_VERSION
from retrieval_eval.pipeline import Effects, Model, Prepared

DIMS = 16
IDENTITY = ModelIdentity("fake", "sha256:" + "0" * 64, DIMS, RENDERING_VERSION)
Moment = Callable[[str, int], None]
"""Called with the name of a step and how far it has come; may raise, or kill its own process."""


def nothing(step: str, count: int) -> None:
    """Let everything pass."""


@dataclass
class FakeEmbedder:
    """`embedded` lists every text that was ever handed in."""

    identity: ModelIdentity = IDENTITY
    backend: str = "fake"
    moment: Moment = nothing
    embedded: list[str] = field(default_factory=list)

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        for text in texts:
            self.embedded.append(text)
            self.moment("text", len(self.embedded))
            seed = hashlib.sha256(f"{self.identity.fingerprint}{role}{text}".encode()).digest()
            vector = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32)).standard_normal(DIMS)
            yield Embedded((vector / np.linalg.norm(vector)).astype(np.float32), len(text) > 200)


def model(embedder: FakeEmbedder, moment: Moment = nothing) -> Model:
    """The model that loads this embedder."""

    def load() -> FakeEmbedder:
        moment("load", 1)
        return embedder

    return Model("fake", None, embedder.identity, load)


def other_identity(**changes: Any) -> ModelIdentity:
    return replace(IDENTITY, **changes)


class Stage:
    """Counts one stage, reading in questions, and tells `moment`."""

    def __init__(self, name: str, moment: Moment) -> None:
        self.name, self._moment, self._count = name.split(maxsplit=1)[0], moment, 0

    def advance(self, n: int = 1) -> None:
        self._count += 1 if self.name == "read" else n
        self._moment(self.name, self._count)


class Silent:
    """Progress that shows nothing; the end of a stage is the step `<stage> end`."""

    def __init__(self, moment: Moment = nothing) -> None:
        self._moment = moment

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        stage = Stage(name, self._moment)
        yield stage
        self._moment(f"{stage.name} end", 1)


def effects(moment: Moment = nothing) -> Effects:
    return Effects(Silent(moment), lambda: 0.0)


def prep(data: Path, folder: Path, with_model: Model) -> Prepared:
    return pipeline.prep(data, folder, with_model, effects())


def instance(number: int, sessions: int = 4, words: int = 12) -> dict[str, Any]:
    """One question of ours; its gold session holds a word that no other has. Session 0 is the same for all."""
    chance = random.Random(number)  # noqa: S311 - a story, not a secret
    store = ["plum", "moss", "tile", "raft", "oven", "knot", "gale", "lark", "sled", "fern", "yarn", "dusk"]
    texts = [" ".join(f"{chance.choice(store)}{chance.randrange(500)}" for _ in range(words)) for _ in range(sessions)]
    texts[0] = "the tap in the kitchen drips"
    texts[1] += f" my locker is number{number}"
    return {
        "question_id": f"q{number}",
        "question_type": "multi-session",
        "question": f"Where is number{number}?",
        "question_date": "2023/06/01 (Thu) 08:00",
        "answer": "-",
        "answer_session_ids": [f"answer_{number}"],
        "haystack_dates": ["2023/05/01 (Mon) 08:00"] * sessions,
        "haystack_session_ids": ["tap", f"answer_{number}", *(f"s{number}_{i}" for i in range(2, sessions))],
        "haystack_sessions": [[{"role": "user", "content": text}] for text in texts],
    }


def instances(count: int) -> list[dict[str, Any]]:
    return [instance(number) for number in range(count)]


def write(path: Path, instances: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(instances), encoding="utf-8")
    return path
