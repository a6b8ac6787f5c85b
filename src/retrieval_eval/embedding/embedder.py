"""What an embedder is, and the identity of the vectors that it makes. Loads nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
DEFAULT_REVISION = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"
MAX_TOKENS = 512
NORM_FLOOR = 1e-9
"""Floor of the norm that a vector is divided by, as in vipune's engine: zeros stay zeros and never become NaN."""


class Role(StrEnum):
    """What a text is to the model; some models want another prefix for each."""

    PASSAGE = "passage"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Everything that changes a vector, and nothing else.

    `content` is the hub's commit of a model named by its repository, or `sha256:…` over the files of a local folder:
    where the folder lies, and which backend computes, make no difference.
    """

    name: str
    content: str
    dims: int
    rendering: int
    pooling: str = "mean"
    normalisation: str = "L2"
    max_tokens: int = MAX_TOKENS
    query_prefix: str = ""
    passage_prefix: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the model is a local folder rather than a hub repository."""
        return self.content.startswith("sha256:")

    @property
    def fingerprint(self) -> str:
        """64 hex digits. A local folder counts by its content alone, a hub model by repository and commit."""
        facts = asdict(self)
        if self.is_local:
            del facts["name"]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def prefix(self, role: Role) -> str:
        """What is put in front of a text of this role."""
        return self.query_prefix if role is Role.QUERY else self.passage_prefix


@dataclass(frozen=True, slots=True)
class Embedded:
    """`vector`: shape (dims,), float32, L2-normalised, zeros for an empty text. `is_truncated`: tokens were cut off."""

    vector: npt.NDArray[np.float32]
    is_truncated: bool


class Embedder(Protocol):
    """Turns texts into vectors, each text by itself, so that a vector never depends on its neighbours."""

    @property
    def identity(self) -> ModelIdentity:
        """What the vectors are."""
        ...

    @property
    def backend(self) -> str:
        """`onnx` or `sentence-transformers`, for the log."""
        ...

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        """One result per text, in order; reads `texts` only a little ahead of what it has given back.

        Raises `ModelError` where the model yields NaN or another number of dimensions than `identity.dims`.
        """
        ...
