from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.archive import Caps, create
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.errors import CacheError, SettingsError
from retrieval_eval.http import Clock, Http
from retrieval_eval.sharing.exporting import Exported, export
from retrieval_eval.sharing.restoring import Source, restore, unpacked

ZEROS = "0" * 64


@pytest.fixture
def http() -> Http:
    return Http(clock=Clock(sleep=lambda _: None))


@pytest.fixture
def archive(lab: Any, tmp_path: Path) -> Path:
    """An export of the cache of 20 questions."""
    lab.prepare(lab.data(20), tmp_path / "published")
    export(tmp_path / "published", tmp_path / "cache.tar.zst", lab.quiet)
    return tmp_path / "cache.tar.zst"


@pytest.fixture
def repacked(archive: Path, tmp_path: Path) -> Iterator[Callable[[Callable[[Path], None]], Source]]:
    """Packs the exported cache anew after a change to its folder, as a stranger could."""

    def pack(change: Callable[[Path], None]) -> Source:
        folder = tmp_path / "work" / "retrieval-eval-cache"
        shutil.copytree(tmp_path / "published", folder)
        (folder / "provenance.json").write_text("{}")
        (folder / "LICENSE-LongMemEval").write_text("")
        change(folder)
        create(tmp_path / "work", folder.name, tmp_path / "strange.tar.zst", Caps())
        return Source.parse(str(tmp_path / "strange.tar.zst"), None)

    yield pack


def leftovers(tmp_path: Path) -> list[str]:
    return [item.name for item in tmp_path.iterdir() if item.name.startswith((".", "target"))]


def test_without_a_data_file_the_archive_becomes_the_cache(archive: Path, http: Http, lab: Any, tmp_path: Path) -> None:
    target = tmp_path / "target"
    assert restore(Source.parse(str(archive), None), target, lab.model().identity, http)
    with CacheReader(target) as cache:
        assert len(cache.pairs) == 20
        assert cache.manifest.embedded == 0
    assert lab.rows(target) == lab.rows(tmp_path / "published")
    assert leftovers(tmp_path) == ["target"]


def test_with_a_data_file_only_vectors_are_taken_over_and_the_rest_is_embedded(
    archive: Path, http: Http, lab: Any, tmp_path: Path
) -> None:
    model = lab.model()
    seed = partial(unpacked, Source.parse(str(archive), None), tmp_path / "target", model.identity, http)
    done = lab.prepare(lab.data(25), tmp_path / "target", seed=seed, model=model)
    assert 0 < done.embedded == len(model.load().embedded) < done.reused
    lab.prepare(lab.data(25), tmp_path / "whole")
    assert lab.rows(tmp_path / "target") == lab.rows(tmp_path / "whole")
    assert leftovers(tmp_path) == ["target"]


def test_shard_takes_over_its_own_vectors_only(archive: Path, http: Http, lab: Any, tmp_path: Path) -> None:
    source, model = Source.parse(str(archive), None), lab.model()
    seed = partial(unpacked, source, tmp_path / "target", model.identity, http)
    done = lab.prepare(lab.data(20), tmp_path / "target", "1/2", seed=seed, model=model)
    assert (done.embedded, model.load().embedded) == (0, [])
    assert 0 < done.reused < 100


def test_cache_that_lacks_nothing_does_not_ask_for_the_archive(lab: Any, tmp_path: Path) -> None:
    def seed() -> Any:
        raise AssertionError("not needed")

    lab.prepare(lab.data(), tmp_path / "cache")
    assert lab.prepare(lab.data(), tmp_path / "cache", seed=seed).embedded == 0


def test_finished_cache_that_fits_is_left_as_it_is(archive: Path, http: Http, lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(5), tmp_path / "target")
    assert not restore(Source.parse(str(archive), None), tmp_path / "target", lab.model().identity, http)
    with CacheReader(tmp_path / "target") as cache:
        assert len(cache.pairs) == 5


