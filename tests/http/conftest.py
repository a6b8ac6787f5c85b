"""A file server on this machine that misbehaves on request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from retrieval_eval.http import Clock, Http

Serve = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class FileServer:
    """Answers request number n as `answers[n]` says, later ones as the last; `seen` holds each request's headers."""

    url: str = ""
    answers: list[Serve] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def http(self, **options: float) -> Http:
        return Http(clock=Clock(sleep=self.waits.append), **options)  # type: ignore[arg-type]  # tries is a whole float


@pytest.fixture
def server() -> Iterator[FileServer]:
    plan = FileServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            plan.bodies.append(self.rfile.read(length))
            plan.seen.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
            plan.answers[min(len(plan.seen), len(plan.answers)) - 1](self)

        do_PUT = do_POST = do_GET  # noqa: N815 - http.server's names

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        listening.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are the point
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        plan.url = f"http://127.0.0.1:{listening.server_address[1]}/"
        yield plan
        listening.shutdown()
