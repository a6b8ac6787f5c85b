"""What the runner hands to a container action, and the files through which the action answers.

Owns the environment variables `GITHUB_*` and `RUNNER_*` and the file commands (outputs, step summary). Inputs are
`settings.py`'s, log lines `log.py`'s. Nothing in here raises because of a file: the reason comes back as a value.

Source of the rules: actions/runner, `ContainerActionHandler.cs` and `FileCommandManager.cs`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retrieval_eval.github.payload import text_at

EVENT_LIMIT_BYTES = 32 * 1024 * 1024
"""GitHub's own cap on a webhook payload is 25 MB."""

SUMMARY_BUDGET_BYTES = 900 * 1024
"""The most that we write into one summary file."""

SUMMARY_LIMIT_BYTES = 1024 * 1024
"""Above this the runner drops the whole summary."""

SUMMARY_MARGIN_BYTES = 16 * 1024
"""Kept free below the limit: the runner's secret masking may lengthen lines."""

OUTPUTS_LIMIT_CHARACTERS = 500_000
"""GitHub takes 1 MB of outputs per job, counted in UTF-16; other steps of the job need room too."""

TOKEN_VARIABLES = ("INPUT_GITHUB-TOKEN", "GITHUB_TOKEN")
"""The first that is not empty is the token. The runner itself sets neither."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file took what was meant for it."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class NotWritten:
    """A file did not take what was meant for it; `reason` is a plain sentence part for the report."""

    reason: str


@dataclass(frozen=True, slots=True)
class RunnerEnvironment:
    """The job as the runner describes it. What the runner did not say is "" (or 0, or None)."""

    workspace: Path
    temporary: Path
    event_name: str
    event: Mapping[str, object] = field(repr=False)
    event_problem: str
    sha: str
    ref: str
    repository: str
    workflow: str
    job: str
    run_id: int
    run_attempt: int
    server_url: str
    api_url: str
    summary_path: Path | None
    output_path: Path | None
    token: str = field(repr=False)

    @property
    def run_url(self) -> str:
        """The page of this run, or "" outside a run."""
        if not (self.repository and self.run_id):
            return ""
        attempt = f"/attempts/{self.run_attempt}" if self.run_attempt > 1 else ""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}{attempt}"

    @property
    def ref_name(self) -> str:
        """Branch or tag without its prefix; "" for other refs."""
        for prefix in ("refs/heads/", "refs/tags/"):
            if self.ref.startswith(prefix):
                return self.ref.removeprefix(prefix)
        return ""

    @property
    def is_fork(self) -> bool:
        """Whether the change under test comes from another repository (also one that is gone meanwhile)."""
        if isinstance(self.event.get("pull_request"), Mapping):
            head = text_at(self.event, "pull_request", "head", "repo", "full_name")
            return head != text_at(self.event, "pull_request", "base", "repo", "full_name")
        if isinstance(self.event.get("workflow_run"), Mapping):
            return text_at(self.event, "workflow_run", "head_repository", "full_name") != self.repository
        return False


def read_environment(environ: Mapping[str, str]) -> RunnerEnvironment:
    """Read the runner's variables; a missing or broken event file leaves `event` empty and `event_problem` filled."""
    event, event_problem = _read_event(environ.get("GITHUB_EVENT_PATH", ""))
    workspace = environ.get("GITHUB_WORKSPACE", "")
    return RunnerEnvironment(
        workspace=Path(workspace) if workspace and Path(workspace).is_dir() else Path.cwd(),
        temporary=_temporary(environ.get("RUNNER_TEMP", "")),
        event_name=environ.get("GITHUB_EVENT_NAME", ""),
        event=event,
        event_problem=event_problem,
        sha=environ.get("GITHUB_SHA", ""),
        ref=environ.get("GITHUB_REF", ""),
        repository=_repository(environ.get("GITHUB_REPOSITORY", "")),
        workflow=environ.get("GITHUB_WORKFLOW", ""),
        job=environ.get("GITHUB_JOB", ""),
        run_id=_whole_number(environ.get("GITHUB_RUN_ID", "")),
        run_attempt=_whole_number(environ.get("GITHUB_RUN_ATTEMPT", "")) or 1,
        server_url=environ.get("GITHUB_SERVER_URL", "").rstrip("/") or "https://github.com",
        api_url=environ.get("GITHUB_API_URL", "").rstrip("/") or "https://api.github.com",
        summary_path=_path(environ.get("GITHUB_STEP_SUMMARY", "")),
        output_path=_path(environ.get("GITHUB_OUTPUT", "")),
        token=next((environ[name].strip() for name in TOKEN_VARIABLES if environ.get(name, "").strip()), ""),
    )


