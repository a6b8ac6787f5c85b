from __future__ import annotations

import hashlib
import os
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.download import download
from retrieval_eval.http import TransferError

DATA = os.urandom(100_000)
SHA = hashlib.sha256(DATA).hexdigest()
OLD = os.urandom(100_000)


def serve(
    data: bytes = DATA,
    *,
    cut: int | None = None,
    etag: str | None = '"1"',
    ranges: bool = True,
    if_range: bool = True,
    length: int | None = None,
    says: int | None = None,
) -> Any:
    """Serve `data`: cut after `cut` bytes; without heeding Range or If-Range; lying about the length or the size."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        same = not if_range or request.headers.get("If-Range") in (None, etag)
        start = int(asked[1]) if asked and ranges and same else 0
        if start >= len(data):
            request.send_response(416)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{says or len(data)}")
        if etag is not None:
            request.send_header("ETag", etag)
        request.send_header("Content-Length", str(length or len(data) - start))
        request.end_headers()
        request.wfile.write(data[start:][:cut])
        request.close_connection = True

    return answer


def status(code: int, **headers: str) -> Any:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in {"Content-Length": "0", **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()

    return answer


def get(server: Any, target: Path, *answers: Any, sha256: str | None = SHA, max_bytes: int = 10**6) -> None:
    server.answers = list(answers)
    server.seen.clear()
    download(server.http(), server.url, target, sha256=sha256, max_bytes=max_bytes, deadline_s=60)


def failure(server: Any, target: Path, *answers: Any, **options: Any) -> TransferError:
    with pytest.raises(TransferError) as caught:
        get(server, target, *answers, **options)
    return caught.value


def ranges(server: Any) -> list[str | None]:
    return [seen.get("range") for seen in server.seen]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "data.json"


def names(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_whole_file(server: Any, target: Path) -> None:
    get(server, target, serve())
    assert target.read_bytes() == DATA
    assert names(target) == ["data.json"]
    assert server.seen[0]["accept-encoding"] == "identity"


def test_cut_is_continued(server: Any, target: Path) -> None:
    get(server, target, serve(cut=30_000), serve(cut=30_000), serve())
    assert target.read_bytes() == DATA
    assert ranges(server) == [None, "bytes=30000-", "bytes=60000-"]
    assert server.seen[1]["if-range"] == '"1"'


def test_next_call_continues_what_the_last_left(server: Any, target: Path) -> None:
    failure(server, target, serve(cut=40_000), status(503))
    assert names(target) == ["data.json.partial", "data.json.partial.json"]
    get(server, target, serve())
    assert ranges(server) == ["bytes=40000-"]
    assert target.read_bytes() == DATA
    assert names(target) == ["data.json"]


def test_range_that_is_ignored_begins_anew(server: Any, target: Path) -> None:
    get(server, target, serve(cut=30_000), serve(ranges=False))
    assert target.read_bytes() == DATA


def test_other_etag_begins_anew(server: Any, target: Path) -> None:
    get(server, target, serve(OLD, cut=30_000, etag='"0"'), serve())
    assert target.read_bytes() == DATA


def test_other_etag_where_if_range_is_ignored_begins_anew(server: Any, target: Path) -> None:
    get(server, target, serve(OLD, cut=30_000, etag='"0"'), serve(if_range=False), sha256=None)
    assert target.read_bytes() == DATA
    assert ranges(server) == [None, "bytes=30000-", None]


@pytest.mark.parametrize("etag", [None, 'W/"1"'])
def test_without_a_strong_etag_nothing_is_continued(server: Any, target: Path, etag: str | None) -> None:
    get(server, target, serve(cut=30_000, etag=etag), serve())
    assert ranges(server) == [None, None]
    assert target.read_bytes() == DATA


def test_partial_of_another_address_is_not_continued(server: Any, target: Path) -> None:
    failure(server, target, serve(cut=40_000), status(404))
    server.url += "other"
    get(server, target, serve())
    assert ranges(server) == [None]


def test_partial_without_its_note_is_not_continued(server: Any, target: Path) -> None:
    target.parent.mkdir()
    (target.parent / "data.json.partial").write_bytes(b"whatever")
    for note in ("", "[]", '{"x": 1}'):
        (target.parent / "data.json.partial.json").write_text(note)
        get(server, target, serve())
        assert ranges(server) == [None]
        assert target.read_bytes() == DATA


def test_complete_partial_is_not_fetched_again(server: Any, target: Path) -> None:
    failure(server, target, serve(cut=99_999), status(404))
    with (target.parent / "data.json.partial").open("ab") as partial:
        partial.write(DATA[99_999:])
    get(server, target, status(500))
    assert server.seen == []
    assert target.read_bytes() == DATA


def test_file_that_became_shorter_begins_anew(server: Any, target: Path) -> None:
    get(server, target, serve(OLD, cut=30_000), serve(b"short"), sha256=None)
    assert target.read_bytes() == b"short"
    assert ranges(server) == [None, "bytes=30000-", None]


def test_wrong_digest_leaves_nothing(server: Any, target: Path) -> None:
    error = failure(server, target, serve(OLD))
    assert error.is_final
    assert "sha256" in error.reason
    assert SHA in error.reason
    assert names(target) == []


def test_wrong_digest_keeps_the_file_that_was_there(server: Any, target: Path) -> None:
    get(server, target, serve())
    failure(server, target, serve(OLD))
    assert target.read_bytes() == DATA


def test_announced_length_is_larger_than_the_body(server: Any, target: Path) -> None:
    error = failure(server, target, serve(length=200_000), sha256=None)
    assert not target.exists()
    assert error.reason


def test_announced_length_is_smaller_than_the_body(server: Any, target: Path) -> None:
    assert "sha256" in failure(server, target, serve(length=50_000)).reason


def test_range_answer_that_names_another_size_begins_anew(server: Any, target: Path) -> None:
    get(server, target, serve(cut=30_000), serve(says=110_000), sha256=None)
    assert ranges(server) == [None, "bytes=30000-", None]
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410])
def test_refusal_is_final_and_tells_its_status(server: Any, target: Path, code: int) -> None:
    error = failure(server, target, status(code))
    assert (error.status, error.is_final, len(server.seen)) == (code, True, 1)


def test_server_trouble_is_got_over(server: Any, target: Path) -> None:
    get(server, target, status(503), status(429, Retry_After="5"), serve())
    assert target.read_bytes() == DATA
    assert server.waits == [1.0, 5.0]


def test_server_trouble_that_stays(server: Any, target: Path) -> None:
    error = failure(server, target, status(503))
    assert (error.status, len(server.seen)) == (503, 3)


def test_progress_allows_more_tries(server: Any, target: Path) -> None:
    get(server, target, *[serve(cut=15_000)] * 7)
    assert target.read_bytes() == DATA


def without_length(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("ETag", '"1"')
    request.end_headers()
    request.wfile.write(DATA)
    request.close_connection = True


def test_file_that_announces_more_than_the_cap_is_not_begun(server: Any, target: Path) -> None:
    assert failure(server, target, serve(), max_bytes=40_000).is_final
    assert names(target) == []


def test_file_that_turns_out_larger_than_the_cap_is_left_there(server: Any, target: Path) -> None:
    assert failure(server, target, without_length, max_bytes=40_000).is_final
    assert (target.parent / "data.json.partial").stat().st_size <= 40_000


def test_file_without_an_announced_length(server: Any, target: Path) -> None:
    get(server, target, without_length)
    assert target.read_bytes() == DATA


def test_encoding_that_was_not_asked_for(server: Any, target: Path) -> None:
    assert failure(server, target, status(200, Content_Encoding="gzip")).is_final


def test_place_that_cannot_be_written(server: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot write" in failure(server, tmp_path / "file" / "data.json", serve()).reason
