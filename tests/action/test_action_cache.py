"""The embedding cache and the data file on their way through the Actions cache."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.cache.records import pack_json, unpack_json
from retrieval_eval.github.actions_cache import ActionsCache, Saved, ServiceEnv
from retrieval_eval.http import Http
from retrieval_eval.progress import Lines
from retrieval_eval.sharing.exporting import export


def figures(done: Any) -> tuple[int, int]:
    assert done.code == 0, done.log
    return done.report["cache"]["reused"], done.report["cache"]["embedded"]


def test_first_run_misses_and_saves_second_hits_and_embeds_nothing(runner, cache_service, make_dataset) -> None:
    first = runner.step()
    assert figures(first) == (0, 16)
    assert (first.outputs["cache-hit"], first.outputs["cache-matched-key"]) == ("false", "")
    runner.fresh_checkout()
    second = runner.step()
    assert figures(second) == (16, 0)
    assert second.outputs["cache-hit"] == "true"
    assert second.outputs["cache-matched-key"].startswith("retrieval-eval-")
    assert second.outputs["recall-at-1"] == first.outputs["recall-at-1"]
    assert len(cache_service.requests("CreateCacheEntry")) == 1
    assert second.annotations("warning") == first.annotations("warning") == []


def test_one_more_session_embeds_one_text_and_saves_again(runner, cache_service, make_dataset) -> None:
    runner.step()
    runner.fresh_checkout()
    runner.write(make_dataset(extra_sessions=1))
    grown = runner.step()
    assert figures(grown) == (16, 1)
    assert grown.outputs["cache-hit"] == "false"
    assert grown.outputs["cache-matched-key"]
    assert len(cache_service.requests("CreateCacheEntry")) == 2


def test_another_model_never_matches(runner, cache_service, other_model) -> None:
    runner.step()
    runner.fresh_checkout()
    other = runner.step({"model": str(other_model)})
    assert figures(other) == (0, 16)
    assert other.outputs["cache-matched-key"] == ""


@pytest.mark.parametrize(
    ("event", "choice", "saves"),
    [
        ("push", "auto", True),
        ("schedule", "auto", True),
        ("pull_request", "auto", False),
        ("pull_request", "true", True),
        ("pull_request_target", "auto", False),
        ("merge_group", "auto", False),
        ("push", "false", False),
    ],
)
def test_saving_is_decided_by_event_or_input(runner, cache_service, event, choice, saves) -> None:
    runner.event(event, {})
    done = runner.step({"save-cache": choice, "comment": "off"})
    assert figures(done) == (0, 16)
    assert bool(cache_service.requests("CreateCacheEntry")) is saves
    assert done.annotations("warning") == []


def test_cache_false_asks_the_service_nothing(runner, cache_service) -> None:
    assert figures(runner.step({"cache": "false"})) == (0, 16)
    assert cache_service.control("requests") == []


def test_a_read_only_token_restores_and_saves_nothing_without_a_warning(runner, cache_service) -> None:
    runner.step()
    runner.fresh_checkout()
    runner.variables |= cache_service.variables((("refs/heads/main", 1),))
    done = runner.step()
    assert figures(done) == (16, 0)
    assert done.annotations("warning") == []


@pytest.mark.parametrize(
    "fault",
    [
        {"op": "GetCacheEntryDownloadURL", "status": 403, "body": {"code": "permission_denied", "msg": "no"}},
        {"op": "GetCacheEntryDownloadURL", "status": 404, "html": True},
        {"op": "CreateCacheEntry", "status": 429, "headers": {"Retry-After": "60"}},
        {"op": "CreateCacheEntry", "status": 500, "times": 9},
        {"op": "PutBlob", "status": 403},
        {"op": "FinalizeCacheEntryUpload", "close": True, "times": 9},
    ],
    ids=lambda fault: f"{fault['op']}-{fault.get('status', 'closed')}",
)
def test_trouble_of_the_service_is_one_warning_and_a_line_of_the_report(runner, cache_service, fault) -> None:
    cache_service.control("faults", [fault])
    done = runner.step()
    assert figures(done) == (0, 16)
    (reason,) = done.outputs["degraded"].splitlines()
    assert done.report["warnings"] == [reason]
    assert len(done.annotations("warning")) == 1
    assert reason.split()[0] in done.summary


@pytest.mark.parametrize("fault", [{"after_bytes": 0, "times": 9}, {"corrupt": True}], ids=["cut", "corrupt"])
def test_a_broken_archive_is_a_warning_and_prep_starts_anew(runner, cache_service, fault) -> None:
    runner.step()
    runner.fresh_checkout()
    cache_service.control("faults", [{"op": "GetBlob", **fault}])
    done = runner.step()
    assert figures(done) == (0, 16)
    assert "the cache was not restored" in done.outputs["degraded"]


def test_a_service_that_repeats_our_token_puts_it_nowhere(runner, cache_service) -> None:
    token = runner.variables["ACTIONS_RUNTIME_TOKEN"]
    said = {"op": "GetCacheEntryDownloadURL", "status": 403, "body": {"code": "x", "msg": f"bad {token}"}, "times": 9}
    cache_service.control("faults", [said])
    done = runner.step()
    assert "bad ***" in done.outputs["degraded"]
    places = [done.log.replace(f"::add-mask::{token}", ""), done.summary, json.dumps(done.report)]
    assert not any(token in place for place in (*places, done.outputs["degraded"]))


def _spoil(runner: Any, name: str) -> None:
    """What a stranger could have saved under our key."""
    database, manifest = (runner.workspace / ".embcache" / file for file in ("embeddings.sqlite", "manifest.json"))
    if name == "cut":
        database.write_bytes(database.read_bytes()[:8192])
    elif name == "byte":
        content = bytearray(database.read_bytes())
        content[len(content) // 2] ^= 0xFF
        database.write_bytes(content)
    elif name == "foreign":
        database.write_bytes(b"SQLite format 3\0" + bytes(4080))
    elif name == "no-manifest":
        manifest.unlink()
    elif name == "manifest":
        manifest.write_text(json.dumps({"model": "another"}))
    elif name == "counts":
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "reused": "many", "embedded": {}}))
    elif name == "one-file":
        shutil.rmtree(database.parent)
        database.parent.write_text("a file in place of the folder")
    else:
        _lie_about_the_data(database, manifest)


def _lie_about_the_data(database: Path, manifest: Path) -> None:
    """A cache whose digest is right and whose facts are of other types than ours."""
    with closing(sqlite3.connect(database)) as connection:
        for (blob,) in connection.execute("SELECT value FROM meta WHERE key = 'dataset'").fetchall():
            facts = unpack_json(blob)
            lie = pack_json({**facts, "sessions": "<b>many</b>", "categories": ["x"], "haystack": None})
            connection.execute("UPDATE meta SET value = ? WHERE key = 'dataset'", (lie,))
        connection.commit()
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "database_sha256": digest}))


@pytest.mark.parametrize(
    "name", ["cut", "byte", "foreign", "no-manifest", "manifest", "counts", "one-file", "lying-facts"]
)
def test_a_restored_cache_that_is_not_ours_is_put_aside(runner, cache_service, name) -> None:
    runner.step({"save-cache": "false"})
    report = runner.step({"save-cache": "false"}).report
    _spoil(runner, name)
    _save_as_it_is(runner, cache_service)
    if name != "one-file":
        runner.fresh_checkout()
    done = runner.step()
    assert figures(done) == (0, 16)
    assert done.outputs["cache-hit"] == "false"
    assert done.outputs["degraded"].startswith("the restored cache was not used: ")
    assert done.report["lanes"] == report["lanes"]
    runner.fresh_checkout()
    assert figures(runner.step()) == (16, 0)


def _save_as_it_is(runner: Any, cache_service: Any) -> None:
    """Save what is in the workspace under the key that the action will look for."""
    asked = json.loads(cache_service.requests("GetCacheEntryDownloadURL")[-1]["body"])
    looked_for = asked["restore_keys"][0]
    service = ServiceEnv.from_env(runner.variables)
    cache = ActionsCache(service, Http(), runner.workspace, runner.folder, lambda secret: None)
    assert isinstance(cache.save(".embcache", f"{looked_for}1.1-"), Saved)


def test_a_published_file_is_fetched_once_and_then_carried(runner, cache_service, hub, make_dataset) -> None:
    body = json.dumps(make_dataset()).encode()
    digest = hashlib.sha256(body).hexdigest()
    path = "/datasets/xiaowu0162/longmemeval-cleaned/resolve/a-revision/longmemeval_tiny.json"
    hub.files[path] = body
    inputs = {"dataset": "longmemeval_tiny.json", "dataset-revision": "a-revision", "dataset-sha256": digest}
    first = runner.step(inputs, HF_ENDPOINT=hub.url)
    assert figures(first) == (0, 16)
    assert first.report["card"]["dataset"] == "longmemeval_tiny.json"
    assert first.report["card"]["dataset_sha256"] == digest

    runner.fresh_checkout()
    assert figures(runner.step(inputs, HF_ENDPOINT=hub.url)) == (16, 0)
    assert hub.asked == [path], "neither file nor prep is needed where the cache fits"

    runner.fresh_checkout()
    other_model_folder = runner.step({**inputs, "cache-path": ".other"}, HF_ENDPOINT=hub.url)
    assert figures(other_model_folder) == (0, 16)
    assert hub.asked == [path], "the data file came from the Actions cache"


def test_without_any_service_there_is_one_warning(runner) -> None:
    done = runner.step()
    assert figures(done) == (0, 16)
    (warning,) = done.annotations("warning")
    assert "no Actions cache here" in warning


def test_v1_is_spoken_where_the_server_is_not_github_com(runner, cache_service) -> None:
    runner.variables |= {"GITHUB_SERVER_URL": "https://git.acme.example", "ACTIONS_CACHE_URL": cache_service.url}
    runner.step()
    runner.fresh_checkout()
    done = runner.step()
    assert figures(done) == (16, 0)
    assert cache_service.requests("v1.commit")


def test_published_cache_gives_its_vectors_and_a_wrong_digest_is_an_error(runner, tmp_path: Path) -> None:
    first = runner.step({"cache": "false"})
    archive = tmp_path / "published.tar.zst"
    packed = export(runner.workspace / ".embcache", archive, Lines(io.StringIO(), lambda: 0.0))
    runner.fresh_checkout()
    taken = runner.step({"cache": "false", "cache-from": str(archive), "cache-from-sha256": packed.sha256})
    assert figures(taken) == (16, 0)
    assert taken.outputs["recall-at-1"] == first.outputs["recall-at-1"]
    runner.fresh_checkout()
    wrong = runner.step({"cache": "false", "cache-from": str(archive), "cache-from-sha256": "0" * 64})
    assert wrong.code == 2
    assert "published.tar.zst" in "".join(wrong.annotations("error"))
