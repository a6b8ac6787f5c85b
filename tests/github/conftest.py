"""The runner as the tests see it: its two grammars, its variables, and the pull-request API in two forms."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import unicodedata
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from retrieval_eval.github.api import GithubApi
from retrieval_eval.github.pulls import ApiError, Comment, Pull, Standing, Trouble
from retrieval_eval.github.runner import RunnerEnvironment, read_environment

TOKEN = "ghs_0123456789secret"
HEAD = "a" * 40
REGISTERED = frozenset(
    {
        *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group"),
        *("internal-set-repo-path", "notice", "remove-matcher", "save-state", "set-env", "set-output"),
        *("stop-commands", "warning"),
    }
)
OPEN = Pull(7, True, HEAD, "change", "acme/widgets", "acme/widgets", "")


@dataclass(frozen=True)
class Command:
    name: str
    data: str


def _visible(line: str) -> str:
    """What a comparison by culture sees: invisible characters do not count."""
    return "".join(
        c for c in line if unicodedata.category(c) not in ("Cf", "Cc", "Cs") and not "\ufe00" <= c <= "\ufe0f"
    )


def _command_of(line: str) -> Command | None:
    start = line.lstrip()
    if start.startswith("::") and "::" in start[2:]:
        name, _, data = start[2:].partition("::")
        if name.split(" ")[0] in REGISTERED:
            return Command(name.split(" ")[0], data)
    old = re.search(r"##\[([^\]\s]*)[^\]]*\](.*)", line)
    return Command(old[1], old[2]) if old and old[1] in REGISTERED else None


def commands_in(stream: str) -> list[Command]:
    """Every workflow command that the runner would run, by its own rules or by the wider ones of `_visible`."""
    found = []
    for line in re.split("\r\n|\r|\n", stream):
        command = _command_of(line) or _command_of(_visible(line))
        if command:
            data = command.data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
            found.append(Command(command.name, data))
    return found


def outputs_in(text: str) -> dict[str, str]:
    """The runner's reading of a file command; raises ValueError where the runner fails the step."""
    lines, found = text.split("\n"), {}
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
        elif heredoc >= 0:
            name, _, delimiter = line.partition("<<")
            if not name or not delimiter or delimiter not in lines:
                raise ValueError(f"malformed: {line!r}")
            end = lines.index(delimiter)
            value, lines = "\n".join(lines[:end]), lines[end + 1 :]
        else:
            raise ValueError(f"malformed: {line!r}")
        found[name] = value
    return found


@pytest.fixture(scope="session")
def runner_commands() -> Callable[[str], list[Command]]:
    return commands_in


@pytest.fixture(scope="session")
def runner_outputs() -> Callable[[str], dict[str, str]]:
    return outputs_in


@pytest.fixture
def make_environment(tmp_path: Path) -> Callable[..., RunnerEnvironment]:
    """Build an environment as the runner would for one event; keyword arguments are variables without `GITHUB_`."""

    def make(event_name: str = "pull_request", event: object = None, **variables: str) -> RunnerEnvironment:
        event_file = tmp_path / "event.json"
        event_file.write_text(json.dumps(event), encoding="utf-8")
        for name in ("summary.md", "output.txt"):
            (tmp_path / name).touch()
        (tmp_path / "workspace").mkdir(exist_ok=True)
        known = {
            "EVENT_NAME": event_name,
            "EVENT_PATH": str(event_file),
            "WORKSPACE": str(tmp_path / "workspace"),
            "SHA": HEAD,
            "REF": "refs/heads/change",
            "REPOSITORY": "acme/widgets",
            "RUN_ID": "500",
            "RUN_ATTEMPT": "1",
            "STEP_SUMMARY": str(tmp_path / "summary.md"),
            "OUTPUT": str(tmp_path / "output.txt"),
            "TOKEN": TOKEN,
            **variables,
        }
        return read_environment({f"GITHUB_{name}": value for name, value in known.items()})

    return make


@pytest.fixture(scope="session")
def pull_event() -> Callable[..., dict[str, object]]:
    """A pull_request event; `head_repository` None is a deleted fork."""

    def make(number: int = 7, head_repository: str | None = "acme/widgets", sha: str = HEAD) -> dict[str, object]:
        return {
            "number": number,
            "pull_request": {
                "number": number,
                "head": {"sha": sha, "repo": {"full_name": head_repository} if head_repository else None},
                "base": {"repo": {"full_name": "acme/widgets"}},
            },
        }

    return make


