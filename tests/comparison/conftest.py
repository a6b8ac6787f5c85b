"""A prepared cache of the bundled sample, with bag-of-words vectors that need no model."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_eval.dataset.sample import SAMPLE
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.model import Lane
from retrieval_eval.pipeline import Effects, Model, RunRequest, prep, run
from retrieval_eval.progress import Stage
from retrieval_eval.retriever.spec import parse_spec
from retrieval_eval.terms import words

DIMS = 64


class BagOfWords:
    identity = ModelIdentity(name="bag-of-words", content="1", dims=DIMS, rendering=1)
    backend = "bag-of-words"

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        for text in texts:
            vector = np.bincount([zlib.crc32(word.encode()) % DIMS for word in words(text)], minlength=DIMS)
            vector = vector.astype(np.float32)
            yield Embedded(vector / max(float(np.linalg.norm(vector)), 1e-9), is_truncated=False)


class Silent:
    @contextlib.contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        yield self

    def advance(self, n: int = 1) -> None:
        pass


MODEL = Model(source="bag-of-words", revision=None, identity=BagOfWords.identity, load=BagOfWords)
EFFECTS = Effects(Silent(), lambda: 0.0)

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def effects() -> Effects:
    return EFFECTS


@pytest.fixture(scope="session")
def sample_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "cache"
    prep(SAMPLE, folder, MODEL, EFFECTS)
    return folder


@pytest.fixture(scope="session")
def run_sample(sample_cache: Path) -> Run:
    """Run a retriever on the sample, with a base to compare with if one is named."""

    def start(
        spec: str, base: str | None = None, ks: tuple[int, ...] = (1, 5, 10), lanes: tuple[Lane, ...] = tuple(Lane)
    ) -> Any:
        request = RunRequest(
            cache=sample_cache, spec=parse_spec(spec), base=parse_spec(base) if base else None, lanes=lanes, ks=ks
        )
        return run(request, lambda _: MODEL, EFFECTS)

    return start
