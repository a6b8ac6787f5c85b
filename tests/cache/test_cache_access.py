"""Locked, read-only and unreadable caches."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.errors import CacheError

Scripted = Callable[..., subprocess.CompletedProcess[str]]
NOBODY = 65534


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_locked_cache_is_named_and_prep_changes_nothing(finished: Any, data: Path, lock: str) -> None:
    before = finished.bytes()
    holder = sqlite3.connect(finished.file, isolation_level=None)
    holder.execute(f"BEGIN {lock}")
    with pytest.raises(CacheError, match=r"is in use by another process.*wait for it to end"):
        finished.prep(data)
    holder.close()
    assert finished.bytes() == before
    assert finished.prep(data).embedded == 0


@pytest.mark.usefixtures("short_patience")
def test_run_waits_only_for_a_writer_that_commits(finished: Any) -> None:
    report = finished.report()
    holder = sqlite3.connect(finished.file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert finished.report() == report
    holder.execute("ROLLBACK")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CacheError, match="is in use by another process"):
        finished.report()
    holder.close()


@pytest.fixture
def nobody(tmp_path: Path) -> int:
    """A user without rights, or this one where the tests do not run as root."""
    if os.getuid() != 0:
        return os.getuid()
    folder = tmp_path
    while folder != folder.parent:
        if not folder.stat().st_mode & 0o001:
            if folder.stat().st_uid != 0 or not str(folder).startswith("/tmp/pytest"):
                pytest.skip(f"{folder} is closed to other users")
            folder.chmod(0o755)
        folder = folder.parent
    return NOBODY


def test_a_read_only_cache_can_be_run(finished: Any, scripted: Scripted, nobody: int) -> None:
    finished.file.chmod(0o444)
    finished.folder.chmod(0o555)
    done = scripted(user=nobody, do="run")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_prep_into_a_read_only_cache_says_so(finished: Any, scripted: Scripted, nobody: int) -> None:
    before = finished.bytes()
    finished.file.chmod(0o444)
    finished.folder.chmod(0o555)
    done = scripted(user=nobody)
    assert (done.returncode, done.stderr) == (2, "")
    assert f"CacheError: embedding cache {finished.file}: cannot be opened or written" in done.stdout
    assert finished.bytes() == before


def test_prep_into_a_new_read_only_folder_says_so(cache: Any, scripted: Scripted, nobody: int) -> None:
    cache.folder.mkdir()
    cache.folder.chmod(0o555)
    done = scripted(user=nobody)
    assert (done.returncode, done.stderr) == (2, "")
    assert "CacheError: embedding cache" in done.stdout
    assert "check the folder's permissions" in done.stdout
    assert cache.bytes() == {}


@pytest.mark.parametrize("do", ["run", "prep"])
def test_a_cache_that_may_not_be_read_says_so(finished: Any, scripted: Scripted, nobody: int, do: str) -> None:
    finished.file.chmod(0o000)
    done = scripted(user=nobody, do=do)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Permission denied" in done.stdout
    finished.folder.chmod(0o000)
    done = scripted(user=nobody, do=do)
    assert (done.returncode, done.stderr) == (2, "")
    assert "CacheError" in done.stdout
