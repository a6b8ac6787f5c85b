"""The comment of a run whose token may not write: handed over in a folder, posted by a second workflow.

Owns the folder's format and every check between it and the pull request. The folder comes from a workflow run that a
stranger's pull request controls: it is data, nothing in it is executed, and it does not decide where the comment goes.
That is decided by the `workflow_run` event and the API.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retrieval_eval.github.comment import BODY_LIMIT, NO_TOKEN, Draft, Outcome, Refused, Skipped, Stale, upsert
from retrieval_eval.github.events import PullRequest
from retrieval_eval.github.marker import is_report_id
from retrieval_eval.github.payload import number_at, text_at, value_at
from retrieval_eval.github.pulls import ApiError, PullRequestApi
from retrieval_eval.github.runner import NotWritten, RunnerEnvironment, Written

SCHEMA_VERSION = 1
BODY_FILE = "comment.md"
FACTS_FILE = "comment.json"

FACTS_LIMIT_BYTES = 4096
BODY_LIMIT_BYTES = 4 * BODY_LIMIT
"""No comment that GitHub takes needs more in UTF-8."""

_PROVENANCE = "\n\n<sub>measured by the pull request's own workflow run; posted unchecked</sub>\n"


@dataclass(frozen=True, slots=True)
class Handover:
    """What the folder says: a body without marker, and what it claims to be about."""

    number: int
    head_sha: str
    report_id: str
    body: str


def write_handover(folder: Path, handover: Handover) -> Written | NotWritten:
    """Write the two files into `folder`, made where missing; give it a name without a leading dot.

    `actions/upload-artifact` leaves hidden files out.
    """
    facts = {
        "schema_version": SCHEMA_VERSION,
        "number": handover.number,
        "head_sha": handover.head_sha,
        "report_id": handover.report_id,
    }
    body = handover.body.encode("utf-8", "replace")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / BODY_FILE).write_bytes(body)
        (folder / FACTS_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        return NotWritten(f"the folder of the comment: {error.strerror}")
    return Written(len(body))


def read_handover(folder: Path) -> Handover | Skipped | Refused:
    """Read a folder that a stranger may have written: two plain files, small, strict JSON, nothing else looked at.

    A folder that is not there or empty is `Skipped`: the measuring run posted its comment itself.
    """
    if folder.is_symlink():
        return Refused(f"{folder.name}: is a link, expected a folder")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return Skipped("there is no comment to publish: the measuring run posted its own, or did not finish")
    try:
        facts = _facts(_read(folder / FACTS_FILE, FACTS_LIMIT_BYTES))
        body = _read(folder / BODY_FILE, BODY_LIMIT_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        return Refused(f"{BODY_FILE}: not UTF-8")
    except ValueError as error:
        return Refused(str(error))
    return replace(facts, body=body)


def publish(
    environment: RunnerEnvironment,
    api: PullRequestApi | None,
    folder: Path,
    report_ids: Sequence[str],
    sleep: Callable[[float], None],
) -> Outcome:
    """Post the comment of `folder` on the pull request that the `workflow_run` event is about.

    The number in the folder is only a claim: the pull request must be open here, and its head (commit, branch,
    repository) be what the event says was measured. `report_ids` limits which comments may be written; empty: any.
    """
    handover = read_handover(folder)
    if not isinstance(handover, Handover):
        return handover
    misplaced = _misplaced(environment, handover, report_ids)
    if misplaced:
        return Refused(misplaced)
    if api is None:
        return Refused(NO_TOKEN)
    pull = _verified(environment, api, handover)
    if not isinstance(pull, PullRequest):
        return pull
    run = value_at(environment.event, "workflow_run")
    draft = Draft(
        pull=pull,
        report_id=handover.report_id,
        run_id=number_at(run, "id"),
        run_attempt=number_at(run, "run_attempt") or 1,
        body=_silenced(handover.body) + (_PROVENANCE if pull.is_fork else ""),
    )
    return upsert(api, draft, sleep)


def _misplaced(environment: RunnerEnvironment, handover: Handover, report_ids: Sequence[str]) -> str:
    """Say what is wrong with the folder for this run; "" where nothing is."""
    run = value_at(environment.event, "workflow_run")
    if environment.event_name != "workflow_run" or not number_at(run, "id"):
        return environment.event_problem or "mode: publish works in a workflow_run workflow only"
    if report_ids and handover.report_id not in report_ids:
        return f"the folder is for the comment {handover.report_id}, expected {', '.join(report_ids)}"
    if handover.head_sha != text_at(run, "head_sha"):
        return "the folder is about another commit than the measuring run"
    return ""


def _verified(environment: RunnerEnvironment, api: PullRequestApi, handover: Handover) -> PullRequest | Stale | Refused:
    run = value_at(environment.event, "workflow_run")
    try:
        pull = api.pull(handover.number)
    except ApiError as error:
        return Refused(
            f"pull request {handover.number} cannot be read ({error}) (hint: permissions: pull-requests: write)"
        )
    measured = (text_at(run, "head_repository", "full_name"), text_at(run, "head_branch"))
    if (pull.head_repository, pull.head_ref) != measured or pull.base_repository != environment.repository:
        return Refused(f"pull request {handover.number} is not of the branch that was measured")
    if not pull.is_open:
        return Stale(f"pull request {handover.number} is closed")
    if pull.head_sha != handover.head_sha:
        return Stale("the pull request has a newer commit than the measured one")
    return PullRequest(pull.number, pull.head_sha, is_fork=pull.head_repository != pull.base_repository)


def _read(path: Path, limit_bytes: int) -> bytes:
    """Read a plain file; raises ValueError for links, pipes, folders, missing and large ones."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ValueError(f"{path.name}: cannot be opened ({error.strerror}), expected a plain file") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError(f"{path.name}: expected a plain file")
        data = os.read(handle, limit_bytes + 1)
    finally:
        os.close(handle)
    if len(data) > limit_bytes:
        raise ValueError(f"{path.name}: larger than {limit_bytes:,} bytes")
    return data


def _facts(data: bytes) -> Handover:
    """Check every field; raises ValueError with a sentence."""
    try:
        facts = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        raise ValueError(f"{FACTS_FILE}: not strict JSON") from None
    expected = {"schema_version", "number", "head_sha", "report_id"}
    if not isinstance(facts, dict) or set(facts) != expected:
        raise ValueError(f"{FACTS_FILE}: expected the fields {', '.join(sorted(expected))} and no others")
    if type(facts["schema_version"]) is not int or facts["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"{FACTS_FILE}: written by another version, expected schema_version {SCHEMA_VERSION}")
    number, head_sha, report_id = number_at(facts, "number"), text_at(facts, "head_sha"), text_at(facts, "report_id")
    if not 0 < number < 2**31:
        raise ValueError(f"{FACTS_FILE}: number: expected the number of a pull request")
    if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", head_sha):
        raise ValueError(f"{FACTS_FILE}: head_sha: expected a commit")
    if not is_report_id(report_id):
        raise ValueError(f"{FACTS_FILE}: report_id: expected letters, digits, dot, underscore and dash")
    return Handover(number, head_sha, report_id, body="")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


def _silenced(body: str) -> str:
    """Break mentions with a zero-width space: nobody is notified in the name of our bot. Our own bodies hold none."""
    return re.sub(r"@(?=\w)", "@\u200b", body)
