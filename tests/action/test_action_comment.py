"""Comment, summary and outputs of whole runs, for every event and whatever GitHub answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TOKEN = "ghs_" + "t0ken" * 8


def numbers_came_out(done: Any) -> None:
    assert done.code == 0, done.log
    assert done.outputs["n"] == "4"
    assert float(done.outputs["recall-at-5"]) == 1.0
    assert done.summary.startswith("### Retrieval: recall@5 1.000")
    shown = done.log.replace(f"::add-mask::{TOKEN}\n", "")
    assert TOKEN not in shown + done.summary + str(done.report) + str(done.outputs)


def test_a_comment_is_posted_once_and_then_updated(runner, comments, make_dataset) -> None:
    first = runner.step({"cache": "false"})
    numbers_came_out(first)
    assert first.outputs["comment-url"].startswith("https://")
    (body,) = comments.bodies()
    assert body.startswith("<!-- retrieval-eval:Retrieval-measure-")
    assert "recall@5 1.000" in body

    runner.write(make_dataset()[:2])
    assert runner.step({"cache": "false"}).outputs["comment-url"] == first.outputs["comment-url"]
    (updated,) = comments.bodies()
    assert "n = 2" in updated


def test_reports_with_ids_of_their_own_stand_side_by_side(runner, comments) -> None:
    for name in ("hybrid", "hybrid", "bm25 only"):
        numbers_came_out(runner.step({"report-id": name, "cache": "false"}))
    assert len(comments.bodies()) == 2


def test_comment_off_sends_nothing(runner, comments) -> None:
    numbers_came_out(runner.step({"comment": "off", "cache": "false"}))
    assert comments.state()["log"] == []


def test_comment_changes_is_silent_where_there_is_nothing_to_compare(runner, comments) -> None:
    numbers_came_out(runner.step({"comment": "changes", "cache": "false"}))
    assert comments.bodies() == []


def test_a_comparison_that_moves_is_posted_under_changes(runner, comments) -> None:
    done = runner.step({"comment": "changes", "compare-retriever": "builtin:bm25", "cache": "false", "k": "1"})
    assert done.code == 0, done.log
    assert done.report["comparison"]["base"] == "builtin:bm25"
    assert len(comments.bodies()) == bool(done.report["comparison"]["lanes"]["model-dependent"]["moved"])


def test_a_report_of_an_earlier_run_is_compared_with(runner, comments, make_dataset) -> None:
    base = runner.workspace / "base.json"
    runner.step({"cache": "false"})
    (runner.workspace / "retrieval-report.json").rename(base)
    same = runner.step({"compare-report": "base.json", "cache": "false"})
    assert same.report["comparison"]["comparable"] is True
    runner.write(make_dataset()[:3])
    other = runner.step({"compare-report": "base.json", "cache": "false"})
    assert other.report["comparison"]["comparable"] is False
    assert other.code == 0


@pytest.mark.parametrize("fault", ["read_only", "no_access", "not_found", "rate", "secondary", "server", "locked"])
def test_trouble_with_the_comment_is_one_warning_and_a_folder(runner, comments, make_pull_event, fault) -> None:
    runner.event("pull_request", make_pull_event("stranger/widgets"))
    comments.fault(fault)
    done = runner.step({"cache": "false"})
    numbers_came_out(done)
    (warning,) = done.annotations("warning")
    assert "the comment was not posted" in warning
    (reason,) = done.outputs["degraded"].splitlines()
    assert done.report["warnings"] == [reason]
    assert done.outputs["comment-folder"] == "retrieval-comment"
    assert done.outputs["comment-url"] == ""
    folder = runner.workspace / "retrieval-comment"
    assert sorted(path.name for path in folder.iterdir()) == ["comment.json", "comment.md"]


def test_a_forks_refusal_says_what_helps(runner, comments, make_pull_event) -> None:
    runner.event("pull_request", make_pull_event("stranger/widgets"))
    comments.fault("read_only")
    (warning,) = runner.step({"cache": "false"}).annotations("warning")
    assert "pull request from a fork" in warning
    assert "pull-requests: write" in warning
    assert "workflow_run" in warning


def test_what_a_fork_left_is_posted_by_the_second_workflow(runner, comments, make_pull_event) -> None:
    runner.event("pull_request", make_pull_event("acme/widgets"))
    comments.fault("read_only")
    runner.step({"cache": "false", "report-id": "mine"})
    comments.fault("")
    run = {
        "id": 77,
        "run_attempt": 1,
        "head_sha": "a" * 40,
        "head_branch": comments.head_branch(),
        "head_repository": {"full_name": "acme/widgets"},
        "pull_requests": [],
    }
    runner.event("workflow_run", {"workflow_run": run, "repository": {"full_name": "acme/widgets"}})
    done = runner.step({"mode": "publish", "dataset": "", "report-id": "mine"})
    assert done.code == 0, done.log
    assert done.outputs["comment-url"].startswith("https://"), done.log
    (body,) = comments.bodies()
    assert "n = 4" in body
    refused = runner.step({"mode": "publish", "dataset": "", "report-id": "another"})
    assert refused.code == 0
    assert "expected another" in refused.outputs["degraded"]


def test_without_a_token_nothing_is_sent(runner, comments) -> None:
    done = runner.step({"github-token": "", "cache": "false"})
    numbers_came_out(done)
    assert comments.state()["log"] == []
    assert "there is no token" in done.outputs["degraded"]


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", {"ref": "refs/heads/main"}),
        ("workflow_dispatch", {"inputs": {}}),
        ("schedule", {"schedule": "0 0 * * *"}),
        ("merge_group", {"merge_group": {"head_ref": "refs/heads/gh-readonly-queue/main/pr-7-" + "a" * 40}}),
        ("issue_comment", {"issue": {"number": 7}}),
        ("pull_request", {}),
        ("release", None),
    ],
)
def test_no_pull_request_is_a_plain_line_and_no_warning(runner, event, payload) -> None:
    runner.event(event, payload)
    done = runner.step({"cache": "false"})
    numbers_came_out(done)
    assert done.annotations("warning") == []
    assert "\nComment: " in done.log


def test_the_event_file_may_be_missing(runner) -> None:
    (runner.folder / "event.json").unlink()
    numbers_came_out(runner.step({"cache": "false"}))


@pytest.mark.parametrize("used", [0, 900_000, 1_000_000, 1_040_000])
def test_the_summary_never_passes_what_github_takes(runner, used: int) -> None:
    with_text = runner.environment({"cache": "false"}, {})
    summary = Path(with_text["GITHUB_STEP_SUMMARY"])
    process = runner.start({"cache": "false"})
    summary.write_bytes(b"x" * used)
    log, _ = process.communicate(timeout=60)
    assert process.returncode == 0, log
    assert used < summary.stat().st_size <= 1024 * 1024 or "the job summary was not written" in log


def test_summary_false_writes_none(runner) -> None:
    done = runner.step({"summary": "false", "cache": "false"})
    assert (done.code, done.summary) == (0, "")


@pytest.mark.parametrize("name", ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"])
def test_a_file_that_takes_nothing_is_a_warning(runner, name) -> None:
    done = runner.step({"cache": "false"}, **{name: "/nowhere/file"})
    assert done.code == 0
    assert name in "".join(done.annotations("warning"))
    assert (runner.workspace / "retrieval-report.json").is_file()


def test_cut_offs_that_were_not_measured_have_empty_outputs(runner) -> None:
    done = runner.step({"k": "1,3", "cache": "false"})
    assert (done.outputs["recall-at-5"], done.outputs["recall-at-10"]) == ("", "")
    assert done.outputs["recall-at-1"]