def test_folder_with_other_files_is_left_as_it_is(archive: Path, http: Http, lab: Any, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "mine.txt").write_text("mine")
    with pytest.raises(CacheError, match=r"target: cannot be put in place.*empty or not there"):
        restore(Source.parse(str(archive), None), tmp_path / "target", lab.model().identity, http)
    assert [item.name for item in (tmp_path / "target").iterdir()] == ["mine.txt"]


def test_archive_of_another_model_is_refused_with_both_named(
    archive: Path, http: Http, lab: Any, tmp_path: Path
) -> None:
    expected = r"cache.tar.zst: cannot be used: .*another model.*got content 'commit-a', expected content 'commit-b'"
    with pytest.raises(CacheError, match=expected):
        restore(Source.parse(str(archive), None), tmp_path / "target", lab.model("commit-b").identity, http)
    assert leftovers(tmp_path) == []


def test_other_digest_is_refused_with_both_named_and_the_file_stays(
    archive: Path, http: Http, lab: Any, tmp_path: Path
) -> None:
    with pytest.raises(CacheError, match=rf"has another digest: got sha256 [0-9a-f]{{64}}, expected {ZEROS}"):
        restore(Source.parse(str(archive), ZEROS), tmp_path / "target", lab.model().identity, http)
    assert archive.is_file()
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.999])
def test_cut_archive_is_refused(keep: float, archive: Path, http: Http, lab: Any, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(CacheError, match=r"cache.tar.zst: cannot be unpacked"):
        restore(Source.parse(str(archive), None), tmp_path / "target", lab.model().identity, http)
    assert leftovers(tmp_path) == []


def test_archive_that_is_not_there_is_named(http: Http, lab: Any, tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"nothing.tar.zst: cannot be unpacked: got No such file"):
        source = Source.parse(str(tmp_path / "nothing.tar.zst"), None)
        restore(source, tmp_path / "target", lab.model().identity, http)


def _add_trigger(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "embeddings.sqlite")) as database, database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON vector BEGIN DELETE FROM pair; END")
    Manifest.read(folder).write(folder)


def _drop_vector(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "embeddings.sqlite")) as database, database:
        database.execute("DELETE FROM vector WHERE text = 3")
    Manifest.read(folder).write(folder)


def _change_card(folder: Path) -> None:
    facts = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(facts | {"fingerprint": ZEROS}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "model.pkl").write_bytes(b"x"),
            "holds other files than an exported cache.*model.pkl",
        ),
        (lambda folder: (folder / "manifest.json").unlink(), "holds other files than an exported cache.*manifest.json"),
        (lambda folder: (folder / "embeddings.sqlite").write_bytes(b"x" * 200), "is not an SQLite database"),
        (_add_trigger, "other tables than this version makes"),
        (_drop_vector, "is incomplete"),
        (_change_card, "do not belong together"),
    ],
    ids=["extra file", "no manifest", "no database", "trigger", "vector missing", "other fingerprint"],
)
def test_strangers_archive_is_refused(
    change: Callable[[Path], None], message: str, repacked: Callable[..., Source], http: Http, lab: Any, tmp_path: Path
) -> None:
    with pytest.raises(CacheError, match=message):
        restore(repacked(change), tmp_path / "target", lab.model().identity, http)
    assert leftovers(tmp_path) == []


def test_download_goes_on_where_it_was_cut(
    archive: Path, file_server: Any, http: Http, lab: Any, tmp_path: Path
) -> None:
    done = export(tmp_path / "published", archive, lab.quiet)
    file_server.content, file_server.cut_at = archive.read_bytes(), 1000
    source = Source.parse(file_server.url, done.sha256)
    assert restore(source, tmp_path / "target", lab.model().identity, http)
    assert file_server.starts == [0, 1000]
    assert leftovers(tmp_path) == ["target"]


