"""A runner for the action: its variables and files, the entry point in a process of its own, and the stand-ins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from standins import CacheService, Comments, running_cache_service, running_comments

ENTRY = [sys.executable, "-I", "-m", "retrieval_eval.action"]
TOKEN = "ghs_" + "t0ken" * 8
HEAD = "a" * 40

TOPICS = ("the kayak on the lake", "a violin with three strings", "sourdough from rye", "the tax letter of spring")


def dataset(extra_sessions: int = 0) -> list[dict[str, Any]]:
    """Four questions over three short sessions each; the extra sessions go to the first."""
    made = []
    for number, topic in enumerate(TOPICS):
        texts = [topic, f"weather report number {number}", f"shopping list number {number}"]
        texts += [
            f"another talk, the {extra + 1}. of its kind" for extra in range(extra_sessions if number == 0 else 0)
        ]
        ids = [f"s{number}_{index}" for index in range(len(texts))]
        made.append(
            {
                "question_id": f"q{number}",
                "question_type": ["multi-session", "knowledge-update"][number % 2],
                "question": f"What did I say about {topic}?",
                "answer": "it",
                "question_date": "2024/04/02 (Tue) 10:00",
                "haystack_dates": ["2024/03/01 (Fri) 09:00"] * len(texts),
                "haystack_session_ids": ids,
                "haystack_sessions": [[{"role": "user", "content": text}] for text in texts],
                "answer_session_ids": ids[:1],
            }
        )
    return made


def outputs_in(text: str) -> dict[str, str]:
    """The runner's grammar for GITHUB_OUTPUT: anything malformed fails the step."""
    lines, found = text.split("\n"), {}
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        name, sign, delimiter = line.partition("<<")
        assert sign and delimiter in lines, f"malformed: {line!r}"
        end = lines.index(delimiter)
        found[name] = "\n".join(lines[:end])
        lines = lines[end + 1 :]
    return found


@dataclass(frozen=True)
class Done:
    """What a step left: its exit code, log, outputs, summary and report."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    report: dict[str, Any] | None

    def annotations(self, level: str) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith(f"::{level}")]


@dataclass
class Runner:
    """One job: steps run in the same workspace, with files of their own as on a real runner."""

    folder: Path
    variables: dict[str, str]
    inputs: dict[str, str] = field(default_factory=dict)
    run_id: int = 500

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def event(self, name: str, payload: object) -> None:
        (self.folder / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        self.variables["GITHUB_EVENT_NAME"] = name

    def environment(self, inputs: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
        for name in ("output.txt", "summary.md"):
            (self.folder / name).write_bytes(b"")
        self.run_id += 1
        given = {f"INPUT_{name.upper()}": value for name, value in {**self.inputs, **inputs}.items()}
        return {**self.variables, "GITHUB_RUN_ID": str(self.run_id), **given, **variables}

    def start(self, inputs: dict[str, str], **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ENTRY,
            cwd=self.workspace,
            env=self.environment(inputs, variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def step(self, inputs: dict[str, str] | None = None, **variables: str) -> Done:
        process = self.start(inputs or {}, **variables)
        log, _ = process.communicate(timeout=120)
        return self.done(process.returncode, log)

    def done(self, code: int, log: str) -> Done:
        report = self.workspace / "retrieval-report.json"
        return Done(
            code,
            log,
            outputs_in((self.folder / "output.txt").read_text(encoding="utf-8")),
            (self.folder / "summary.md").read_text(encoding="utf-8"),
            json.loads(report.read_text(encoding="utf-8")) if report.is_file() else None,
        )

    def write(self, instances: list[dict[str, Any]], name: str = "data.json") -> None:
        (self.workspace / name).write_text(json.dumps(instances), encoding="utf-8")

    def fresh_checkout(self) -> None:
        """What the next job of the repository starts with: no embedding cache."""
        for path in sorted((self.workspace / ".embcache").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        (self.workspace / ".embcache").rmdir()


def _field(number: int, value: int | str | bytes) -> bytes:
    """One field of a protocol-buffers message: a number, or text, bytes or a message behind its length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    *low, last = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(part | 0x80 for part in low), last])


def _port(name: str, kind: int, axes: Sequence[str | int]) -> bytes:
    dims = b"".join(_field(1, _field(2, axis) if isinstance(axis, str) else _field(1, axis)) for axis in axes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def table_model(table: np.ndarray) -> bytes:
    """An ONNX model that looks each token id up in `table`, float32 (tokens, dims): one Gather node."""
    rows, dims = table.shape
    node = _field(1, "table") + _field(1, "input_ids") + _field(2, "last_hidden_state") + _field(4, "Gather")
    tensor = _field(1, rows) + _field(1, dims) + _field(2, 1) + _field(8, "table") + _field(9, table.tobytes())
    ports = _field(11, _port("input_ids", 7, ["b", "n"])) + _field(12, _port("last_hidden_state", 1, ["b", "n", dims]))
    graph = _field(1, node) + _field(2, "lookup") + _field(5, tensor) + ports
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))


