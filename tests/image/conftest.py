"""The image, built by buildah from the Dockerfile, and its container run as the runner runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from standins import Comments, running_cache_service, running_comments

BASE = "localhost/retrieval-eval-test-base"
IMAGE = "localhost/retrieval-eval-test"
TOOLS = {**os.environ, "STORAGE_DRIVER": "overlay", "BUILDAH_ISOLATION": "chroot"}
CERTIFICATES = "/etc/ssl/certs:/etc/ssl/certs:ro"
TOKEN = "ghs_" + "t0ken" * 8
HEAD = "a" * 40
OWNER = 1234


def buildah(*arguments: str) -> str:
    """Run buildah, and fail with what it said."""
    done = subprocess.run(["buildah", *arguments], env=TOOLS, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"buildah {arguments[0]}: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout.strip()


def build(context: Path, tag: str, base: str) -> None:
    buildah(
        "build",
        "--pull-never",
        "--layers",
        "--network=host",
        f"--volume={CERTIFICATES}",
        f"--build-arg=BASE={base}",
        f"--tag={tag}",
        str(context),
    )


def copy_context(root: Path, folder: Path) -> Path:
    """What `.dockerignore` lets in, to be changed."""
    for name in ("Dockerfile", ".dockerignore", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(root / name, folder / name)
    shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="session")
def base(root: Path) -> str:
    """A base image: the one of RETRIEVAL_EVAL_BASE_IMAGE, or the stand-in, made once and kept."""
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("no buildah, or not root: the image is not built here")
    given = os.environ.get("RETRIEVAL_EVAL_BASE_IMAGE")
    if given:
        return given
    if BASE not in buildah("images", "--format", "{{.Name}}").split():
        if shutil.which("debootstrap") is None:
            pytest.skip("no debootstrap to make a base image with (or set RETRIEVAL_EVAL_BASE_IMAGE)")
        script = Path(__file__).with_name("base_image.sh")
        done = subprocess.run([script, BASE], env=TOOLS, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no base image could be made: {done.stderr[-500:]}")
    return BASE


@pytest.fixture(scope="session")
def image(root: Path, base: str) -> str:
    build(root, IMAGE, base)
    return IMAGE


@pytest.fixture(scope="session")
def other_image(root: Path, base: str, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image after a change of our code and nothing else."""
    context = copy_context(root, tmp_path_factory.mktemp("context"))
    with (context / "src" / "retrieval_eval" / "values.py").open("a") as file:
        file.write("\nCHANGED = True\n")
    tag = f"{IMAGE}-changed"
    build(context, tag, base)
    yield tag
    buildah("rmi", tag)


@dataclass(frozen=True)
class Done:
    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    report: dict[str, Any]

    def annotations(self, level: str) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith(f"::{level}")]


def outputs_in(text: str) -> dict[str, str]:
    lines, found = text.splitlines(), {}
    while lines:
        name, _, delimiter = lines.pop(0).partition("<<")
        end = lines.index(delimiter)
        found[name], lines = "\n".join(lines[:end]), lines[end + 1 :]
    return found


