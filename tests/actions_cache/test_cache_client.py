from __future__ import annotations

import io
import os
import tarfile
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from retrieval_eval import archive as archives
from retrieval_eval.compression import compress
from retrieval_eval.github.actions_cache import AlreadyThere, Limits, Miss, NotSaved, Restored, Saved
from retrieval_eval.http import Clock, Http

PATH = ".embcache"
READ_ONLY = (("refs/heads/main", 1),)
GHES = {"GITHUB_SERVER_URL": "https://ghes.example"}
BOTH = pytest.mark.parametrize("service", [{}, GHES], ids=["v2", "v1"])


@BOTH
def test_saved_entry_comes_back(bench: Any, service: dict[str, str]) -> None:
    content = bench.fill()
    saved = bench.client(**service).save(PATH, "k-1-")
    assert isinstance(saved, Saved)
    bench.empty()
    restored = bench.client(**service).restore(PATH, "k-1-")
    assert isinstance(restored, Restored)
    assert (restored.matched_key, restored.exact, restored.size_bytes) == ("k-1-", True, saved.size_bytes)
    assert bench.content() == content
    assert bench.leftovers() == []


@BOTH
def test_nothing_there_is_a_plain_miss(bench: Any, service: dict[str, str]) -> None:
    result = bench.client(**service).restore(PATH, "k-1-", ["k-"])
    assert isinstance(result, Miss)
    assert not result.is_degraded


@BOTH
def test_newest_entry_of_a_restore_key(bench: Any, service: dict[str, str]) -> None:
    for number in ("1", "2"):
        bench.fill({"n": number.encode()})
        bench.client(**service).save(PATH, f"k-{number}-")
    restored = bench.client(**service).restore(PATH, "k-3-", ["k-"])
    assert isinstance(restored, Restored)
    assert (restored.matched_key, restored.exact) == ("k-2-", False)
    assert bench.content() == {"n": b"2"}


