"""The `sentence-transformers` backend: any model that the library loads. Only home of that library and of torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.embedding.model_folder import ModelFolder
from retrieval_eval.embedding.tokens import TokenIds
from retrieval_eval.errors import ModelError, said


class SentenceTransformerEmbedder:
    """A transformer in float32 on the CPU, mean pooling whatever the folder's own modules say, one text a call."""

    backend = "sentence-transformers"

    def __init__(self, folder: ModelFolder) -> None:
        try:
            import torch  # noqa: PLC0415 - an extra of the package, and seconds to import
            import transformers  # noqa: PLC0415 - as below
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - as above
            from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer  # noqa: PLC0415 - as above
        except ImportError as error:
            raise ModelError(
                "needs the package sentence-transformers, which is not installed",
                where="backend sentence-transformers",
                hint="pip install 'retrieval-eval[sentence-transformers]', or take a model with onnx/model.onnx",
            ) from error
        if folder.torch is None:
            raise ModelError("has no model.safetensors", where=f"model folder {folder.path}", hint="use --backend onnx")
        transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # it has no types
        transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
        self.identity: ModelIdentity = folder.identity
        self._tokens = TokenIds(folder.path / "tokenizer.json", folder.identity.max_tokens)
        self._where = str(folder.torch)
        try:
            transformer = Transformer(
                str(folder.path),
                max_seq_length=folder.identity.max_tokens,
                model_kwargs={"dtype": torch.float32, "local_files_only": True},
                config_kwargs={"local_files_only": True},
                processor_kwargs={"local_files_only": True},
            )
        except Exception as error:
            raise ModelError(
                "cannot be loaded, the file may be cut or damaged",
                where=self._where,
                got=said(error),
                hint="fetch the model again",
            ) from error
        pooling = Pooling(folder.identity.dims, pooling_mode="mean")
        self._model = SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")

    def embed(self, texts: Iterable[str], role: Role) -> Iterator[Embedded]:
        """See `Embedder.embed`."""
        prefix = self.identity.prefix(role)
        for text in texts:
            yield self._embed_one(prefix + text if text else "")

    def _embed_one(self, text: str) -> Embedded:
        if not text:
            return Embedded(np.zeros(self.identity.dims, dtype=np.float32), is_truncated=False)
        _, is_truncated = self._tokens.encode(text)
        try:
            vector = np.asarray(self._model.encode(text, show_progress_bar=False), dtype=np.float32)
        except Exception as error:
            raise ModelError("cannot compute", where=self._where, got=said(error)) from error
        if vector.shape != (self.identity.dims,) or not np.isfinite(vector).all():
            raise ModelError(
                "yields another shape, NaN or infinity",
                where=self._where,
                got=f"shape {vector.shape}",
                expected=f"({self.identity.dims},) of finite numbers",
            )
        return Embedded(vector, is_truncated)
