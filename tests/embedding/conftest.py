"""The real model, loaded once by each backend, and small stub folders of our own making."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from retrieval_eval.dataset.text import render
from retrieval_eval.embedding.backends import Backend, load
from retrieval_eval.embedding.embedder import Embedder, Role
from retrieval_eval.embedding.model_folder import find_model

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PIECES = (
    *"abcdeiru日本",
    *(f"##{letter}" for letter in "abcdeiru"),
    "bad",
    "##bed",
    "##ade",
    "cub",
    ",",
    "[",
    "]",
    "!",
)


@pytest.fixture(scope="session")
def model_path(shared: Path) -> Path:
    return shared / "models" / "bge-small-en-v1.5"


@pytest.fixture(scope="session")
def onnx(model_path: Path) -> Embedder:
    """The real model on ONNX Runtime."""
    return load(find_model(str(model_path)), Backend.ONNX)


@pytest.fixture(scope="session")
def openvino_backend(model_path: Path) -> Embedder:
    """The real model on OpenVINO."""
    pytest.importorskip("openvino")
    return load(find_model(str(model_path)), Backend.OPENVINO)


@pytest.fixture(scope="session")
def torch_backend(model_path: Path) -> Embedder:
    """The real model on sentence-transformers."""
    pytest.importorskip("sentence_transformers")
    return load(find_model(str(model_path)), Backend.SENTENCE_TRANSFORMERS)


@pytest.fixture(scope="session")
def real_sessions(shared: Path) -> list[str]:
    """Every distinct real session as it is embedded, shortest first."""
    with gzip.open(shared / "data" / "longmemeval_oracle_122.json.gz", "rt", encoding="utf-8") as file:
        instances = json.load(file)
    return sorted({render(turns) for item in instances for turns in item["haystack_sessions"]}, key=len)


def stub_tokenizer() -> Tokenizer:
    """A BERT tokenizer of a few pieces."""
    vocabulary = {piece: number for number, piece in enumerate((*SPECIALS, *PIECES))}
    tokenizer = Tokenizer(WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", SPECIALS.index("[CLS]")), ("[SEP]", SPECIALS.index("[SEP]"))]
    )
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return stub_tokenizer()


@pytest.fixture
def stub_folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a model folder: settings that are right, and the files given as bytes; `None` leaves one out."""

    def make(name: str = "stub", config: dict[str, Any] | None = None, **files: bytes | None) -> Path:
        folder = tmp_path / name
        (folder / "onnx").mkdir(parents=True)
        settings = {"hidden_size": 8, "max_position_embeddings": 32, **(config or {})}
        whole: dict[str, bytes | None] = {
            "config.json": json.dumps(settings).encode(),
            "tokenizer.json": stub_tokenizer().to_str().encode(),
            **files,
        }
        for file, content in whole.items():
            if content is not None:
                (folder / file).write_bytes(content)
        return folder

    return make


@pytest.fixture(scope="session")
def environment(root: Path) -> Callable[..., dict[str, str]]:
    """The environment of a child process that imports this package; keywords are added."""
    return lambda **more: {**os.environ, "PYTHONPATH": str(root / "src"), **more}


@pytest.fixture(scope="session")
def vectors_of() -> Callable[[Embedder, list[str]], np.ndarray]:
    """The vectors of some texts, float32 (n, dims)."""
    return lambda embedder, texts: np.array([made.vector for made in embedder.embed(texts, Role.PASSAGE)])
