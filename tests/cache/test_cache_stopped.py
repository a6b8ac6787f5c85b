"""Killed at any moment, out of space, interrupted, or given a wrong file: the next prep ends as an undisturbed one."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_model
import pytest

from retrieval_eval.cache import manifest
from retrieval_eval.errors import CacheError, DatasetError, ModelError

Scripted = Callable[..., subprocess.CompletedProcess[str]]

MOMENTS = {
    "while the tables are laid out": ("create 1", "is not there"),
    "while the model loads": ("load 1", "holds no questions"),
    "in the read transaction, first question": ("read 1", "holds no questions"),
    "in the read transaction, last question": ("read 6", "holds no questions"),
    "between the texts and the facts about the file": ("read end 1", "is incomplete: 0 of 6 questions are embedded"),
    "before the first vector": ("text 1", "is incomplete: 0 of 6 questions are embedded"),
    "between two commits": ("text 11", "is incomplete: 0 of 6 questions are embedded"),
    "after some questions are whole": ("text 24", "is incomplete: 4 of 6 questions are embedded"),
    "between the last vector and the manifest": ("embed end 1", "is not finished: it has no manifest"),
}


@pytest.fixture
def undisturbed(cache: Any, data: Path, tmp_path: Path) -> Any:
    other = type(cache)(tmp_path / "undisturbed")
    other.prep(data)
    return other


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_then_run_again(cache: Any, data: Path, scripted: Scripted, undisturbed: Any, moment: str) -> None:
    step, refusal = MOMENTS[moment]
    assert scripted(kill=step).returncode == -signal.SIGKILL
    with pytest.raises(CacheError, match=refusal):
        cache.report()
    cache.prep(data)
    assert cache.content() == undisturbed.content()
    assert cache.report() == undisturbed.report()
    assert sorted(cache.bytes()) == ["embeddings.sqlite", "manifest.json"]


def test_killed_again_and_again_still_ends(cache: Any, data: Path, scripted: Scripted, undisturbed: Any) -> None:
    for step in ("create 1", "read 3", "text 6", "text 6", "text 6", "embed end 1"):
        assert scripted(kill=step).returncode == -signal.SIGKILL
    assert cache.prep(data).embedded == 0
    assert cache.content() == undisturbed.content()


def test_what_was_embedded_before_the_kill_is_not_embedded_again(cache: Any, data: Path, scripted: Scripted) -> None:
    scripted(kill="text 11")
    done = cache.prep(data)
    assert (done.reused, done.embedded) == (8, 17)


def test_killed_while_a_finished_cache_grows(finished: Any, tmp_path: Path, scripted: Scripted) -> None:
    grown = fake_model.write(tmp_path / "grown.json", fake_model.instances(9))
    before, report = finished.bytes(), finished.report()
    assert scripted(data=str(grown), kill="read 8").returncode == -signal.SIGKILL
    assert finished.report() == report
    assert {name: finished.bytes()[name] for name in before} == before
    assert scripted(data=str(grown), kill="read end 1").returncode == -signal.SIGKILL
    with pytest.raises(CacheError, match="is incomplete: 6 of 9 questions are embedded"):
        finished.report()
    fresh = type(finished)(tmp_path / "fresh")
    fresh.prep(grown)
    assert finished.prep(grown).reused == 25
    assert finished.content()["vector"] == fresh.content()["vector"]
    assert finished.report() == fresh.report()


SPILL = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM pair")
for number in range(2000):
    connection.execute("INSERT INTO pair(record) VALUES (zeroblob(3000))")
connection.execute("UPDATE text SET body = zeroblob(3000)")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("has_manifest", [True, False])
def test_killed_with_half_a_transaction_in_the_file(finished: Any, data: Path, has_manifest: bool) -> None:
    """A big transaction spills into the database before its commit; the journal beside it undoes that."""
    report, content = finished.report(), finished.content()
    if not has_manifest:
        (finished.folder / manifest.FILE_NAME).unlink()
    size = finished.file.stat().st_size
    assert subprocess.run([sys.executable, "-c", SPILL, finished.file], check=False).returncode == -signal.SIGKILL
    assert (finished.folder / "embeddings.sqlite-journal").stat().st_size > 0
    assert finished.file.stat().st_size > size
    with pytest.raises(CacheError, match="is not finished: prep is writing it, or was stopped in a write"):
        finished.report()
    assert finished.prep(data).embedded == 0
    assert finished.content() == content
    assert finished.report() == report


def test_cut_below_its_header_while_a_journal_can_put_it_right(finished: Any, data: Path) -> None:
    """A commit writes the header with the new size first; killed right then, the file is shorter than it says."""
    report = finished.report()
    assert subprocess.run([sys.executable, "-c", SPILL, finished.file], check=False).returncode == -signal.SIGKILL
    spoilt = bytearray(finished.file.read_bytes())
    spoilt[28:32] = (len(spoilt) // 4096 + 50).to_bytes(4, "big")
    finished.file.write_bytes(spoilt)
    assert finished.prep(data).embedded == 0
    assert finished.report() == report


@pytest.mark.parametrize("limit", [1, 4096, 20_000, 40_000, 60_000])
def test_no_space_is_said_and_the_next_prep_goes_on(
    cache: Any, data: Path, tmp_path: Path, scripted: Scripted, limit: int
) -> None:
    big = fake_model.write(tmp_path / "big.json", [fake_model.instance(number, words=300) for number in range(12)])
    failed = scripted(data=str(big), max_file_bytes=limit)
    assert (failed.returncode, failed.stderr) == (2, "")
    assert "no space left, or the disk failed" in failed.stdout
    with pytest.raises(CacheError):
        cache.report()
    cache.prep(big)
    undisturbed = type(cache)(tmp_path / "undisturbed")
    undisturbed.prep(big)
    assert cache.content() == undisturbed.content()
    assert cache.report() == undisturbed.report()


def test_no_space_for_more_leaves_what_was_there(finished: Any, data: Path, tmp_path: Path, scripted: Scripted) -> None:
    content, report = finished.content(), finished.report()
    big = fake_model.write(tmp_path / "big.json", [fake_model.instance(number, words=900) for number in range(40)])
    failed = scripted(data=str(big), max_file_bytes=finished.file.stat().st_size + 4096)
    assert failed.returncode == 2
    assert finished.content() == content
    finished.prep(data)
    assert finished.report() == report


def test_no_space_for_the_manifest_is_said(cache: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(CacheError, match=r"manifest.json: cannot be written: got No space left on device"):
            cache.prep(data)
    with pytest.raises(CacheError, match="is not finished"):
        cache.report()
    assert cache.prep(data).embedded == 0


def test_an_interrupt_while_embedding_keeps_what_was_committed(
    cache: Any, data: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_model.pipeline, "COMMIT_TEXTS", 4)

    def interrupt(step: str, count: int) -> None:
        if (step, count) == ("text", 10):
            raise KeyboardInterrupt

    cache.embedder.moment = interrupt
    with pytest.raises(KeyboardInterrupt):
        cache.prep(data)
    cache.embedder.moment = fake_model.nothing
    assert cache.prep(data).reused == 8
    assert cache.content() == undisturbed.content()


def spoilt_files(tmp_path: Path) -> dict[str, Path]:
    records = fake_model.instances(8)
    whole = json.dumps(records)
    broken = fake_model.instances(8)
    del broken[7]["question"]
    unscored = fake_model.instances(2)
    for record in unscored:
        record["question_id"] += "_abs"
    (tmp_path / "cut.json").write_text(whole[: len(whole) // 2])
    return {
        "cut": tmp_path / "cut.json",
        "broken": fake_model.write(tmp_path / "broken.json", broken),
        "nothing to score": fake_model.write(tmp_path / "unscored.json", unscored),
        "empty": fake_model.write(tmp_path / "empty.json", []),
    }


@pytest.mark.parametrize("kind", ["cut", "broken", "nothing to score", "empty"])
def test_a_wrong_data_file_leaves_a_finished_cache_as_it_was(finished: Any, tmp_path: Path, kind: str) -> None:
    content, report = finished.content(), finished.report()
    names = sorted(finished.bytes())
    with pytest.raises(DatasetError):
        finished.prep(spoilt_files(tmp_path)[kind])
    assert finished.content() == content
    assert sorted(finished.bytes()) == names
    assert finished.report() == report


@pytest.mark.parametrize("kind", ["cut", "broken", "nothing to score", "empty"])
def test_a_wrong_data_file_leaves_no_new_cache(cache: Any, data: Path, tmp_path: Path, kind: str) -> None:
    with pytest.raises(DatasetError):
        cache.prep(spoilt_files(tmp_path)[kind])
    assert cache.bytes() == {}
    with pytest.raises(CacheError, match="is not there"):
        cache.report()
    assert cache.prep(data).pairs == 6


def test_a_model_that_does_not_load_leaves_no_new_cache(cache: Any, data: Path) -> None:
    def broken(step: str, count: int) -> None:
        raise ModelError("cannot be read", where="model.onnx")

    with pytest.raises(ModelError):
        fake_model.prep(data, cache.folder, fake_model.model(cache.embedder, broken))
    assert cache.bytes() == {}


def test_a_partial_manifest_that_a_kill_left_is_replaced(cache: Any, data: Path) -> None:
    cache.folder.mkdir()
    (cache.folder / "manifest.json.partial").write_text("{")
    cache.prep(data)
    assert sorted(cache.bytes()) == ["embeddings.sqlite", "manifest.json"]


def test_texts_that_no_pair_needs_are_not_embedded(cache: Any, data: Path, tmp_path: Path, scripted: Scripted) -> None:
    """A file that was taken in, never embedded, then replaced by a smaller one."""
    assert scripted(kill="text 1").returncode == -signal.SIGKILL
    done = cache.prep(fake_model.write(tmp_path / "few.json", fake_model.instances(1)))
    assert (done.pairs, done.embedded) == (1, 5)
    connection = sqlite3.connect(cache.file)
    assert connection.execute("SELECT (SELECT count(*) FROM text), (SELECT count(*) FROM vector)").fetchone() == (25, 5)
    connection.close()
