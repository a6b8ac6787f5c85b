"""Vectors of the real model: those of the real crate, of the other backend, the same whatever stands beside them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from retrieval_eval.embedding.backends import load
from retrieval_eval.embedding.embedder import Embedder, Role
from retrieval_eval.embedding.model_folder import find_model
from retrieval_eval.embedding.onnx import OnnxEmbedder

Vectors = Callable[[Embedder, list[str]], np.ndarray]
TOLERANCE = 1e-5
MIXED = [
    "tin",
    "The spare key hangs behind the boiler.",
    "lighthouse " * 700,
    "Where does the spare key hang?",
    "\n  padded \t",
    "naïve façade in Zürich, 東京",
    "a? b! c; " * 40,
    "[SEP] [MASK] [CLS] ##ing",
    "x" * 3000,
]


def test_onnx_gives_the_vectors_of_the_real_crate(shared: Path, onnx: Embedder, vectors_of: Vectors) -> None:
    golden = np.load(shared / "golden" / "engine_vectors.npz")
    found = vectors_of(onnx, [str(text) for text in golden["texts"]])
    assert found.shape == golden["vectors"].shape == (159, 384)
    assert np.abs(found - golden["vectors"]).max() < TOLERANCE


def test_openvino_gives_the_vectors_of_the_real_crate(
    shared: Path, openvino_backend: Embedder, vectors_of: Vectors
) -> None:
    golden = np.load(shared / "golden" / "engine_vectors.npz")
    found = vectors_of(openvino_backend, [str(text) for text in golden["texts"]])
    assert np.abs(found - golden["vectors"]).max() < TOLERANCE


def test_sentence_transformers_gives_the_vectors_of_the_real_crate(
    shared: Path, torch_backend: Embedder, vectors_of: Vectors
) -> None:
    golden = np.load(shared / "golden" / "engine_vectors.npz")
    chosen = range(0, 159, 20)
    found = vectors_of(torch_backend, [str(golden["texts"][number]) for number in chosen])
    assert np.abs(found - golden["vectors"][chosen]).max() < TOLERANCE


@pytest.mark.parametrize("other", ["torch_backend", "openvino_backend"])
def test_backends_agree_on_real_sessions_and_on_which_of_them_are_truncated(
    onnx: Embedder, request: pytest.FixtureRequest, other: str, real_sessions: list[str]
) -> None:
    texts = [real_sessions[number] for number in (0, 3, 110, -1)]
    second: Embedder = request.getfixturevalue(other)
    ours, theirs = (list(embedder.embed(texts, Role.PASSAGE)) for embedder in (onnx, second))
    differences = [np.abs(a.vector - b.vector).max() for a, b in zip(ours, theirs, strict=True)]
    assert max(differences) < TOLERANCE
    assert [made.is_truncated for made in ours] == [made.is_truncated for made in theirs] == [False, True, True, True]


@pytest.mark.parametrize("other", ["torch_backend", "openvino_backend"])
def test_backends_agree_on_odd_texts(
    onnx: Embedder, request: pytest.FixtureRequest, other: str, vectors_of: Vectors
) -> None:
    second: Embedder = request.getfixturevalue(other)
    assert np.abs(vectors_of(onnx, MIXED) - vectors_of(second, MIXED)).max() < TOLERANCE


def test_vectors_are_float32_of_length_one(onnx: Embedder, vectors_of: Vectors) -> None:
    found = vectors_of(onnx, MIXED)
    assert (found.dtype, found.shape) == (np.float32, (len(MIXED), 384))
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("backend", ["onnx", "torch_backend", "openvino_backend"])
def test_an_empty_text_is_zeros_and_not_truncated(request: pytest.FixtureRequest, backend: str) -> None:
    (made,) = request.getfixturevalue(backend).embed([""], Role.QUERY)
    assert (made.vector.shape, made.vector.dtype, made.vector.any()) == ((384,), np.float32, False)
    assert not made.is_truncated


@pytest.mark.parametrize("threads", [1, 3])
def test_a_vector_has_the_same_bits_whatever_its_neighbours_their_order_and_the_threads(
    onnx: Embedder, model_path: Path, vectors_of: Vectors, threads: int
) -> None:
    alone = np.concatenate([vectors_of(onnx, [text]) for text in MIXED])
    other = OnnxEmbedder(find_model(str(model_path)), threads)
    assert np.array_equal(vectors_of(other, MIXED), alone)
    assert np.array_equal(vectors_of(other, MIXED[::-1]), alone[::-1])
    assert np.array_equal(vectors_of(other, MIXED[:2] * 9), np.tile(alone[:2], (9, 1)))


def test_openvino_gives_a_text_the_same_bits_whatever_its_neighbours_and_their_order(
    openvino_backend: Embedder, vectors_of: Vectors
) -> None:
    alone = np.concatenate([vectors_of(openvino_backend, [text]) for text in MIXED])
    assert np.array_equal(vectors_of(openvino_backend, MIXED[::-1]), alone[::-1])
    assert np.array_equal(vectors_of(openvino_backend, MIXED[1:3] * 5), np.tile(alone[1:3], (5, 1)))


def test_texts_are_read_only_a_little_ahead(onnx: Embedder) -> None:
    read = []

    def endless() -> Iterator[str]:
        for number in itertools.count():
            read.append(number)
            yield f"text {number}"

    made = onnx.embed(endless(), Role.PASSAGE)
    next(made)
    made.close()  # type: ignore[attr-defined]  # both backends are generators; the protocol promises an iterator
    assert len(read) <= 100


def test_no_texts_give_no_vectors(onnx: Embedder) -> None:
    assert list(onnx.embed([], Role.PASSAGE)) == []


def test_auto_takes_onnx_where_the_file_is_there(model_path: Path) -> None:
    assert load(find_model(str(model_path))).backend == "onnx"
