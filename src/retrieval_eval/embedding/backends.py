"""Which backend computes: the choice behind `--backend`. Imports a backend only when it is chosen."""

from __future__ import annotations

from enum import StrEnum

from retrieval_eval.embedding.embedder import Embedder
from retrieval_eval.embedding.model_folder import ModelFolder


class Backend(StrEnum):
    """`auto` takes `onnx` where the model has an ONNX file, else `sentence-transformers`; `openvino` only by name."""

    AUTO = "auto"
    ONNX = "onnx"
    OPENVINO = "openvino"
    SENTENCE_TRANSFORMERS = "sentence-transformers"


def load(folder: ModelFolder, backend: Backend = Backend.AUTO) -> Embedder:
    """Load the model of `folder`. Raises `ModelError` where the backend cannot."""
    if backend is Backend.ONNX or (backend is Backend.AUTO and folder.onnx is not None):
        from retrieval_eval.embedding.onnx import OnnxEmbedder  # noqa: PLC0415 - only the chosen backend is imported

        return OnnxEmbedder(folder)
    if backend is Backend.OPENVINO:
        from retrieval_eval.embedding.openvino import OpenVinoEmbedder  # noqa: PLC0415 - as above

        return OpenVinoEmbedder(folder)
    from retrieval_eval.embedding.sentence_transformer import (  # noqa: PLC0415 - as above
        SentenceTransformerEmbedder,
    )

    return SentenceTransformerEmbedder(folder)
