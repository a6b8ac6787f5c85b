"""A stand-in for the embedding model: vectors that cost nothing, so that what is left to measure is ours.

For benchmarks only. The vectors depend on the text alone and lie a little nearer to those of texts that begin alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.model import RENDERING_VERSION
from retrieval_eval.pipeline import Model

DIMS = 384
IDENTITY = ModelIdentity("stand-in", "sha256:stand-in", DIMS, RENDERING_VERSION)


class StandIn:
    """Random unit vectors, seeded by the text's checksum."""

    identity, backend = IDENTITY, "stand-in"

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:  # noqa: ARG002 - the protocol's
        """One vector per text, in order."""
        for text in texts:
            vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMS, dtype=np.float32)
            yield Embedded(vector / np.linalg.norm(vector), is_truncated=len(text) > 2_500)


def model() -> Model:
    """The stand-in as `prep` and `run` want it."""
    return Model("stand-in", None, IDENTITY, StandIn)
