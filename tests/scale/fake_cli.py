"""The command line with a model that costs nothing: vectors come from the text's hash. For tests in other processes."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator

import numpy as np

from retrieval_eval import cli, commands
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.pipeline import Model

DIMS = 16


class HashEmbedder:
    """Counts what it embeds in `embedded`; ends the process after $FAKE_EMBED_MOST texts, as a runner out of memory."""

    backend = "fake"

    def __init__(self, identity: ModelIdentity) -> None:
        self.identity = identity
        self.embedded: list[str] = []

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        for text in texts:
            if len(self.embedded) == int(os.environ.get("FAKE_EMBED_MOST", "-1")):
                os._exit(137)
            self.embedded.append(text)
            digest = hashlib.sha256(f"{self.identity.content} {role} {text}".encode()).digest()
            vector = np.frombuffer(digest, dtype=np.uint8)[:DIMS].astype(np.float32) + 1
            yield Embedded(vector / np.linalg.norm(vector), is_truncated=len(text) > 60)


def fake_model(content: str = "commit-a") -> Model:
    identity = ModelIdentity(name="fake/model", content=content, dims=DIMS, rendering=1)
    embedder = HashEmbedder(identity)
    return Model("fake/model", content, identity, lambda: embedder)


if __name__ == "__main__":
    commands.find = lambda *_: fake_model()
    sys.exit(cli.main())