def write_model(folder: Path, seed: int = 1) -> Path:
    """A model in the shape of the hub's, small and fast: the mean of random vectors of the letters."""
    signs = "abcdefghijklmnopqrstuvwxyz0123456789"
    words = ["[UNK]", *signs, *(f"##{sign}" for sign in signs)]
    tokenizer = Tokenizer(WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    (folder / "onnx").mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"hidden_size": 16, "max_position_embeddings": 512}))
    table = np.random.default_rng(seed).normal(size=(len(words), 16)).astype(np.float32)
    (folder / "onnx" / "model.onnx").write_bytes(table_model(table))
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "letters")


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "other-letters", seed=2)


@pytest.fixture
def runner(tmp_path: Path, model: Path) -> Runner:
    """A push to main on github.com, without cache service and token, and a small data file in the workspace."""
    for name in ("workspace", "temp", "home"):
        (tmp_path / name).mkdir()
    made = Runner(
        tmp_path,
        {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "1",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(tmp_path / "workspace"),
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "GITHUB_OUTPUT": str(tmp_path / "output.txt"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "acme/widgets",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SHA": HEAD,
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_WORKFLOW": "Retrieval",
            "GITHUB_JOB": "measure",
        },
        {"dataset": "data.json", "model": str(model), "save-cache": "auto"},
    )
    made.event("push", {"ref": "refs/heads/main", "repository": {"full_name": "acme/widgets"}})
    made.write(dataset())
    return made


def pull_event(head_repository: str = "acme/widgets") -> dict[str, object]:
    return {
        "number": 7,
        "pull_request": {
            "number": 7,
            "head": {"sha": HEAD, "repo": {"full_name": head_repository}},
            "base": {"repo": {"full_name": "acme/widgets"}},
        },
        "repository": {"full_name": "acme/widgets"},
    }


@pytest.fixture(scope="session")
def running_service(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CacheService]:
    with running_cache_service(shared, tmp_path_factory.mktemp("cache-service") / "ready.json") as service:
        yield service


@pytest.fixture
def cache_service(running_service: CacheService, runner: Runner) -> CacheService:
    """The cache service, empty; the job sees it."""
    running_service.control("reset", {})
    runner.variables |= running_service.variables()
    return running_service


@pytest.fixture
def comments(shared: Path, runner: Runner) -> Iterator[Comments]:
    """The comments API with pull request 7 at HEAD; the job gets its address, a token, and a pull_request event."""
    with running_comments(shared, HEAD, TOKEN) as api:
        runner.variables["GITHUB_API_URL"] = api.url
        runner.inputs["github-token"] = TOKEN
        runner.event("pull_request", pull_event())
        yield api


@dataclass
class Hub:
    """A stand-in of the hub's file server. `cuts` is how many of the next answers break off half-way."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    cuts: int = 0
    url: str = ""


def _hub_handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.asked.append(self.path)
            body = hub.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            if start:
                hub.ranges.append(self.headers["Range"])
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.send_header("ETag", '"the-file"')
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            is_cut, hub.cuts = hub.cuts > 0, max(0, hub.cuts - 1)
            self.wfile.write(body[start : start + (len(body) - start) // 2] if is_cut else body[start:])

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _hub_handler(made))
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def kill_when() -> Callable[[subprocess.Popen[str], str, signal.Signals], str]:
    """Read a running step's log until a line holds `text`, send the signal, and return the whole log."""

    def kill(process: subprocess.Popen[str], text: str, number: signal.Signals) -> str:
        assert process.stdout is not None
        seen = ""
        for line in process.stdout:
            seen += line
            if text in line:
                process.send_signal(number)
                break
        return seen + process.communicate(timeout=30)[0]

    return kill


@pytest.fixture(scope="session")
def make_dataset() -> Callable[..., list[dict[str, Any]]]:
    return dataset


@pytest.fixture(scope="session")
def make_pull_event() -> Callable[..., dict[str, object]]:
    return pull_event


@pytest.fixture
def forty_questions() -> list[dict[str, Any]]:
    """Enough bytes that an answer can break off in the middle."""
    return [
        {**instance, "question_id": f"{copy}-{instance['question_id']}"} for copy in range(10) for instance in dataset()
    ]