def test_prefix_match_of_the_key_itself_is_not_exact(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-10")
    restored = bench.client().restore(PATH, "k-1")
    assert isinstance(restored, Restored)
    assert (restored.matched_key, restored.exact) == ("k-10", False)


@BOTH
def test_second_save_finds_it_already_there(bench: Any, service: dict[str, str]) -> None:
    bench.fill()
    bench.client(**service).save(PATH, "k-1-")
    assert isinstance(bench.client(**service).save(PATH, "k-1-"), AlreadyThere)


def test_key_that_a_failed_try_of_ours_took_is_not_called_already_there(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    bench.standin.faults({"op": "CreateCacheEntry", "status": 503})
    result = bench.client().save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert "first try" in result.reason


def test_other_path_has_other_entries(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    assert isinstance(bench.client().restore(".embcache/", "k-1-"), Miss)


def test_pull_request_reads_the_base_branch_and_no_sibling(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    pull = (("refs/pull/7/merge", 3), ("refs/heads/main", 1))
    assert isinstance(bench.client(pull).restore(PATH, "k-1-"), Restored)
    assert isinstance(bench.client((("refs/heads/dev", 3),)).restore(PATH, "k-1-"), Miss)


def test_blocks_above_the_size_of_a_single_put(bench: Any) -> None:
    content = bench.fill({"big": os.urandom(250_000)})
    limits = Limits(single_put_bytes=100_000, block_bytes=100_000)
    assert isinstance(bench.client(limits=limits).save(PATH, "k-1-"), Saved)
    blocks = bench.standin.requests("PutBlock")
    assert [seen["len"] for seen in blocks[:2]] == [100_000, 100_000]
    ids = {parse_qs(urlsplit(seen["path"]).query)["blockid"][0] for seen in blocks}
    assert {len(name) for name in ids} == {64}
    assert len(ids) == 3
    bench.empty()
    assert isinstance(bench.client().restore(PATH, "k-1-"), Restored)
    assert bench.content() == content


def test_archive_over_128_mib_goes_up_in_blocks_by_itself(bench: Any) -> None:
    content = bench.fill({"big": os.urandom(140_000_000)})
    assert isinstance(bench.client().save(PATH, "k-1-"), Saved)
    assert [seen["len"] for seen in bench.standin.requests("PutBlock")][:2] == [64 * 1024 * 1024] * 2
    bench.empty()
    assert isinstance(bench.client().restore(PATH, "k-1-"), Restored)
    assert bench.content() == content


def test_v1_sends_chunks(bench: Any) -> None:
    content = bench.fill({"big": os.urandom(250_000)})
    assert isinstance(bench.client(limits=Limits(v1_chunk_bytes=100_000), **GHES).save(PATH, "k-1-"), Saved)
    assert len(bench.standin.requests("v1.patch")) == 3
    bench.empty()
    assert isinstance(bench.client(**GHES).restore(PATH, "k-1-"), Restored)
    assert bench.content() == content


TROUBLE_BOTH = [{"status": 500}, {"status": 503, "html": True}, {"status": 401}, {"status": 403}, {"status": 422}]
TROUBLE_BOTH += [{"close": True}, {"status": 404, "html": True}, {"status": 302, "headers": {"Location": "/x"}}]


@pytest.mark.parametrize("fault", TROUBLE_BOTH, ids=str)
@pytest.mark.parametrize("op", ["GetCacheEntryDownloadURL", "GetBlob", "v1.find"])
def test_trouble_while_restoring_is_a_miss_that_touches_nothing(bench: Any, op: str, fault: dict[str, object]) -> None:
    service = GHES if op.startswith("v1") else {}
    bench.fill()
    bench.client(**service).save(PATH, "k-1-")
    bench.empty()
    before = bench.fill({"mine": b"here"})
    bench.standin.faults({"op": op, "times": 9, **fault})
    result = bench.client(**service).restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert result.is_degraded
    assert is_one_sentence(result.reason)
    assert bench.content() == before
    assert bench.leftovers() == []


OPS = ["CreateCacheEntry", "PutBlob", "PutBlock", "PutBlockList", "FinalizeCacheEntryUpload"]


@pytest.mark.parametrize("fault", [*TROUBLE_BOTH, {"status": 429, "headers": {"Retry-After": "7"}}], ids=str)
@pytest.mark.parametrize("op", [*OPS, "v1.reserve", "v1.patch", "v1.commit"])
def test_trouble_while_saving_is_a_value(bench: Any, op: str, fault: dict[str, object]) -> None:
    service = GHES if op.startswith("v1") else {}
    limits = Limits(single_put_bytes=10_000, block_bytes=40_000) if op.startswith("PutBlock") else None
    bench.fill()
    bench.standin.faults({"op": op, "times": 9, **fault})
    result = bench.client(limits=limits, **service).save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert result.is_degraded
    assert is_one_sentence(result.reason)
    assert bench.leftovers() == []
    bench.standin.faults()
    assert isinstance(bench.client(**service).restore(PATH, "k-1-"), Miss)


def is_one_sentence(reason: str) -> bool:
    return reason.isprintable() and 10 < len(reason) < 300 and "sig=" not in reason and "Bearer" not in reason


@pytest.mark.parametrize("op", ["GetCacheEntryDownloadURL", "GetBlob", *OPS])
@pytest.mark.parametrize("fault", [{"status": 503}, {"close": True}], ids=str)
def test_one_hiccup_is_got_over(bench: Any, op: str, fault: dict[str, object]) -> None:
    content = bench.fill()
    limits = Limits(single_put_bytes=10_000, block_bytes=40_000) if op.startswith("PutBlock") else None
    bench.standin.faults({"op": op, **fault})
    assert isinstance(bench.client(limits=limits).save(PATH, "k-1-"), Saved)
    bench.empty()
    assert isinstance(bench.client().restore(PATH, "k-1-"), Restored)
    assert bench.content() == content
    assert bench.waits == [1.0]


@pytest.mark.parametrize("op", ["v1.find", "v1.reserve", "v1.patch", "v1.commit"])
def test_one_hiccup_of_v1_is_got_over(bench: Any, op: str) -> None:
    bench.fill()
    bench.standin.faults({"op": op, "status": 502})
    assert isinstance(bench.client(**GHES).save(PATH, "k-1-"), Saved)
    assert isinstance(bench.client(**GHES).restore(PATH, "k-1-"), Restored)


def test_rate_limit_is_not_asked_again(bench: Any) -> None:
    bench.fill()
    bench.standin.faults({"op": "CreateCacheEntry", "status": 429, "headers": {"Retry-After": "7"}, "times": 9})
    result = bench.client().save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert "retry after 7" in result.reason
    assert len(bench.standin.requests("CreateCacheEntry")) == 1


@BOTH
def test_write_denied_by_the_service(bench: Any, service: dict[str, str]) -> None:
    bench.fill()
    bench.standin.control("config", {"write_denied": "cache write denied: token has no writable scopes"})
    result = bench.client(**service).save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert "cache write denied" in result.reason


def test_read_only_token_is_not_even_tried(bench: Any) -> None:
    bench.fill()
    result = bench.client(READ_ONLY).save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert not result.is_degraded
    assert bench.standin.requests() == []


@BOTH
def test_read_denied(bench: Any, service: dict[str, str]) -> None:
    bench.standin.control("config", {"read_denied": "cache read denied: no readable scopes"})
    result = bench.client(**service).restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert "cache read denied" in result.reason


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"insufficient": True}, "insufficient usage"),
        ({"finalize_message": "not now"}, "not now"),
        ({"write_denied": "a\n::error::b\x1b[31m" + "c" * 900}, "a ::error::b [31mccc"),
    ],
)
def test_messages_of_the_service_are_passed_on_in_one_line(bench: Any, config: dict[str, object], told: str) -> None:
    bench.fill()
    bench.standin.control("config", config)
    result = bench.client().save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert told in result.reason
    assert is_one_sentence(result.reason)


