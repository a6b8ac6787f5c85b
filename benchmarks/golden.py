"""The 48-session set with the vectors of the real model, as an embedding cache: no model is loaded for it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.measuring import compose, shared

from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.model import RENDERING_VERSION
from retrieval_eval.pipeline import Effects, Model, prep
from retrieval_eval.progress import Lines
from retrieval_eval.retriever.protocol import Vector

QUESTIONS, SESSIONS = 122, 48
IDENTITY = ModelIdentity("golden vectors", "sha256:golden", 384, RENDERING_VERSION)


@dataclass(frozen=True, slots=True)
class Golden:
    """An embedder that looks up what the model said."""

    vectors: dict[str, Vector]
    identity: ModelIdentity = IDENTITY
    backend: str = "golden"

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:  # noqa: ARG002 - the protocol's
        """One vector per text, in order."""
        for text in texts:
            yield Embedded(self.vectors[text], is_truncated=False)


def golden_cache(folder: Path) -> Path:
    """Compose the data file in `folder` and prep it there; the embedding cache."""
    data = compose(folder / "data.json", instances=QUESTIONS, sessions=SESSIONS)
    embedder = Golden(_vectors(data))
    effects = Effects(Lines(sys.stderr, time.monotonic), time.monotonic)
    prep(data, folder / "cache", Model("golden", None, IDENTITY, lambda: embedder), effects)
    return folder / "cache"


def _vectors(data: Path) -> dict[str, Vector]:
    """The saved vectors, by text."""
    with np.load(shared() / "golden" / "vectors.npz") as saved:
        sessions = dict(zip(saved["session_ids"].tolist(), saved["session_vectors"], strict=True))
        questions = dict(zip(saved["question_ids"].tolist(), saved["question_vectors"], strict=True))
    found: dict[str, Vector] = {}
    for instance in json.loads(data.read_bytes()):
        found[instance["question"]] = questions[instance["question_id"]]
        for name, turns in zip(instance["haystack_session_ids"], instance["haystack_sessions"], strict=True):
            found["\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)] = sessions[name]
    return found
