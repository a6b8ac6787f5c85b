"""The `onnx` backend: ONNX Runtime on a repository's `onnx/model.onnx`. The only home of onnxruntime."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import onnxruntime

from retrieval_eval.cores import available_cores
from retrieval_eval.embedding.embedder import NORM_FLOOR, Embedded, ModelIdentity, Role
from retrieval_eval.embedding.model_folder import ModelFolder
from retrieval_eval.embedding.tokens import TokenIds
from retrieval_eval.errors import ModelError, said

LOOKAHEAD = 4
"""Texts in flight for each thread: enough that no thread waits for the caller."""

_OUTPUTS = ("last_hidden_state", "token_embeddings")


class OnnxEmbedder:
    """One session of one intra-op thread, called from as many Python threads as there are cores.

    Each text is one call without padding, as in vipune's engine: the same text always gives the same bits. Two calls
    side by side keep two cores busier than one call that splits every product in two.
    """

    backend = "onnx"

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
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(self._where, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ModelError(
                "cannot be read as an ONNX model, it may be cut or damaged",
                where=self._where,
                got=said(error),
                hint="fetch the file again",
            ) from error
        self._inputs = {declared.name for declared in self._session.get_inputs()}
        names = [declared.name for declared in self._session.get_outputs()]
        self._output = next((name for name in _OUTPUTS if name in names), names[0])

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

    def vector_of(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Mean of the token vectors, L2-normalised: float32 (dims,), for token ids int64 (n,)."""
        row = ids[np.newaxis, :]
        feeds = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        try:
            (hidden,) = self._session.run([self._output], {name: feeds[name] for name in self._inputs & feeds.keys()})
        except Exception as error:
            raise ModelError(
                "cannot compute",
                where=self._where,
                got=said(error),
                hint="the ONNX file and tokenizer.json are not of the same model, or it wants other inputs",
            ) from error
        if hidden.shape != (1, len(ids), self.identity.dims):
            raise ModelError(
                f"output {self._output!r} has another shape",
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