class Standin:
    """The stand-in of the comments API: one process, steered and read over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def fault(self, name: str, times: int = 1) -> None:
        order = json.dumps({"fault": name, "times": times}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/_control", order, method="POST")).read()

    def seed(self, body: str) -> None:
        """Post as the bot, past all our rules."""
        request = urllib.request.Request(
            f"{self.url}/repos/acme/widgets/issues/7/comments",
            json.dumps({"body": body}).encode(),
            {"Authorization": f"token {TOKEN}"},
            method="POST",
        )
        urllib.request.urlopen(request).read()

    @property
    def comments(self) -> list[dict[str, object]]:
        return self._state()["comments"]

    @property
    def bots(self) -> list[str]:
        return [comment["body"] for comment in self.comments if comment["user"]["type"] == "Bot"]

    def requests(self, start: str = "") -> list[str]:
        return [line for line in self._state()["log"] if line.startswith(start)]

    def _state(self) -> dict[str, list]:
        with urllib.request.urlopen(f"{self.url}/_state") as answer:
            return json.load(answer)


@pytest.fixture
def start_standin(shared: Path) -> Iterator[Callable[..., Standin]]:
    """Start stand-ins with options of their command line; they end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> Standin:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = shared / "tools" / "comments_standin" / "server.py"
        started.append(subprocess.Popen([sys.executable, str(server), str(port), "--token", TOKEN, *options]))
        standin = Standin(f"http://127.0.0.1:{port}")
        for _ in range(100):
            try:
                standin.requests()
            except OSError:
                time.sleep(0.05)
            else:
                return standin
        raise RuntimeError("the stand-in does not answer")

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def standin(start_standin: Callable[..., Standin]) -> Standin:
    return start_standin()


@pytest.fixture
def sleeps() -> list[float]:
    """The waits that were asked for; nothing sleeps."""
    return []


@pytest.fixture
def connect_to(make_environment: Callable[..., RunnerEnvironment], sleeps: list[float]) -> Callable[..., GithubApi]:
    def connect_to(standin: Standin, **variables: str) -> GithubApi:
        environment = make_environment(API_URL=standin.url, **variables)
        return GithubApi(environment, sleep=sleeps.append, clock=time.time)

    return connect_to


@dataclass
class FakeApi:
    """`PullRequestApi` in memory. `before` runs ahead of a named method: another run, a person, a failure."""

    at: Pull = OPEN
    stored: list[Comment] = field(default_factory=list)
    standings: dict[int, Standing] = field(default_factory=dict)
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self.before.pop(name, lambda: None)()

    def add(self, body: str, is_by_bot: bool = True) -> Comment:
        number = max((comment.id for comment in self.stored), default=0) + 1
        comment = Comment(number, f"IC_{number}", body, f"https://example.invalid/{number}", is_by_bot)
        self.stored.append(comment)
        return comment

    def pull(self, number: int) -> Pull:
        self._called("pull")
        if number != self.at.number:
            raise ApiError(Trouble.MISSING, 404, "Not Found")
        return self.at

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        self._called("pulls_of_commit")
        return [self.at]

    def open_pulls_from(self, owner: str, branch: str) -> Sequence[Pull]:
        self._called("open_pulls_from")
        return [self.at]

    def comments(self, number: int) -> Sequence[Comment]:
        self._called("comments")
        return list(self.stored)

    def standing(self, comments: Sequence[Comment]) -> dict[int, Standing]:
        self._called("standing")
        return self.standings

    def create(self, number: int, body: str) -> Comment:
        self._called("create")
        return self.add(body)

    def edit(self, comment: Comment, body: str) -> Comment:
        self._called("edit")
        edited = replace(comment, body=body)
        self.stored[self.stored.index(comment)] = edited
        return edited

    def delete(self, comment: Comment) -> None:
        self._called("delete")
        self.stored = [other for other in self.stored if other.id != comment.id]

    def unhide(self, comment: Comment) -> None:
        self._called("unhide")


@pytest.fixture
def fake_api() -> FakeApi:
    return FakeApi()