def test_cut_download_is_continued_where_it_was_cut(bench: Any) -> None:
    content = bench.fill()
    bench.client().save(PATH, "k-1-")
    bench.empty()
    bench.standin.faults({"op": "GetBlob", "after_bytes": 20_000, "times": 2})
    assert isinstance(bench.client().restore(PATH, "k-1-"), Restored)
    assert bench.content() == content
    ranges = [seen["headers"].get("Range") for seen in bench.standin.requests("GetBlob")]
    assert ranges[0] is None
    assert ranges[1:] == ["bytes=20000-", "bytes=40000-"]


def test_download_cut_again_and_again_is_a_miss(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    bench.empty()
    bench.standin.faults({"op": "GetBlob", "after_bytes": 0, "times": 9})
    result = bench.client().restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert not (bench.workspace / PATH).exists()


def test_corrupted_download_is_a_miss(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    before = bench.fill({"mine": b"here"}) | bench.content()
    bench.standin.faults({"op": "GetBlob", "corrupt": True, "times": 9})
    result = bench.client().restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert result.is_degraded
    assert bench.content() == before
    assert bench.leftovers() == []


def test_hostile_archive_from_the_service_is_a_miss(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(".embcache/../../planted"))
    monkeypatch.setattr(archives, "create", lambda *args: args[2].write_bytes(compress(raw.getvalue())))
    assert isinstance(bench.client().save(PATH, "k-1-"), Saved)
    result = bench.client().restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert "not under" in result.reason


def test_larger_archive_than_allowed(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    tight = Limits(max_archive_bytes=1000)
    assert isinstance(bench.client(limits=tight).restore(PATH, "k-1-"), Miss)
    assert isinstance(bench.client(limits=tight).save(PATH, "k-2-"), NotSaved)


def test_slow_service_is_given_up_on(bench: Any) -> None:
    bench.standin.faults({"op": "GetCacheEntryDownloadURL", "delay": 3, "times": 9})
    client = bench.client(http=Http(read_timeout_s=0.2), limits=Limits(lookup_s=0.5))
    result = client.restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert "in time" in result.reason
    assert len(bench.standin.requests("GetCacheEntryDownloadURL")) == 1  # the wait before the second is over the budget


def test_service_that_is_not_there(bench: Any) -> None:
    client = bench.client(ACTIONS_RESULTS_URL="http://127.0.0.1:9/")
    bench.fill()
    assert isinstance(client.restore(PATH, "k-1-"), Miss)
    assert isinstance(client.save(PATH, "k-1-"), NotSaved)


def test_v1_is_used_where_v2_is_answered_by_something_else(bench: Any) -> None:
    bench.fill()
    fault = {"op": "CreateCacheEntry", "status": 404, "html": True, "times": 9}
    bench.standin.faults(fault)
    client = bench.client(ACTIONS_CACHE_URL=bench.standin.url)
    assert isinstance(client.save(PATH, "k-1-"), Saved)
    assert isinstance(client.restore(PATH, "k-1-"), Restored)
    assert len(bench.standin.requests("CreateCacheEntry")) == 1
    assert bench.standin.requests("GetCacheEntryDownloadURL") == []


def test_404_of_a_real_v2_service_does_not_lead_to_v1(bench: Any) -> None:
    bench.standin.faults({"op": "GetCacheEntryDownloadURL", "status": 404})
    result = bench.client(ACTIONS_CACHE_URL=bench.standin.url).restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert bench.standin.requests("v1.find") == []


@BOTH
def test_token_is_never_sent_to_storage(bench: Any, service: dict[str, str]) -> None:
    bench.fill()
    bench.client(**service).save(PATH, "k-1-")
    bench.client(**service).restore(PATH, "k-1-")
    seen = {one["op"]: "Authorization" in one["headers"] for one in bench.standin.requests()}
    storage = {"PutBlob", "GetBlob", "v1.get"}
    assert seen == {op: op not in storage for op in seen}
    assert storage & seen.keys()


def test_signatures_are_masked_in_every_spelling_before_use(bench: Any) -> None:
    bench.fill()
    bench.client().save(PATH, "k-1-")
    bench.client().restore(PATH, "k-1-")
    for seen in [*bench.standin.requests("PutBlob"), *bench.standin.requests("GetBlob")]:
        encoded = dict(pair.split("=", 1) for pair in urlsplit(seen["path"]).query.split("&"))["sig"]
        assert encoded in bench.masked
        assert parse_qs(f"sig={encoded}")["sig"][0] in bench.masked


@pytest.mark.parametrize(("path", "key"), [("/abs", "k"), ("../up", "k"), (PATH, "a,b"), (PATH, "k" * 513)])
def test_names_that_the_service_would_refuse_ask_nothing(bench: Any, path: str, key: str) -> None:
    bench.fill()
    assert isinstance(bench.client().restore(path, key), Miss)
    assert isinstance(bench.client().save(path, key), NotSaved)
    assert bench.standin.requests() == []


def test_nothing_to_save(bench: Any) -> None:
    result = bench.client().save(PATH, "k-1-")
    assert isinstance(result, NotSaved)
    assert "nothing at" in result.reason


@pytest.mark.parametrize("mode", ["read", "write-only", "none"])
def test_cache_mode_is_kept_to_without_asking(bench: Any, mode: str) -> None:
    bench.fill()
    client = bench.client(ACTIONS_CACHE_MODE=mode)
    restored, saved = client.restore(PATH, "k-1-"), client.save(PATH, "k-1-")
    assert isinstance(saved, Saved) == (mode == "write-only")
    asked = {one["op"] for one in bench.standin.requests()}
    assert ("GetCacheEntryDownloadURL" in asked) == (mode == "read")
    assert isinstance(restored, Miss)
    assert not restored.is_degraded


def test_without_a_service_the_reason_is_told(bench: Any) -> None:
    client = bench.client(override="off")
    result = client.restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert result.is_degraded
    assert result.reason.startswith("no Actions cache here")


def test_deadline_counts_over_all_retries(bench: Any) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    bench.standin.faults({"op": "GetCacheEntryDownloadURL", "status": 503, "times": 99})
    client = bench.client(http=Http(clock=Clock(lambda: now[0], sleep), tries=99), limits=Limits(lookup_s=10))
    assert isinstance(client.restore(PATH, "k-1-"), Miss)
    assert now[0] <= 10
    assert len(bench.standin.requests("GetCacheEntryDownloadURL")) == 4  # after 0, 1, 3 and 7 s


@pytest.mark.parametrize("address", ["ftp://storage.example", "http://[", ""])
def test_address_that_cannot_be_used_is_a_value(bench: Any, address: str) -> None:
    bench.fill()
    bench.standin.faults(
        {"op": "CreateCacheEntry", "status": 200, "body": {"ok": True, "signed_upload_url": address}},
        {"op": "GetCacheEntryDownloadURL", "status": 200, "body": {"ok": True, "signedDownloadUrl": address}},
    )
    assert "no usable address" in bench.client().save(PATH, "k-1-").reason
    assert "no usable address" in bench.client().restore(PATH, "k-1-").reason


def test_key_that_was_not_asked_for_is_not_taken(bench: Any) -> None:
    found = {"ok": True, "signed_download_url": bench.standin.url, "matched_key": "other-1-"}
    bench.standin.faults({"op": "GetCacheEntryDownloadURL", "status": 200, "body": found})
    result = bench.client().restore(PATH, "k-1-", ["k-"])
    assert isinstance(result, Miss)
    assert "not asked for" in result.reason
    assert bench.standin.requests("GetBlob") == []


@pytest.mark.parametrize("body", [[], "text", None, 7, {"ok": True}, {"ok": "yes", "matchedKey": 3}])
def test_answer_of_another_shape_is_a_value(bench: Any, body: object) -> None:
    bench.fill()
    for op in ("GetCacheEntryDownloadURL", "CreateCacheEntry", "v1.find", "v1.reserve"):
        service = GHES if op.startswith("v1") else {}
        bench.standin.faults({"op": op, "status": 200, "body": body, "times": 2})
        if op in {"GetCacheEntryDownloadURL", "v1.find"}:
            result = bench.client(**service).restore(PATH, "k-1-")
            assert isinstance(result, Miss)
        else:
            result = bench.client(**service).save(PATH, "k-1-")
            assert isinstance(result, NotSaved)
        assert is_one_sentence(result.reason)


def test_answer_that_is_no_json_is_a_value(bench: Any) -> None:
    bench.standin.faults({"op": "GetCacheEntryDownloadURL", "status": 200, "html": True})
    result = bench.client().restore(PATH, "k-1-")
    assert isinstance(result, Miss)
    assert "something else than JSON" in result.reason


def test_no_room_for_archives_is_a_value(bench: Any) -> None:
    bench.fill()
    assert isinstance(bench.client().save(PATH, "k-1-"), Saved)
    (bench.folder / "scratch").rmdir()
    for result in (bench.client().save(PATH, "k-2-"), bench.client().restore(PATH, "k-1-")):
        assert isinstance(result, NotSaved | Miss)
        assert "No such file or directory" in result.reason
        assert result.is_degraded
