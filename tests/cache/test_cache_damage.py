"""Empty, cut, damaged and foreign files: named, left as they are, and never the source of a number."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_model
import pytest

from retrieval_eval.cache import manifest, schema
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.errors import CacheError

FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda whole: b"", "is an empty file"),
    "one byte": (lambda whole: whole[:1], "is not an SQLite database"),
    "garbage": (lambda whole: b"this is no database\n" * 40, "is not an SQLite database"),
    "half": (lambda whole: whole[: len(whole) // 2], "is cut off"),
    "one byte short": (lambda whole: whole[:-1], "is cut off"),
    "only the header": (lambda whole: whole[:100], "is cut off"),
    "longer": (lambda whole: whole + b"\0" * 4096, "is damaged"),
    "zeros in the middle": (lambda whole: whole[:8192] + b"\0" * 4096 + whole[12288:], "is damaged"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_spoilt_file_is_named_with_a_way_out_and_left_alone(finished: Any, data: Path, kind: str) -> None:
    spoil, problem = FILES[kind]
    finished.file.write_bytes(spoil(finished.file.read_bytes()))
    before = finished.bytes()
    for use in (finished.report, lambda: finished.prep(data)):
        with pytest.raises(CacheError, match=problem) as refused:
            use()
        assert str(finished.file) in str(refused.value)
        assert "delete this file and run prep again" in str(refused.value)
    assert finished.bytes() == before


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in ("longer", "zeros in the middle")])
def test_without_a_manifest_a_spoilt_file_is_still_named(finished: Any, data: Path, kind: str) -> None:
    spoil, problem = FILES[kind]
    (finished.folder / manifest.FILE_NAME).unlink()
    finished.file.write_bytes(spoil(finished.file.read_bytes()))
    for use in (finished.report, lambda: finished.prep(data)):
        with pytest.raises(CacheError, match=problem):
            use()


def test_another_programs_database_is_named_and_left_alone(cache: Any, data: Path) -> None:
    cache.folder.mkdir()
    connection = sqlite3.connect(cache.file)
    connection.executescript("CREATE TABLE notes(body); INSERT INTO notes VALUES ('mine'); PRAGMA user_version = 12;")
    connection.close()
    before = cache.bytes()
    for use in (cache.report, lambda: cache.prep(data)):
        with pytest.raises(CacheError, match="another program's database: got application id 0, version 12"):
            use()
    assert cache.bytes() == before


def test_a_database_that_only_claims_to_be_ours_is_refused(cache: Any, data: Path) -> None:
    cache.folder.mkdir()
    connection = sqlite3.connect(cache.file)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
    connection.execute("CREATE TABLE meta(key, value)")
    connection.close()
    for use in (cache.report, lambda: cache.prep(data)):
        with pytest.raises(CacheError, match=r"embedding cache .*is damaged"):
            use()


def test_a_trigger_that_a_stranger_left_is_refused(finished: Any, data: Path) -> None:
    (finished.folder / manifest.FILE_NAME).unlink()
    connection = sqlite3.connect(finished.file)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON vector BEGIN DELETE FROM text; END")
    connection.close()
    for use in (finished.report, lambda: finished.prep(data)):
        with pytest.raises(CacheError, match="other tables"):
            use()


def test_a_folder_in_place_of_the_file_is_refused(cache: Any, data: Path) -> None:
    cache.file.mkdir(parents=True)
    with pytest.raises(CacheError, match="is not there"):
        cache.report()
    with pytest.raises(CacheError, match="cannot be used"):
        cache.prep(data)


def test_a_file_in_place_of_the_folder_is_refused(cache: Any, data: Path) -> None:
    cache.folder.write_text("mine")
    for use in (cache.report, lambda: cache.prep(data)):
        with pytest.raises(CacheError, match=str(cache.folder)):
            use()
    assert cache.folder.read_text() == "mine"


def test_no_cache_at_all_says_how_to_make_one(cache: Any) -> None:
    with pytest.raises(CacheError, match=r"is not there \(hint: run `retrieval-eval prep DATA --cache "):
        CacheReader(cache.folder)


def test_no_flipped_byte_goes_unnoticed(finished: Any, data: Path) -> None:
    whole = finished.file.read_bytes()
    for offset in [*range(100), *range(100, len(whole), 97)]:
        finished.file.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :])
        with pytest.raises(CacheError):
            CacheReader(finished.folder)
        if offset % 16 == 0:
            with pytest.raises(CacheError):
                finished.prep(data)
    finished.file.write_bytes(whole)
    CacheReader(finished.folder).__exit__(None, None, None)


def test_no_flipped_byte_in_the_manifest_changes_a_number(finished: Any) -> None:
    file, report = finished.folder / manifest.FILE_NAME, finished.report()
    whole, refused = file.read_bytes(), 0
    for offset in range(0, len(whole), 29):
        file.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :])
        try:
            assert finished.report() == report
        except CacheError as error:
            refused += 1
            assert str(finished.folder) in str(error)
    assert refused > 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("model_source", 7), ("model_revision", []), ("pairs", "6"), ("reused", None), ("embedded", True)],
)
def test_a_manifest_value_of_another_type_is_named(finished: Any, field: str, value: object) -> None:
    file = finished.folder / manifest.FILE_NAME
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(CacheError, match=f"is not a manifest of this version: got {field} is "):
        CacheReader(finished.folder)


BLOBS = ("text.body", "text.terms", "vector.vector", "pair.record", "vocabulary.terms", "meta.value")


@pytest.mark.parametrize("blobs", BLOBS)
def test_without_a_manifest_every_blob_still_checks_itself(finished: Any, data: Path, blobs: str) -> None:
    """A prep that was killed left no manifest: what the next one goes on from is not trusted blindly either."""
    report, (table, column) = finished.report(), blobs.split(".")
    (finished.folder / manifest.FILE_NAME).unlink()
    connection = sqlite3.connect(finished.file)
    connection.create_function("spoil", 1, lambda blob: blob[:-6] + bytes([blob[-6] ^ 1]) + blob[-5:])
    connection.execute(f"UPDATE {table} SET {column} = spoil({column})")  # noqa: S608 - our own names
    connection.commit()
    connection.close()
    with pytest.raises(CacheError):
        finished.report()
    try:
        finished.prep(data)
        assert finished.report() == report
    except CacheError as error:
        assert str(finished.file) in str(error)


def test_a_bug_of_ours_in_the_data_reader_is_not_called_damage(finished: Any, data: Path) -> None:
    def broken(step: str, count: int) -> None:
        if step == "read":
            raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        fake_model.pipeline.prep(data, finished.folder, fake_model.model(finished.embedder), fake_model.effects(broken))