@dataclass
class ContainerJob:
    """One job on a runner: every step is a new container of the image, over the same mounts."""

    image: str
    entry: list[str]
    folder: Path
    inputs: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    run_id: int = 500

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def event(self, name: str, payload: object) -> None:
        (self.folder / "workflow" / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        self.variables["GITHUB_EVENT_NAME"] = name

    def write(self, instances: list[dict[str, Any]]) -> None:
        (self.workspace / "data.json").write_text(json.dumps(instances), encoding="utf-8")

    def fresh_checkout(self) -> None:
        shutil.rmtree(self.workspace / ".embcache")

    def command(self, container: str, inputs: dict[str, str]) -> list[str]:
        """`docker run` as the runner's handler for container actions writes it, for buildah."""
        self.run_id += 1
        for name in ("output", "summary"):
            (self.folder / "file_commands" / name).write_bytes(b"")
        given = {f"INPUT_{name.upper()}": value for name, value in {**self.inputs, **inputs}.items()}
        environment = {
            **given,
            "HOME": "/github/home",
            "GITHUB_ACTIONS": "true",
            "CI": "true",
            "GITHUB_REPOSITORY": "acme/widgets",
            "GITHUB_WORKFLOW": "Retrieval",
            "GITHUB_JOB": "measure",
            "GITHUB_SHA": HEAD,
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_WORKSPACE": "/github/workspace",
            "GITHUB_EVENT_PATH": "/github/workflow/event.json",
            "GITHUB_OUTPUT": "/github/file_commands/output",
            "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
            "GITHUB_ACTION_PATH": "/home/runner/work/_actions/retrieval-eval",
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": "/github/runner_temp",
            "RUNNER_TOOL_CACHE": "/opt/hostedtoolcache",
            **self.variables,
        }
        mounts = ("workspace", "home", "workflow", "file_commands", "runner_temp")
        return [
            "buildah",
            "run",
            "--network=host",
            "--workingdir=/github/workspace",
            *(f"--volume={self.folder / name}:/github/{name}" for name in mounts),
            *(f"--env={name}={value}" for name, value in environment.items()),
            container,
            "--",
            *self.entry,
        ]

    def start(self, container: str, inputs: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(container, inputs), env=TOOLS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def step(self, inputs: dict[str, str] | None = None) -> Done:
        container = buildah("from", "--pull-never", self.image)
        try:
            process = self.start(container, inputs or {})
            log, _ = process.communicate(timeout=240)
        finally:
            buildah("rm", container)
        report = self.workspace / "retrieval-report.json"
        return Done(
            process.returncode,
            log,
            outputs_in((self.folder / "file_commands" / "output").read_text(encoding="utf-8")),
            (self.folder / "file_commands" / "summary").read_text(encoding="utf-8"),
            json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {},
        )

    def owners(self) -> set[int]:
        return {path.lstat().st_uid for path in self.workspace.rglob("*")}


@pytest.fixture
def job(image: str, shared: Path, tmp_path: Path) -> ContainerJob:
    """A push to main, with the default model's files in the workspace, which belongs to somebody else than root."""
    for name in ("workspace", "home", "workflow", "file_commands", "runner_temp"):
        (tmp_path / name).mkdir()
    found = json.loads(buildah("inspect", "--type", "image", image))
    made = ContainerJob(
        image, found["OCIv1"]["config"]["Entrypoint"], tmp_path, {"dataset": "data.json", "model": "model"}
    )
    source = shared / "models" / "bge-small-en-v1.5"
    for name in ("config.json", "tokenizer.json", "onnx/model.onnx"):
        (made.workspace / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, made.workspace / "model" / name)
    made.write(dataset())
    made.event("push", {"ref": "refs/heads/main"})
    for path in (made.workspace, *made.workspace.rglob("*")):
        os.chown(path, OWNER, OWNER)
    return made


def dataset(extra_sessions: int = 0) -> list[dict[str, Any]]:
    """Three questions over three short sessions each; the extra ones go to the first."""
    made = []
    for number, topic in enumerate(("the kayak on the lake", "a violin with three strings", "sourdough from rye")):
        texts = [topic, f"weather report number {number}", f"shopping list number {number}"]
        texts += [f"another talk, number {index}" for index in range(extra_sessions if number == 0 else 0)]
        ids = [f"s{number}_{index}" for index in range(len(texts))]
        made.append(
            {
                "question_id": f"q{number}",
                "question_type": "multi-session",
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


@pytest.fixture
def cache_service(shared: Path, job: ContainerJob, tmp_path: Path) -> Iterator[str]:
    """The address of a cache service that the job sees."""
    with running_cache_service(shared, tmp_path / "ready.json") as service:
        job.variables |= service.variables()
        yield service.url


@pytest.fixture
def comments(shared: Path, job: ContainerJob) -> Iterator[Comments]:
    """The comments API with pull request 7; the job gets a token and the pull request's event."""
    with running_comments(shared, HEAD, TOKEN) as api:
        job.variables["GITHUB_API_URL"] = api.url
        job.inputs["github-token"] = TOKEN
        yield api


@pytest.fixture(scope="session")
def make_dataset() -> Callable[..., list[dict[str, Any]]]:
    return dataset


@pytest.fixture(scope="session", name="buildah")
def run_buildah() -> Callable[..., str]:
    return buildah
