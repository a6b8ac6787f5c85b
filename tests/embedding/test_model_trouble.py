"""Models that are missing, incomplete or damaged: one clear error that names the place, and no waiting."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retrieval_eval.embedding.backends import Backend, load
from retrieval_eval.embedding.embedder import DEFAULT_MODEL, DEFAULT_REVISION, Role
from retrieval_eval.embedding.model_folder import find_model
from retrieval_eval.embedding.onnx import OnnxEmbedder
from retrieval_eval.errors import ModelError

Folder = Callable[..., Path]
FIND = f"""
from retrieval_eval.embedding.model_folder import find_model
from retrieval_eval.errors import ModelError
try:
    found = find_model({DEFAULT_MODEL!r})
    print(found.identity.name, found.identity.content, found.onnx is not None)
except ModelError as error:
    print("ModelError:", error)
"""


def run(program: str, env: dict[str, str], timeout_s: float = 60) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def hub(tmp_path: Path, model_path: Path) -> Path:
    """A hub cache that holds the default model at its pinned revision."""
    repository = tmp_path / "hub" / "models--BAAI--bge-small-en-v1.5"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "snapshots" / DEFAULT_REVISION).symlink_to(model_path)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(DEFAULT_REVISION, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("offline", ["1", "0"])
def test_a_model_in_the_hub_cache_needs_no_hub(
    hub: Path, environment: Callable[..., dict[str, str]], offline: str
) -> None:
    env = environment(HF_HOME=str(hub), HF_HUB_OFFLINE=offline, HF_ENDPOINT="http://127.0.0.1:9")
    assert run(FIND, env) == f"{DEFAULT_MODEL} {DEFAULT_REVISION} True\n"


@pytest.mark.parametrize("offline", ["1", "0"])
def test_no_hub_and_no_cache_is_an_error_within_seconds(
    tmp_path: Path, environment: Callable[..., dict[str, str]], offline: str
) -> None:
    env = environment(HF_HOME=str(tmp_path), HF_HUB_OFFLINE=offline, HF_ENDPOINT="http://127.0.0.1:9")
    started_s = time.monotonic()
    said = run(FIND, env, timeout_s=30)
    assert time.monotonic() - started_s < 20
    assert said.startswith(f"ModelError: model {DEFAULT_MODEL!r} at revision {DEFAULT_REVISION}: not in the local hub")
    assert "set HF_HOME to a hub cache that has it" in said


def test_a_snapshot_that_was_fetched_in_part_is_not_used(
    tmp_path: Path, model_path: Path, environment: Callable[..., dict[str, str]]
) -> None:
    snapshot = tmp_path / "hub" / "models--BAAI--bge-small-en-v1.5" / "snapshots" / DEFAULT_REVISION
    snapshot.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json"):
        (snapshot / name).symlink_to(model_path / name)
    said = run(FIND, environment(HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1"))
    assert said.startswith("ModelError: ")


@pytest.mark.parametrize("model", ["/no/such/folder", "./no-such-folder", "~/no-such-folder", "a/b/c"])
def test_a_folder_that_is_not_there_is_named(model: str) -> None:
    with pytest.raises(ModelError, match="no such model folder") as caught:
        find_model(model)
    assert repr(model) in str(caught.value)


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        ({"tokenizer.json": None, "model.safetensors": b"w"}, "missing tokenizer.json"),
        ({"config.json": None, "model.safetensors": b"w"}, "missing config.json"),
        ({}, "missing weights (onnx/model.onnx or model.safetensors)"),
        ({"tokenizer.json": None}, "missing tokenizer.json and weights (onnx/model.onnx or model.safetensors)"),
    ],
)
def test_an_incomplete_folder_and_what_it_lacks_are_named(
    stub_folder: Folder, left_out: dict[str, bytes | None], missing: str
) -> None:
    folder = stub_folder(**left_out)
    with pytest.raises(ModelError) as caught:
        find_model(str(folder))
    assert str(caught.value).startswith(f"model folder {folder}: incomplete, {missing} (hint: ")


@pytest.mark.parametrize(
    "config", [b"{", b"\xff\xfe", b"[]", b"{}", b"[" * 100_000, b'{"hidden_size": "8"}', b'{"hidden_size": true}']
)
def test_settings_that_cannot_be_read_are_named(stub_folder: Folder, config: bytes) -> None:
    folder = stub_folder(**{"config.json": config, "model.safetensors": b"w"})
    with pytest.raises(ModelError) as caught:
        find_model(str(folder))
    assert str(folder / "config.json") in str(caught.value)


@pytest.mark.parametrize("content", [b"", bytes(1024), b"\x08\x07\x12\x07pytorch"])
def test_a_cut_onnx_file_is_named(stub_folder: Folder, content: bytes) -> None:
    folder = stub_folder(**{"onnx/model.onnx": content})
    with pytest.raises(ModelError) as caught:
        load(find_model(str(folder)))
    assert str(caught.value).startswith(f"{folder / 'onnx' / 'model.onnx'}: cannot be read as an ONNX model")
    assert "\n" not in str(caught.value)


def test_the_first_half_of_the_real_onnx_file_is_named(stub_folder: Folder, model_path: Path) -> None:
    with (model_path / "onnx" / "model.onnx").open("rb") as whole:
        folder = stub_folder(**{"onnx/model.onnx": whole.read(66_000_000)})
    with pytest.raises(ModelError, match=r"model\.onnx: cannot be read as an ONNX model"):
        load(find_model(str(folder)))


@pytest.mark.parametrize("content", [b"", bytes(10), b"\xff" * 64])
def test_cut_safetensors_are_named(stub_folder: Folder, content: bytes) -> None:
    pytest.importorskip("sentence_transformers")
    folder = stub_folder(config={"model_type": "bert", "vocab_size": 30}, **{"model.safetensors": content})
    with pytest.raises(ModelError) as caught:
        load(find_model(str(folder)))
    assert str(caught.value).startswith(f"{folder / 'model.safetensors'}: cannot be loaded")
    assert "\n" not in str(caught.value)


def real_with(stub_folder: Folder, model_path: Path, **files: bytes) -> Path:
    """The real ONNX file beside other settings."""
    folder = stub_folder(**files)
    (folder / "onnx" / "model.onnx").symlink_to(model_path / "onnx" / "model.onnx")
    return folder


def test_settings_of_another_dimension_are_an_error(stub_folder: Folder, model_path: Path) -> None:
    folder = real_with(stub_folder, model_path)
    with pytest.raises(ModelError, match=r"got \(1, 3, 384\), expected \(1, 3, 8\)"):
        list(load(find_model(str(folder))).embed(["bad"], Role.QUERY))


def test_ids_that_the_model_does_not_have_are_an_error(stub_folder: Folder, model_path: Path) -> None:
    embedder = load(find_model(str(real_with(stub_folder, model_path))))
    assert isinstance(embedder, OnnxEmbedder)
    with pytest.raises(ModelError, match=r"model\.onnx: cannot compute"):
        embedder.vector_of(np.array([101, 99_999_999, 102]))


@pytest.mark.parametrize(
    ("backend", "file", "lacking"),
    [
        (Backend.ONNX, "model.safetensors", "has no onnx/model.onnx"),
        (Backend.OPENVINO, "model.safetensors", "has no onnx/model.onnx"),
        (Backend.SENTENCE_TRANSFORMERS, "onnx/model.onnx", "has no model.safetensors"),
    ],
)
def test_a_backend_without_its_file_says_which_other_to_take(
    stub_folder: Folder, backend: Backend, file: str, lacking: str
) -> None:
    folder = stub_folder(**{file: b"w"})
    with pytest.raises(ModelError, match=rf"model folder .*: {lacking} \(hint: use --backend "):
        load(find_model(str(folder)), backend)


@pytest.mark.parametrize(
    ("extra", "file"), [("sentence-transformers", "model.safetensors"), ("openvino", "onnx/model.onnx")]
)
def test_a_backend_that_is_not_installed_says_how_to_get_it(
    stub_folder: Folder, environment: Callable[..., dict[str, str]], extra: str, file: str
) -> None:
    folder = stub_folder(**{file: b"w"})
    program = f"""
import sys
sys.modules[{extra.replace("-", "_")!r}] = None
from retrieval_eval.embedding.backends import Backend, load
from retrieval_eval.embedding.model_folder import find_model
from retrieval_eval.errors import ModelError
try:
    load(find_model({str(folder)!r}), Backend({extra!r}))
except ModelError as error:
    print(error)
"""
    said = run(program, environment())
    assert f"needs the package {extra}, which is not installed" in said
    assert f"pip install 'retrieval-eval[{extra}]'" in said


def test_weights_of_nan_are_an_error(stub_folder: Folder, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    settings = transformers.BertConfig(
        vocab_size=64, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    model = transformers.BertModel(settings)
    model.embeddings.LayerNorm.weight.data.fill_(torch.nan)
    folder = stub_folder(**{"config.json": None})
    model.save_pretrained(folder)
    embedder = load(find_model(str(folder)))
    with pytest.raises(ModelError, match=r"model\.safetensors: yields another shape, NaN or infinity"):
        list(embedder.embed(["bad"], Role.QUERY))
    assert not any(made.vector.any() for made in embedder.embed([""], Role.QUERY))
