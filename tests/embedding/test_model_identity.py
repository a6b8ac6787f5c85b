"""What changes a vector changes the fingerprint, and nothing else does."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval_eval.embedding.embedder import ModelIdentity, Role
from retrieval_eval.embedding.model_folder import find_model

HUB = ModelIdentity(name="some/model", content="0123abcd", dims=8, rendering=1)
LOCAL = dataclasses.replace(HUB, content="sha256:00ff")
CHANGES = {
    "content": "0123abce",
    "dims": 9,
    "rendering": 2,
    "pooling": "cls",
    "normalisation": "none",
    "max_tokens": 256,
    "query_prefix": "query: ",
    "passage_prefix": "passage: ",
}


def test_every_field_is_tried() -> None:
    assert {field.name for field in dataclasses.fields(ModelIdentity)} == {"name", *CHANGES}


@pytest.mark.parametrize("field", ["name", *CHANGES])
def test_a_hub_models_fingerprint_changes_with_every_field(field: str) -> None:
    changed = dataclasses.replace(HUB, **{field: CHANGES.get(field, "other/model")})
    assert changed.fingerprint != HUB.fingerprint


@pytest.mark.parametrize("field", CHANGES)
def test_a_local_models_fingerprint_changes_with_every_field_but_the_name(field: str) -> None:
    value = "sha256:00fe" if field == "content" else CHANGES[field]
    assert dataclasses.replace(LOCAL, **{field: value}).fingerprint != LOCAL.fingerprint


def test_a_local_models_name_does_not_change_its_fingerprint() -> None:
    assert dataclasses.replace(LOCAL, name="elsewhere").fingerprint == LOCAL.fingerprint


def test_a_fingerprint_is_64_hex_digits_that_stay() -> None:
    assert len(HUB.fingerprint) == 64
    assert HUB.fingerprint == dataclasses.replace(HUB).fingerprint
    assert int(HUB.fingerprint, 16)


def test_the_folders_place_and_name_do_not_change_the_fingerprint(
    stub_folder: Callable[..., Path], tmp_path: Path
) -> None:
    first = stub_folder("first", **{"model.safetensors": b"weights"})
    second = tmp_path / "elsewhere" / "second"
    shutil.copytree(first, second)
    assert find_model(str(first)).identity.fingerprint == find_model(str(second)).identity.fingerprint


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"])
def test_a_change_in_any_file_of_the_folder_changes_the_fingerprint(
    stub_folder: Callable[..., Path], file: str
) -> None:
    folder = stub_folder(**{"model.safetensors": b"weights"})
    before = find_model(str(folder)).identity.fingerprint
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("ab") as stream:
        stream.write(b"\n")
    assert find_model(str(folder)).identity.fingerprint != before


def test_moving_bytes_from_one_file_to_another_changes_the_fingerprint(stub_folder: Callable[..., Path]) -> None:
    one = stub_folder("one", **{"model.safetensors": b"ab", "notes.json": b"c"})
    two = stub_folder("two", **{"model.safetensors": b"a", "notes.json": b"bc"})
    assert find_model(str(one)).identity.fingerprint != find_model(str(two)).identity.fingerprint


def test_hidden_files_do_not_change_the_fingerprint(stub_folder: Callable[..., Path]) -> None:
    folder = stub_folder(**{"model.safetensors": b"weights"})
    before = find_model(str(folder)).identity.fingerprint
    (folder / ".cache").mkdir()
    (folder / ".cache" / "lock").write_text("x", encoding="utf-8")
    (folder / ".gitattributes").write_text("x", encoding="utf-8")
    assert find_model(str(folder)).identity.fingerprint == before


def test_dimensions_and_length_come_from_the_settings(stub_folder: Callable[..., Path]) -> None:
    short = stub_folder("short", {"hidden_size": 12}, **{"model.safetensors": b"w"})
    long = stub_folder("long", {"max_position_embeddings": 8192}, **{"model.safetensors": b"w"})
    identities = [find_model(str(folder)).identity for folder in (short, long)]
    assert [(found.dims, found.max_tokens) for found in identities] == [(12, 32), (8, 512)]


def test_each_role_has_its_prefix() -> None:
    identity = dataclasses.replace(HUB, query_prefix="query: ", passage_prefix="passage: ")
    assert [identity.prefix(role) for role in (Role.QUERY, Role.PASSAGE)] == ["query: ", "passage: "]