def set_outputs(path: Path | None, outputs: Mapping[str, str]) -> Written | NotWritten:
    """Append step outputs in the heredoc form, each with a random delimiter: no value can start another output.

    Raises ValueError for a name that is not ours to write (only letters, digits, `_` and `-`).
    """
    for name in outputs:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
            raise ValueError(f"not an output name: {name!r}")
    if sum(len(name) + len(value) for name, value in outputs.items()) > OUTPUTS_LIMIT_CHARACTERS:
        return NotWritten(f"outputs would pass {OUTPUTS_LIMIT_CHARACTERS:,} characters")
    return _append(path, "".join(_heredoc(name, value) for name, value in outputs.items()), "GITHUB_OUTPUT")


def summary_room_bytes(path: Path | None, budget_bytes: int = SUMMARY_BUDGET_BYTES) -> int:
    """Return how many UTF-8 bytes the step summary may still take, what is in the file already counted."""
    used = path.stat().st_size if path is not None and path.is_file() else 0
    return max(0, min(budget_bytes, SUMMARY_LIMIT_BYTES - SUMMARY_MARGIN_BYTES - used))


def append_summary(path: Path | None, text: str, budget_bytes: int = SUMMARY_BUDGET_BYTES) -> Written | NotWritten:
    """Append `text` to the step summary, or nothing at all where it does not fit `summary_room_bytes`."""
    needed, room = len(_encoded(text)), summary_room_bytes(path, budget_bytes)
    if needed > room:
        return NotWritten(f"the step summary has room for {room:,} bytes, the report needs {needed:,}")
    return _append(path, text, "GITHUB_STEP_SUMMARY")


def hand_over(
    environment: RunnerEnvironment,
    paths: Iterable[Path],
    chown: Callable[[Path, int, int], None] = os.lchown,
) -> tuple[str, ...]:
    """Give what we leave behind to the owner of the workspace, so that later steps can remove it.

    The container runs as root. Only paths inside the workspace or the temporary directory are touched; links are
    changed themselves and never followed. Returns one sentence part for each path that could not be handed over.
    """
    problems = []
    try:
        owner = environment.workspace.stat()
    except OSError as error:
        return (f"owner of the workspace: {error.strerror}",)
    roots = (environment.workspace.resolve(), environment.temporary.resolve())
    for path in paths:
        if not any(path.parent.resolve().is_relative_to(root) for root in roots):
            continue
        try:
            for entry in _tree(path):
                chown(entry, owner.st_uid, owner.st_gid)
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    return tuple(problems)


def _tree(path: Path) -> Iterator[Path]:
    if not path.is_symlink() and not path.exists():
        return
    yield path
    if path.is_symlink() or not path.is_dir():
        return
    for folder, folders, files in os.walk(path, followlinks=False):
        yield from (Path(folder, name) for name in (*folders, *files))


def _heredoc(name: str, value: str) -> str:
    delimiter = f"retrieval-eval-{uuid.uuid4()}"
    while delimiter in value:
        delimiter = f"retrieval-eval-{uuid.uuid4()}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _append(path: Path | None, text: str, variable: str) -> Written | NotWritten:
    if path is None:
        return NotWritten(f"{variable} is not set")
    data = _encoded(text)
    try:
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        return NotWritten(f"{variable}: {error.strerror}")
    return Written(len(data))


def _encoded(text: str) -> bytes:
    """UTF-8; half an emoji becomes a question mark instead of an exception."""
    return text.encode("utf-8", "replace")


def _read_event(name: str) -> tuple[Mapping[str, object], str]:
    if not name:
        return {}, "GITHUB_EVENT_PATH is not set"
    try:
        with Path(name).open("rb") as file:
            data = file.read(EVENT_LIMIT_BYTES + 1)
        if len(data) > EVENT_LIMIT_BYTES:
            return {}, f"the event file is larger than {EVENT_LIMIT_BYTES:,} bytes"
        event = json.loads(data)
    except OSError as error:
        return {}, f"the event file cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return {}, "the event file is not JSON"
    return (event, "") if isinstance(event, dict) else ({}, "the event file is not a JSON object")


def _temporary(name: str) -> Path:
    """RUNNER_TEMP where it exists: runners before 2.329 pass a path of the host."""
    return Path(name) if name and Path(name).is_dir() else Path(tempfile.gettempdir())


def _repository(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII) else ""


def _path(name: str) -> Path | None:
    return Path(name) if name else None


def _whole_number(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0
