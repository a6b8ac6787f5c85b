"""Run by tests in a process of its own: the command line as it is, but every model is a small fake.

FAKE_WAIT_AT: the text at which it says `waiting` on stderr and waits for a signal.
FAKE_BUG: an error of ours, raised when the model is looked for.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator

import numpy as np

from retrieval_eval import cli, commands, pipeline
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.model import RENDERING_VERSION


class Fake:
    identity = ModelIdentity("fake", "sha256:" + "0" * 64, 8, RENDERING_VERSION)
    backend = "fake"

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        for number, text in enumerate(texts, start=1):
            if str(number) == os.environ.get("FAKE_WAIT_AT"):
                print("waiting", file=sys.stderr, flush=True)
                time.sleep(100)
            seed = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint32)
            vector = np.random.default_rng(seed).standard_normal(8)
            yield Embedded((vector / np.linalg.norm(vector)).astype(np.float32), False)


def find(model: str | None, revision: str | None, backend: str) -> pipeline.Model:
    if "FAKE_BUG" in os.environ:
        raise ZeroDivisionError(os.environ["FAKE_BUG"])
    return pipeline.Model(model or "fake", revision, Fake.identity, Fake)


commands.find = find
pipeline.COMMIT_TEXTS = 2
sys.exit(cli.main())
