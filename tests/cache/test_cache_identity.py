"""A cache of other settings is refused by name and left as it is."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import fake_model
import pytest

from retrieval_eval.cache import manifest
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.errors import CacheError
from retrieval_eval.pipeline import RunRequest, run
from retrieval_eval.retriever.spec import parse_spec

OTHERS = {
    "content": "sha256:" + "1" * 64,
    "pooling": "cls",
    "normalisation": "none",
    "max_tokens": 256,
    "query_prefix": "query: ",
    "passage_prefix": "passage: ",
    "rendering": 99,
    "dims": 17,
}


@pytest.mark.parametrize("setting", OTHERS)
def test_prep_with_another_setting_names_it_and_changes_nothing(finished: Any, data: Path, setting: str) -> None:
    before = finished.bytes()
    identity = fake_model.other_identity(**{setting: OTHERS[setting]})
    with pytest.raises(CacheError) as refused:
        fake_model.prep(data, finished.folder, fake_model.model(fake_model.FakeEmbedder(identity)))
    assert f"expected {setting} {OTHERS[setting]!r}" in str(refused.value)
    assert str(finished.folder) in str(refused.value)
    assert finished.bytes() == before


def test_a_local_folder_of_another_name_with_the_same_content_fits(finished: Any, data: Path) -> None:
    embedder = fake_model.FakeEmbedder(fake_model.other_identity(name="elsewhere"))
    assert fake_model.prep(data, finished.folder, fake_model.model(embedder)).embedded == 0


def test_run_with_another_model_is_refused(finished: Any) -> None:
    embedder = fake_model.FakeEmbedder(fake_model.other_identity(content="sha256:" + "1" * 64))
    request = RunRequest(cache=finished.folder, spec=parse_spec("builtin:hybrid"))
    with pytest.raises(CacheError, match="holds vectors of another model"):
        run(request, lambda _: fake_model.model(embedder), fake_model.effects())


@pytest.mark.parametrize(("version", "age"), [(0, "an older"), (2, "a newer")])
def test_another_schema_is_refused_by_prep_and_run(finished: Any, data: Path, version: int, age: str) -> None:
    connection = sqlite3.connect(finished.file)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = finished.bytes()
    for use in (lambda: finished.prep(data), finished.report):
        with pytest.raises(CacheError, match=f"was made by {age} version of retrieval-eval: got schema {version}"):
            use()
    assert finished.bytes() == before


def test_a_manifest_of_another_schema_is_refused_by_run_and_replaced_by_prep(finished: Any, data: Path) -> None:
    report, file = finished.report(), finished.folder / manifest.FILE_NAME
    file.write_text(file.read_text().replace('"schema_version": 1', '"schema_version": 7'))
    with pytest.raises(CacheError, match="got schema 7, expected 1"):
        CacheReader(finished.folder)
    assert finished.prep(data).embedded == 0
    assert finished.report() == report


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"fingerprint": 1}', '{"unknown": 2}', "\x00", "[" * 100_000]
)
def test_a_foreign_manifest_is_refused_by_run_and_named_and_replaced_by_prep(
    finished: Any, data: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    report, file = finished.report(), finished.folder / manifest.FILE_NAME
    file.write_text(content)
    with pytest.raises(CacheError, match="is not a manifest of this version"):
        CacheReader(finished.folder)
    assert finished.prep(data).embedded == 0
    assert str(file) in caplog.text
    assert finished.report() == report


def test_a_missing_manifest_means_unfinished(finished: Any, data: Path) -> None:
    report = finished.report()
    (finished.folder / manifest.FILE_NAME).unlink()
    with pytest.raises(CacheError, match=r"is not finished: it has no manifest.*run prep again"):
        CacheReader(finished.folder)
    assert finished.prep(data).embedded == 0
    assert finished.report() == report


def test_the_manifest_of_another_cache_is_refused(finished: Any, data: Path, tmp_path: Path) -> None:
    other = type(finished)(tmp_path / "other")
    other.prep(fake_model.write(tmp_path / "other.json", fake_model.instances(3)))
    (finished.folder / manifest.FILE_NAME).write_bytes((other.folder / manifest.FILE_NAME).read_bytes())
    for use in (finished.report, lambda: finished.prep(data)):
        with pytest.raises(CacheError, match="not the one that its manifest describes"):
            use()


def test_the_manifest_counts_the_last_prep(finished: Any, data: Path) -> None:
    facts = json.loads((finished.folder / manifest.FILE_NAME).read_text())
    assert (facts["pairs"], facts["reused"], facts["embedded"]) == (6, 0, 25)
    finished.prep(data)
    facts = json.loads((finished.folder / manifest.FILE_NAME).read_text())
    assert (facts["reused"], facts["embedded"]) == (25, 0)
