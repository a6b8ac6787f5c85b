"""Entries of the official npm client are restored here, and ours there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.github.actions_cache import AlreadyThere, Restored, Saved

PATH = ".embcache"
V1 = {"GITHUB_SERVER_URL": "https://ghes.example"}
BOTH = pytest.mark.parametrize("service", [{}, V1], ids=["v2", "v1"])


def run_official(folder: Path, bench: Any, service: dict[str, str], *args: str) -> object:
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed: the official client would write gzip entries, which never match")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ACTIONS_", "GITHUB_"))}
    env |= bench.standin.env(ACTIONS_CACHE_SERVICE_V2="True", ACTIONS_CACHE_URL=bench.standin.url, **service)
    env |= {"GITHUB_WORKSPACE": str(bench.workspace), "RUNNER_TEMP": str(bench.folder / "scratch")}
    done = subprocess.run(
        ["node", str(folder / "official.mjs"), *args],
        cwd=bench.workspace,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))["value"]


@BOTH
def test_official_client_restores_ours(official: Path, bench: Any, service: dict[str, str]) -> None:
    content = bench.fill({"a.db": os.urandom(300_000), "deep/er/ü": b"x", "empty": b"", "n" * 150: b"long name"})
    assert isinstance(bench.client(**service).save(PATH, "k-1-"), Saved)
    bench.empty()
    assert run_official(official, bench, service, "restore", "k-2-", PATH, "k-") == "k-1-"
    assert bench.content() == content


@BOTH
def test_we_restore_that_of_the_official_client(official: Path, bench: Any, service: dict[str, str]) -> None:
    content = bench.fill({"a.db": os.urandom(300_000), "deep/er/ü": b"x", "empty": b"", "n" * 150: b"long name"})
    (bench.workspace / PATH / "empty folder").mkdir()
    run_official(official, bench, service, "save", "k-1-", PATH)
    bench.empty()
    restored = bench.client(**service).restore(PATH, "k-1-")
    assert isinstance(restored, Restored)
    assert restored.exact
    assert bench.content() == content
    assert (bench.workspace / PATH / "empty folder").is_dir()


def test_large_entry_of_several_frames_from_the_official_client(official: Path, bench: Any) -> None:
    content = bench.fill({"big": os.urandom(30_000_000) + bytes(30_000_000)})
    run_official(official, bench, {}, "save", "k-1-", PATH)
    bench.empty()
    assert isinstance(bench.client().restore(PATH, "k-1-"), Restored)
    assert bench.content() == content


def test_both_clients_see_one_entry_per_key(official: Path, bench: Any) -> None:
    bench.fill()
    run_official(official, bench, {}, "save", "k-1-", PATH)
    assert isinstance(bench.client().save(PATH, "k-1-"), AlreadyThere)
