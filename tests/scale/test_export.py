from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import zstandard

from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.errors import CacheError
from retrieval_eval.sharing.exporting import Exported, export
from retrieval_eval.sharing.merging import merge

ROOT = "retrieval-eval-cache"


def members(archive: Path) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(archive.read_bytes())
    with tarfile.open(fileobj=BytesIO(plain)) as tar:
        return {member.name: (member, file.read() if (file := tar.extractfile(member)) else b"") for member in tar}


def fresh(lab: Any, tmp_path: Path) -> Path:
    lab.prepare(lab.data(20), tmp_path / "cache")
    return tmp_path / "cache"


def merged(lab: Any, tmp_path: Path) -> Path:
    merge(tmp_path / "cache", lab.shards(lab.data(20), 3), lab.quiet)
    return tmp_path / "cache"


def resumed(lab: Any, tmp_path: Path) -> Path:
    lab.prepare(lab.data(20), tmp_path / "cache", "2/3")
    lab.prepare(lab.data(20), tmp_path / "cache")
    return tmp_path / "cache"


def grown(lab: Any, tmp_path: Path) -> Path:
    for questions, sessions in ((30, 12), (5, 3), (20, 9)):
        lab.prepare(lab.data(questions, sessions), tmp_path / "cache")
    return tmp_path / "cache"


def vacuumed(lab: Any, tmp_path: Path) -> Path:
    folder = grown(lab, tmp_path)
    (folder / "manifest.json").unlink()
    with closing(sqlite3.connect(folder / "embeddings.sqlite")) as database:
        database.execute("PRAGMA page_size = 8192")
        database.execute("VACUUM")
    lab.prepare(lab.data(20), folder)
    return folder


@pytest.mark.parametrize("history", [fresh, merged, resumed, grown, vacuumed])
def test_equal_content_gives_equal_bytes_whatever_the_history(
    history: Callable[..., Path], lab: Any, tmp_path: Path
) -> None:
    lab.prepare(lab.data(20), tmp_path / "plain")
    expected = export(tmp_path / "plain", tmp_path / "plain.tar.zst", lab.quiet)
    cache = history(lab, tmp_path)
    os.utime(cache / "embeddings.sqlite", (1, 1))
    (cache / "embeddings.sqlite").chmod(0o600)
    assert export(cache, tmp_path / "other.tar.zst", lab.quiet) == expected
    assert (tmp_path / "other.tar.zst").read_bytes() == (tmp_path / "plain.tar.zst").read_bytes()


def test_other_content_gives_other_bytes(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(20), tmp_path / "one")
    lab.prepare(lab.data(21), tmp_path / "two")
    assert export(tmp_path / "one", tmp_path / "a", lab.quiet) != export(tmp_path / "two", tmp_path / "b", lab.quiet)


def test_another_process_makes_the_same_bytes_and_prints_a_manifest(
    monkeypatch: pytest.MonkeyPatch, lab: Any, tmp_path: Path
) -> None:
    lab.prepare(lab.data(), tmp_path / "cache")
    here = export(tmp_path / "cache", tmp_path / "here.tar.zst", lab.quiet)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    url = "https://example.org/cache.tar.zst"
    code, out, _ = lab.run("export", "--cache", tmp_path / "cache", tmp_path / "there.tar.zst", "--url", url)
    assert code == 0
    assert json.loads(out) == {"url": url, "sha256": here.sha256, "size_bytes": here.size_bytes}
    assert (tmp_path / "there.tar.zst").read_bytes() == (tmp_path / "here.tar.zst").read_bytes()


def test_archive_holds_cache_card_and_notice_and_nothing_of_this_machine(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "cache")
    export(tmp_path / "cache", tmp_path / "cache.tar.zst", lab.quiet)
    found = members(tmp_path / "cache.tar.zst")
    names = ["", "/LICENSE-LongMemEval", "/embeddings.sqlite", "/manifest.json", "/provenance.json"]
    assert list(found) == [ROOT + name for name in names]
    for info, _ in found.values():
        assert (info.mtime, info.uid, info.gid, info.uname, info.gname) == (0, 0, 0, "", "")
    card = json.loads(found[f"{ROOT}/provenance.json"][1])
    with CacheReader(tmp_path / "cache") as cache:
        assert card["fingerprint"] == cache.identity.fingerprint
        assert card["dataset"] == dict(cache.dataset)
        assert card["vectors"] == len(cache.with_vector())
    assert card["model"]["name"] == "fake/model"
    assert card["tool"].startswith("retrieval-eval ")
    notice = found[f"{ROOT}/LICENSE-LongMemEval"][1].decode()
    assert "MIT License" in notice
    assert "LongMemEval, xiaowu0162" in notice
    assert str(tmp_path) not in "".join(content.decode("latin-1") for _, content in found.values())


def test_texts_that_the_data_file_no_longer_has_stay_out(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(60), tmp_path / "cache")
    lab.prepare(lab.data(5, 3), tmp_path / "cache")
    export(tmp_path / "cache", tmp_path / "cache.tar.zst", lab.quiet)
    (tmp_path / "out.sqlite").write_bytes(members(tmp_path / "cache.tar.zst")[f"{ROOT}/embeddings.sqlite"][1])
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM text").fetchone() == (5 + 15,)


@pytest.mark.parametrize("shard", ["1/1", "1/2"])
def test_shard_is_not_exported(shard: str, lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "part", shard)
    with pytest.raises(CacheError, match="alone"):
        export(tmp_path / "part", tmp_path / "part.tar.zst", lab.quiet)
    assert not (tmp_path / "part.tar.zst").exists()


def test_folder_that_is_not_there_is_named_and_an_older_archive_stays(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "cache")
    with pytest.raises(CacheError, match=f"{tmp_path}/nowhere/cache.tar.zst: cannot be written"):
        export(tmp_path / "cache", tmp_path / "nowhere" / "cache.tar.zst", lab.quiet)
    (tmp_path / "kept.tar.zst").write_bytes(b"older")
    with pytest.raises(CacheError, match="is not there"):
        export(tmp_path / "no-cache", tmp_path / "kept.tar.zst", lab.quiet)
    assert (tmp_path / "kept.tar.zst").read_bytes() == b"older"


def test_size_and_digest_are_those_of_the_file(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "cache")
    done: Exported = export(tmp_path / "cache", tmp_path / "cache.tar.zst", lab.quiet)
    shown = subprocess.run(["sha256sum", tmp_path / "cache.tar.zst"], capture_output=True, text=True, check=True)
    assert shown.stdout.split()[0] == done.sha256
    assert (tmp_path / "cache.tar.zst").stat().st_size == done.size_bytes
