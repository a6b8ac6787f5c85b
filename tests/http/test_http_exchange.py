from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.http import Clock, FileSlice, Http, Request, TransferError, host_of


def answer(status: int, body: bytes = b"", **headers: str) -> Any:
    def serve(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return serve


def hang_up(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True


def test_reply_is_handed_on(server: Any) -> None:
    server.answers = [answer(200, b"body", X_Thing="Value")]
    http = server.http()
    reply = http.send(Request("POST", server.url, {"Authorization": "Bearer t"}, b"asked"), http.deadline(5))
    assert (reply.status, reply.body, reply.headers["x-thing"], reply.tries) == (200, b"body", "Value", 1)
    assert server.bodies == [b"asked"]
    assert server.seen[0]["authorization"] == "Bearer t"


def test_server_trouble_is_tried_three_times(server: Any) -> None:
    server.answers = [answer(503)]
    http = server.http()
    reply = http.send(Request("GET", server.url), http.deadline(60))
    assert (reply.status, reply.tries, server.waits) == (503, 3, [1.0, 2.0])


def test_wait_that_the_server_asks_for(server: Any) -> None:
    server.answers = [answer(503, Retry_After="9"), answer(200)]
    http = server.http()
    assert http.send(Request("GET", server.url), http.deadline(60)).status == 200
    assert server.waits == [9.0]


def test_wait_beyond_the_deadline_is_not_waited(server: Any) -> None:
    server.answers = [answer(503, Retry_After="3600")]
    http = server.http()
    assert http.send(Request("GET", server.url), http.deadline(60)).status == 503
    assert server.waits == []


def test_refusals_are_not_retried(server: Any) -> None:
    server.answers = [answer(403)]
    http = server.http()
    assert http.send(Request("GET", server.url), http.deadline(5)).status == 403
    assert len(server.seen) == 1


def test_closed_connection_is_tried_again(server: Any) -> None:
    server.answers = [hang_up, answer(200, b"at last")]
    http = server.http()
    assert http.send(Request("GET", server.url), http.deadline(5)).body == b"at last"


def test_redirect_is_not_followed_with_a_token(server: Any) -> None:
    server.answers = [answer(302, Location="/elsewhere")]
    http = server.http()
    reply = http.send(Request("GET", server.url, {"Authorization": "Bearer t"}), http.deadline(5))
    assert reply.status == 302
    assert len(server.seen) == 1


def test_netrc_is_not_read(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login planted password planted")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.answers = [answer(302, Location="/elsewhere"), answer(200)]
    http = server.http()
    with http.stream(server.url, {}, http.deadline(5)) as incoming:
        assert incoming.status == 200
    assert [seen["path"] for seen in server.seen] == ["/", "/elsewhere"]
    assert all("authorization" not in seen for seen in server.seen)


def test_stream_refuses_a_token(server: Any) -> None:
    http = server.http()
    with (
        pytest.raises(ValueError, match="no Authorization"),
        http.stream("x", {"authorization": "t"}, http.deadline(5)),
    ):
        pass


def test_slice_is_sent_with_its_length_and_again_after_trouble(server: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(256)) * 400)
    server.answers = [answer(500), answer(201)]
    http = server.http()
    http.send(Request("PUT", server.url, {}, FileSlice(tmp_path / "f", 100, 70_000)), http.deadline(5))
    assert server.bodies == [(bytes(range(256)) * 400)[100:70_100]] * 2
    assert "transfer-encoding" not in server.seen[0]


def test_endless_reply_is_cut_off(server: Any) -> None:
    server.answers = [answer(200, bytes(2_000_000))]
    http = server.http()
    with pytest.raises(TransferError, match="more than 1 MiB"):
        http.send(Request("GET", server.url), http.deadline(5))


def test_reply_that_trickles_is_given_up_at_the_deadline(server: Any) -> None:
    def trickle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        for _ in range(40):
            request.wfile.write(b"x")
            request.wfile.flush()
            time.sleep(0.05)

    server.answers = [trickle]
    http, start = Http(read_timeout_s=0.3), time.monotonic()
    with pytest.raises(TransferError, match=r"gave up after 0\.5 s"):
        http.send(Request("GET", server.url), http.deadline(0.5))
    assert time.monotonic() - start < 1.5


def test_deadline_that_is_over_sends_nothing(server: Any) -> None:
    now = iter([0.0, 6.0, 6.0])
    http = Http(clock=Clock(lambda: next(now)))
    with pytest.raises(TransferError, match="gave up after 5 s"):
        http.send(Request("GET", server.url), http.deadline(5))
    assert server.seen == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/p?sig=s3cret", "ftp://x/?sig=s3cret", "http://[/?sig=s3cret", "no url s3cret", ""]
)
def test_error_names_the_host_and_no_more(url: str) -> None:
    http = Http(clock=Clock(sleep=lambda _: None))
    with pytest.raises(TransferError) as caught:
        http.send(Request("GET", url), http.deadline(5))
    assert "s3cret" not in caught.value.reason
    assert "s3cret" not in repr(Request("GET", url))


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://u:p@h.example:1/x?y", "h.example"), ("x", "a URL without a host"), ("http://[", "a malformed URL")],
)
def test_host_of(url: str, host: str) -> None:
    assert host_of(url) == host
