"""The published data files: which names mean one, and how one is fetched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from retrieval_eval.dataset.download import REVISION, SHA256, PublishedFile, fetch, published_file
from retrieval_eval.errors import DatasetError
from retrieval_eval.http import Clock, Http

DIGEST = "a" * 64
PLACE = "/datasets/xiaowu0162/longmemeval-cleaned/resolve"


@pytest.mark.parametrize("name", SHA256)
def test_a_known_name_has_a_digest_at_the_pinned_revision_only(name: str) -> None:
    assert published_file(name, REVISION, None) == PublishedFile(name, REVISION, SHA256[name])
    assert published_file(name, "main", None) == PublishedFile(name, "main", None)
    assert published_file(name, REVISION, DIGEST.upper()) == PublishedFile(name, REVISION, DIGEST)


@pytest.mark.parametrize("name", ["longmemeval_xs.json", "data/longmemeval_s_cleaned.json", "sample", "../x.json", ""])
def test_any_other_name_is_a_path(name: str) -> None:
    assert published_file(name, REVISION, None) is None


@pytest.mark.parametrize("name", ["longmemeval_xs.json", "custom.json.gz"])
def test_a_name_with_a_digest_is_a_published_file(name: str) -> None:
    assert published_file(name, REVISION, DIGEST) == PublishedFile(name, REVISION, DIGEST)


@pytest.mark.parametrize("name", ["a/b.json", "../b.json", ".hidden.json", "a b.json", "a.txt"])
def test_a_path_stays_a_path_with_a_digest_too(name: str) -> None:
    assert published_file(name, REVISION, DIGEST) is None


@pytest.fixture
def http() -> Http:
    return Http(clock=Clock(sleep=lambda seconds: None))


def test_a_broken_download_goes_on_where_it_stopped(hub, http, tmp_path: Path, forty_questions) -> None:
    body = json.dumps(forty_questions).encode()
    hub.files[f"{PLACE}/main/longmemeval_tiny.json"], hub.cuts = body, 2
    file = PublishedFile("longmemeval_tiny.json", "main", hashlib.sha256(body).hexdigest())
    assert fetch(file, tmp_path, http, hub.url).read_bytes() == body
    assert len(hub.ranges) == 2


def test_a_file_of_another_digest_is_refused_and_not_kept(hub, http, tmp_path: Path) -> None:
    hub.files[f"{PLACE}/main/longmemeval_s_cleaned.json"] = b"[]"
    with pytest.raises(DatasetError, match=r"longmemeval_s_cleaned\.json of .*sha256 .*expected aaaa"):
        fetch(PublishedFile("longmemeval_s_cleaned.json", "main", DIGEST), tmp_path, http, hub.url)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_and_a_dead_hub_say_what_to_do(hub, http, tmp_path: Path) -> None:
    gone = PublishedFile("longmemeval_gone.json", "main", DIGEST)
    for endpoint in (hub.url, "http://127.0.0.1:9"):
        with pytest.raises(DatasetError, match=r"could not be downloaded: .*hint: run the job again"):
            fetch(gone, tmp_path, http, endpoint)


def test_an_unverified_file_is_used_with_a_warning(runner, hub, make_dataset) -> None:
    hub.files[f"{PLACE}/main/longmemeval_s_cleaned.json"] = json.dumps(make_dataset()).encode()
    inputs = {"dataset": "longmemeval_s_cleaned.json", "dataset-revision": "main", "cache": "false"}
    done = runner.step(inputs, HF_ENDPOINT=hub.url)
    assert done.code == 0, done.log
    assert "was not verified" in done.outputs["degraded"]
    assert done.report["warnings"] == done.outputs["degraded"].splitlines()


def test_a_file_of_the_workspace_goes_before_a_published_one(runner, hub, make_dataset) -> None:
    runner.write(make_dataset(), "longmemeval_s_cleaned.json")
    done = runner.step({"dataset": "longmemeval_s_cleaned.json", "cache": "false"}, HF_ENDPOINT=hub.url)
    assert done.code == 0, done.log
    assert hub.asked == []


def test_the_sample_is_bundled(runner) -> None:
    done = runner.step({"dataset": "sample", "cache": "false"})
    assert done.code == 0, done.log
    assert done.report["dataset"]["file"] == "longmemeval_sample.json"
    assert int(done.outputs["n"]) >= 24


def test_a_wrong_digest_ends_the_run_with_exit_code_2(runner, hub) -> None:
    hub.files[f"{PLACE}/main/longmemeval_s_cleaned.json"] = b"<html>"
    inputs = {"dataset": "longmemeval_s_cleaned.json", "dataset-revision": "main", "dataset-sha256": DIGEST}
    done = runner.step(inputs, HF_ENDPOINT=hub.url)
    assert done.code == 2
    assert "could not be downloaded" in done.annotations("error")[0]
