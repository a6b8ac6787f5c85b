"""Where a finished report goes: its file, the pull-request comment, the job summary, the step's outputs.

Owns the order and what a failure costs: a warning and a line of the report, never the numbers. Measures nothing,
formats nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from errno import EISDIR
from typing import Any

from retrieval_eval.action.job import Job, with_warnings
from retrieval_eval.action.preparation import Hit
from retrieval_eval.errors import InputError
from retrieval_eval.github import comment, publish
from retrieval_eval.github.comment import Draft, Outcome, Posted, Refused, Unchanged, Wanted
from retrieval_eval.github.events import PullRequest, pull_request_of
from retrieval_eval.github.marker import report_id_of
from retrieval_eval.github.pulls import PullRequestApi
from retrieval_eval.github.runner import SUMMARY_MARGIN_BYTES, NotWritten, append_summary, set_outputs
from retrieval_eval.report import markdown

Document = dict[str, Any]

OUTPUTS = {
    "report-json": "Path of the report JSON, relative to the workspace.",
    "recall-at-1": "Recall@1 of the headline lane, overall, from 0 to 1; empty where `k` leaves it out.",
    "recall-at-5": "The same at 5.",
    "recall-at-10": "The same at 10.",
    "n": "How many questions that is the mean of.",
    "cache-hit": "`true` where the Actions cache held this data file embedded with this model, else `false`.",
    "cache-matched-key": "Key of the entry that was restored; empty where none was.",
    "comment-url": "Address of the pull-request comment; empty where there is none.",
    "comment-folder": "Folder of a comment that could not be posted, for `mode: publish`; empty where there is none.",
    "degraded": "What did not work beside the numbers, one reason a line; empty where all did.",
}
"""Every output of the action and its description."""


def deliver(job: Job, document: Document, hit: Hit) -> None:
    """Hand out a report. Raises `InputError` only where its file cannot be written."""
    document = with_warnings(document, job.degraded)
    with job.log.group("Report"):
        _write(job, document)
    outputs = _figures(document) | {
        "report-json": job.settings.report_path,
        "cache-hit": str(hit.is_exact).lower(),
        "cache-matched-key": hit.matched_key,
    }
    with job.log.group("Comment") as stage:
        said, made = _comment(job, document)
        stage.figures = said
    _summary(job, with_warnings(document, job.degraded))
    if job.degraded:
        _write(job, with_warnings(document, job.degraded))
    tell(job, outputs | made)


def publish_comment(job: Job) -> None:
    """`mode: publish`: post what another run handed over."""
    ids = [report_id_of(job.settings.report_id)] if job.settings.report_id else []
    with job.log.group("Publish the comment") as stage:
        outcome = publish.publish(job.environment, _api(job), job.comment_folder, ids, job.sleep)
        stage.figures = _said(job, outcome)
    tell(job, {"comment-url": _url(outcome)})


def tell(job: Job, outputs: Mapping[str, str]) -> None:
    """Set every output; those that `outputs` lacks are empty."""
    values = {name: outputs.get(name, "") for name in OUTPUTS} | {"degraded": "\n".join(job.degraded)}
    written = set_outputs(job.environment.output_path, values)
    if isinstance(written, NotWritten):
        job.degrade(f"the outputs were not set: {written.reason}")


def _figures(document: Document) -> dict[str, str]:
    overall = document["lanes"][document["headline"]["lane"]]["overall"]
    recall = {f"recall-at-{k}": f"{found['fraction']:.4f}" for k, found in overall["recall"].items()}
    return {name: value for name, value in recall.items() if name in OUTPUTS} | {"n": str(overall["n"])}


def _write(job: Job, document: Document) -> None:
    with _writable(job):
        job.report_file.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def make_room(job: Job) -> None:
    """Make the folder of the report JSON. Raises `InputError` where no file can be put there: before the work."""
    with _writable(job):
        job.report_file.parent.mkdir(parents=True, exist_ok=True)
        if job.report_file.is_dir():
            raise IsADirectoryError(EISDIR, "is a folder")


@contextmanager
def _writable(job: Job) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f"input 'report-path': {job.settings.report_path}"
        raise InputError("cannot be written", where=where, got=error.strerror or str(error)) from error


def _summary(job: Job, document: Document) -> None:
    if not job.settings.summary:
        return
    path = job.environment.summary_path
    used_bytes = path.stat().st_size if path is not None and path.is_file() else 0
    # The margin is what `append_summary` keeps free as well.
    text = markdown.summary(document, used_bytes=used_bytes + SUMMARY_MARGIN_BYTES)
    written = append_summary(path, text) if text else NotWritten("earlier steps left no room in it")
    if isinstance(written, NotWritten):
        job.degrade(f"the job summary was not written: {written.reason}")
    else:
        job.log.info(f"Summary: {written.size_bytes} bytes")


def _comment(job: Job, document: Document) -> tuple[str, dict[str, str]]:
    """What came of it in a sentence part, and the outputs about it."""
    wanted = comment.wanted(job.settings.comment, document)
    if wanted is Wanted.NOTHING:
        return "comment: off", {}
    api = _api(job)
    pull = pull_request_of(job.environment, api, job.settings.pr_number)
    if not isinstance(pull, PullRequest):
        return f"none: {pull.reason}", {}
    draft = _draft(job, document, pull, is_update_only=wanted is Wanted.UPDATE_ONLY)
    outcome = comment.upsert(api, draft, job.sleep)
    said, made = _said(job, outcome), {"comment-url": _url(outcome)}
    if isinstance(outcome, Refused) and draft.pull.head_sha:
        handover = publish.Handover(pull.number, pull.head_sha, draft.report_id, draft.body)
        written = publish.write_handover(job.comment_folder, handover)
        if isinstance(written, NotWritten):
            job.degrade(f"the comment was not put aside either: {written.reason}")
        else:
            made["comment-folder"] = job.settings.comment_folder
    return said, made


def _draft(job: Job, document: Document, pull: PullRequest, *, is_update_only: bool) -> Draft:
    environment = job.environment
    name = job.settings.report_id or f"{environment.workflow}/{environment.job}"
    draft = Draft(
        pull, report_id_of(name), environment.run_id, environment.run_attempt, body="", is_update_only=is_update_only
    )
    links = markdown.Links(run_url=environment.run_url)
    drawn = markdown.comment(document, str(draft.marker), links=links)
    return replace(draft, body=drawn.partition("\n")[2])


def _api(job: Job) -> PullRequestApi | None:
    return comment.connect(job.environment, sleep=job.sleep, clock=job.wall_clock)


def _said(job: Job, outcome: Outcome) -> str:
    if isinstance(outcome, Refused):
        job.degrade(outcome.reason)
    if isinstance(outcome, Posted):
        return f"{'posted' if outcome.is_created else 'updated'}: {outcome.url}"
    return f"unchanged: {outcome.url}" if isinstance(outcome, Unchanged) else outcome.reason


def _url(outcome: Outcome) -> str:
    return outcome.url if isinstance(outcome, Posted | Unchanged) else ""
