"""What the backends for ONNX files share: one text a call, from as many Python threads as there are cores.

Owns threads, pooling and the checks of what a model yields. It imports no runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrieval_eval.cores import available_cores
from retrieval_eval.embedding.embedder import NORM_FLOOR, Embedded, ModelIdentity, Role
from retrieval_eval.embedding.model_folder import ModelFolder
from retrieval_eval.embedding.tokens import TokenIds
from retrieval_eval.errors import ModelError, said

LOOKAHEAD = 4
"""Texts in flight for each thread: enough that no thread waits for the caller."""

OUTPUTS = ("last_hidden_state", "token_embeddings")
"""Names of the output that holds the token vectors; where a model has neither, its first output does."""

Ids = npt.NDArray[np.int64]


class OneByOneEmbedder(ABC):
    """Embeds each text by itself and without padding, as vipune's engine does: a text always gives the same bits.

    Two calls side by side, each on one thread, keep two cores busier than one call that splits every product in two.
    """

    def __init__(self, folder: ModelFolder, threads: int | None = None) -> None:
        if folder.onnx is None:
            raise ModelError(
                "has no onnx/model.onnx",
                where=f"model folder {folder.path}",
                hint="use --backend sentence-transformers",
            )
        self.identity: ModelIdentity = folder.identity
        self._threads = threads or available_cores()
        self._tokens = TokenIds(folder.path / "tokenizer.json", folder.identity.max_tokens)
        self._where = str(folder.onnx)
        try:
            self._load(folder.onnx)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                "cannot be read as an ONNX model, it may be cut or damaged",
                where=self._where,
                got=said(error),
                hint="fetch the file again",
            ) from error

    @abstractmethod
    def _load(self, file: Path) -> None:
        """Load the model. A `ModelError` goes out as it is; anything else means that the file cannot be read."""

    @abstractmethod
    def _token_vectors(self, feeds: dict[str, Ids]) -> npt.NDArray[np.float32]:
        """The model's answer, float32 (1, n, dims), to inputs int64 (1, n) by name. May raise anything."""

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        """See `Embedder.embed`."""
        prefix = self.identity.prefix(role)
        waiting: deque[Future[Embedded]] = deque()
        with ThreadPoolExecutor(self._threads, thread_name_prefix="embed") as pool:
            try:
                for text in texts:
                    waiting.append(pool.submit(self._embed_one, prefix + text if text else ""))
                    if len(waiting) >= self._threads * LOOKAHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _embed_one(self, text: str) -> Embedded:
        if not text:
            return Embedded(np.zeros(self.identity.dims, dtype=np.float32), is_truncated=False)
        ids, is_truncated = self._tokens.encode(text)
        return Embedded(self.vector_of(ids), is_truncated)

    def vector_of(self, ids: Ids) -> npt.NDArray[np.float32]:
        """Mean of the token vectors, L2-normalised: float32 (dims,), for token ids int64 (n,)."""
        row = ids[np.newaxis, :]
        feeds = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        try:
            hidden = self._token_vectors(feeds)
        except Exception as error:
            raise ModelError(
                "cannot compute",
                where=self._where,
                got=said(error),
                hint="the ONNX file and tokenizer.json are not of the same model, or it wants other inputs",
            ) from error
        if hidden.shape != (1, len(ids), self.identity.dims):
            raise ModelError(
                "the output with the token vectors has another shape",
                where=self._where,
                got=str(hidden.shape),
                expected=str((1, len(ids), self.identity.dims)),
                hint="the ONNX file and config.json are not of the same model",
            )
        vector: npt.NDArray[np.float32] = hidden[0].mean(axis=0, dtype=np.float32)
        vector /= max(float(np.linalg.norm(vector)), NORM_FLOOR)
        if not np.isfinite(vector).all():
            raise ModelError("yields NaN or infinity", where=self._where, hint="fetch the file again")
        return vector
