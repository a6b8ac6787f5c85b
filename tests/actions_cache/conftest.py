"""The cache service stand-in, a client on it whose waits take no time, and the official client."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retrieval_eval.github.actions_cache import ActionsCache, Limits, ServiceEnv
from retrieval_eval.http import Clock, Http
from standins import MAIN, CacheService, running_cache_service


class StandIn(CacheService):
    """The service, with faults and the environment of a job."""

    def faults(self, *faults: dict[str, object]) -> None:
        self.control("faults", list(faults))

    def env(self, scopes: tuple[tuple[str, int], ...] = MAIN, **more: str) -> dict[str, str]:
        return {**self.variables(scopes), **more}


@dataclass
class Bench:
    """A job: its workspace, what was masked, how long was waited."""

    standin: StandIn
    folder: Path
    masked: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def client(
        self,
        scopes: tuple[tuple[str, int], ...] = MAIN,
        limits: Limits | None = None,
        http: Http | None = None,
        override: str = "",
        **env: str,
    ) -> ActionsCache:
        chosen = ServiceEnv.from_env(self.standin.env(scopes, **env), override)
        http = http or Http(clock=Clock(sleep=self.waits.append))
        return ActionsCache(chosen, http, self.workspace, self.folder / "scratch", self.masked.append, limits)

    def fill(self, content: dict[str, bytes] | None = None) -> dict[str, bytes]:
        content = content or {"a.db": b"hello" * 1000, "sub/b": os.urandom(50_000), "empty": b""}
        for name, data in content.items():
            path = self.workspace / ".embcache" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return content

    def content(self) -> dict[str, bytes]:
        root = self.workspace / ".embcache"
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def empty(self) -> None:
        shutil.rmtree(self.workspace / ".embcache")

    def leftovers(self) -> list[str]:
        places = [*self.workspace.iterdir(), *(self.folder / "scratch").iterdir()]
        return sorted(path.name for path in places if path.name != ".embcache")


@pytest.fixture(scope="session")
def running_standin(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with running_cache_service(shared, tmp_path_factory.mktemp("standin") / "ready.json") as service:
        yield StandIn(service.url)


@pytest.fixture
def standin(running_standin: StandIn) -> StandIn:
    running_standin.control("reset", {})
    return running_standin


@pytest.fixture
def bench(standin: StandIn, tmp_path: Path) -> Bench:
    job = Bench(standin, tmp_path)
    job.workspace.mkdir()
    (tmp_path / "scratch").mkdir()
    return job


@pytest.fixture(scope="session")
def official(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `node official.mjs` runs the official npm client."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed: no official cache client to compare with")
    folder = tmp_path_factory.mktemp("official")
    for name in ("official.mjs", "package.json"):
        shutil.copyfile(shared / "tools" / "cache_standin" / name, folder / name)
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"npm could not install the official cache client: {done.stderr[-200:]}")
    return folder