def test_manifest_file_names_url_digest_and_size(
    archive: Path, file_server: Any, http: Http, lab: Any, tmp_path: Path
) -> None:
    done: Exported = export(tmp_path / "published", archive, lab.quiet)
    file_server.content = archive.read_bytes()
    facts = {"url": file_server.url, "sha256": done.sha256, "size_bytes": done.size_bytes}
    (tmp_path / "published.json").write_text(json.dumps(facts))
    source = Source.parse(str(tmp_path / "published.json"), None)
    assert restore(source, tmp_path / "target", lab.model().identity, http)


def test_download_larger_than_the_manifest_says_is_stopped(
    archive: Path, file_server: Any, http: Http, lab: Any, tmp_path: Path
) -> None:
    file_server.content = archive.read_bytes()
    source = Source("published cache", file_server.url, True, ZEROS, 100)
    with pytest.raises(CacheError, match=r"cannot be downloaded: got the file has \d+ bytes, at most 100"):
        restore(source, tmp_path / "target", lab.model().identity, http)


def test_download_with_another_digest_is_refused_and_not_kept(
    archive: Path, file_server: Any, http: Http, lab: Any, tmp_path: Path
) -> None:
    file_server.content = archive.read_bytes()
    with pytest.raises(CacheError, match=rf"127.0.0.1: cannot be downloaded: .* expected {ZEROS}"):
        restore(Source.parse(file_server.url, ZEROS), tmp_path / "target", lab.model().identity, http)
    assert leftovers(tmp_path) == []


def test_no_network_is_one_message_that_names_the_host_and_no_secret(http: Http, lab: Any, tmp_path: Path) -> None:
    source = Source.parse("http://127.0.0.1:1/cache.tar.zst?sig=secret", ZEROS)
    with pytest.raises(CacheError, match=r"published cache at 127.0.0.1: cannot be downloaded.*network") as caught:
        restore(source, tmp_path / "target", lab.model().identity, http)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sha256", "message"),
    [
        ("https://example.org/cache.tar.zst", None, "needs --from-sha256"),
        ("cache.tar.zst", "abc", "'abc' is not 64 hex digits"),
        ("published.json", ZEROS, "states its own digest"),
    ],
)
def test_digest_options_that_do_not_fit_are_refused(text: str, sha256: str | None, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        Source.parse(text, sha256)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 100_000,
        "{}",
        '{"url": "https://e.org/x", "sha256": "abc", "size_bytes": 1}',
        f'{{"url": "file:///etc/passwd", "sha256": "{ZEROS}", "size_bytes": 1}}',
        f'{{"url": "https://e.org/x", "sha256": "{ZEROS}", "size_bytes": "1"}}',
        f'{{"url": 7, "sha256": "{ZEROS}", "size_bytes": 1}}',
    ],
)
def test_file_that_is_no_manifest_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(CacheError, match=r"m.json: is not the manifest of a published cache"):
        Source.parse(str(tmp_path / "m.json"), None)


def test_command_line_restores_and_skips_the_second_time(archive: Path, lab: Any, tmp_path: Path) -> None:
    target = tmp_path / "target"
    code, _, err = lab.run("prep", "--cache", target, "--from", archive)
    assert (code, "restored from" in err) == (0, True)
    code, _, err = lab.run("prep", "--cache", target, "--from", archive)
    assert (code, "--from skipped" in err) == (0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "prep needs DATA"),
        (["--from", "x.tar.zst", "--shard", "1/2"], "prep needs DATA"),
        (["data.json", "--shard", "3/2"], "--shard: got '3/2', expected I/N"),
        (["data.json", "--from-sha256", ZEROS], "--from-sha256 needs --from"),
    ],
)
def test_command_line_refuses_what_does_not_go_together(
    options: list[str], message: str, lab: Any, tmp_path: Path
) -> None:
    code, _, err = lab.run("prep", "--cache", tmp_path / "target", *options)
    assert code == 2
    assert message in err
    assert not (tmp_path / "target").exists()
