"""The stand-ins of shared/tools as tests drive them: the Actions cache service and the pull-request comments API."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
MAIN = (("refs/heads/main", 3),)


def runtime_token(scopes: tuple[tuple[str, int], ...] = MAIN) -> str:
    """A runtime token as far as its claims go; bits 1 = read, 2 = write."""
    claims = {"ac": json.dumps([{"Scope": scope, "Permission": bits} for scope, bits in scopes]), "repository_id": "1"}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "x"])


@dataclass
class CacheService:
    url: str

    def control(self, what: str, send: object = None) -> Any:
        data = None if send is None else json.dumps(send).encode()
        request = urllib.request.Request(f"{self.url}_control/{what}", data, method="POST" if data else "GET")
        with NO_PROXY.open(request) as reply:
            return json.load(reply)

    def requests(self, op: str = "") -> list[dict[str, Any]]:
        return [seen for seen in self.control("requests") if op in ("", seen["op"])]

    def variables(self, scopes: tuple[tuple[str, int], ...] = MAIN) -> dict[str, str]:
        """What lets a job see this service."""
        return {"ACTIONS_RESULTS_URL": self.url, "ACTIONS_RUNTIME_TOKEN": runtime_token(scopes)}


@contextmanager
def running_cache_service(shared: Path, ready: Path) -> Iterator[CacheService]:
    """The service on a free port; it says which in the file `ready`."""
    server = shared / "tools" / "cache_standin" / "server.py"
    command = [sys.executable, str(server), "--port", "0", "--ready-file", str(ready)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if ready.exists():
                break
            time.sleep(0.05)
        yield CacheService(json.loads(ready.read_text())["url"])
    finally:
        process.terminate()
        process.wait(10)


@dataclass
class Comments:
    url: str
    token: str

    def fault(self, name: str, times: int = -1) -> None:
        order = json.dumps({"fault": name, "times": times}).encode()
        NO_PROXY.open(urllib.request.Request(f"{self.url}/_control", order, method="POST")).read()

    def state(self) -> dict[str, Any]:
        with NO_PROXY.open(f"{self.url}/_state") as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.state()["comments"] if comment["user"]["type"] == "Bot"]

    def head_branch(self) -> str:
        request = urllib.request.Request(
            f"{self.url}/repos/acme/widgets/pulls/7", headers={"Authorization": f"token {self.token}"}
        )
        with NO_PROXY.open(request) as answer:
            return str(json.load(answer)["head"]["ref"])


@contextmanager
def running_comments(shared: Path, head_sha: str, token: str) -> Iterator[Comments]:
    """The comments API of acme/widgets with pull request 7 at `head_sha`, open to `token`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = shared / "tools" / "comments_standin" / "server.py"
    options = ["--pull", "7", "--head-sha", head_sha, "--token", token]
    process = subprocess.Popen([sys.executable, str(server), str(port), *options], stdout=subprocess.DEVNULL)
    made = Comments(f"http://127.0.0.1:{port}", token)
    try:
        for _ in range(100):
            try:
                made.state()
            except OSError:
                time.sleep(0.05)
            else:
                break
        yield made
    finally:
        process.kill()
        process.wait()
