"""The folder between a run that may not write and the workflow that may."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from retrieval_eval.github.comment import NO_TOKEN, Posted, Refused, Skipped
from retrieval_eval.github.publish import BODY_FILE, FACTS_FILE, Handover, publish, read_handover, write_handover
from retrieval_eval.github.runner import NotWritten, Written

HEAD = "a" * 40
GOOD = Handover(7, HEAD, "demo", "### Retrieval\n\nrecall 0.9, thanks @octocat\n")
FACTS = {"schema_version": 1, "number": 7, "head_sha": HEAD, "report_id": "demo"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_handover(tmp_path / "retrieval-comment", GOOD)
    return tmp_path / "retrieval-comment"


@pytest.fixture
def in_workflow_run(make_environment):
    def make(head_sha: str = HEAD, repository: str = "stranger/widgets", branch: str = "change", **run: object):
        event = {
            "workflow_run": {
                "id": 432,
                "run_attempt": 2,
                "head_sha": head_sha,
                "head_branch": branch,
                "head_repository": {"full_name": repository},
                "pull_requests": [],
                **run,
            }
        }
        return make_environment("workflow_run", event)

    return make


@pytest.fixture
def fork_api(fake_api):
    fake_api.at = replace(fake_api.at, head_repository="stranger/widgets")
    return fake_api


def test_folder_reads_back_as_written(folder: Path) -> None:
    assert read_handover(folder) == GOOD
    assert not any(path.name.startswith(".") for path in folder.iterdir())


def test_folder_that_cannot_be_written_is_a_value(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert isinstance(write_handover(tmp_path / "file", GOOD), NotWritten)
    assert isinstance(write_handover(tmp_path / "new" / "folder", GOOD), Written)


def test_missing_or_empty_folder_is_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert isinstance(read_handover(tmp_path / "none"), Skipped)
    assert isinstance(read_handover(tmp_path / "empty"), Skipped)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ("{", "strict JSON"),
        ("[]", "expected the fields"),
        ("[" * 4000, "strict JSON"),
        ('{"schema_version": 1, "schema_version": 1}', "strict JSON"),
        (FACTS | {"more": 1}, "no others"),
        ({"number": 7}, "expected the fields"),
        (FACTS | {"schema_version": 2}, "another version"),
        (FACTS | {"schema_version": True}, "another version"),
        (FACTS | {"number": "7"}, "number"),
        (FACTS | {"number": True}, "number"),
        (FACTS | {"number": -7}, "number"),
        (FACTS | {"number": 10**12}, "number"),
        (FACTS | {"head_sha": "HEAD"}, "head_sha"),
        (FACTS | {"head_sha": HEAD + "\n"}, "head_sha"),
        (FACTS | {"report_id": "demo -->\n::error::x"}, "report_id"),
        (FACTS | {"report_id": ["demo"]}, "report_id"),
        (" " * 5000, "larger than"),
    ],
)
def test_facts_of_a_stranger_are_checked(folder: Path, facts: object, words: str) -> None:
    (folder / FACTS_FILE).write_text(facts if isinstance(facts, str) else json.dumps(facts))
    outcome = read_handover(folder)
    assert isinstance(outcome, Refused)
    assert words in outcome.reason
    assert "::error" not in outcome.reason


def test_body_of_a_stranger_is_bounded_utf8(folder: Path) -> None:
    (folder / BODY_FILE).write_bytes(b"\xff\xfe")
    assert "not UTF-8" in read_handover(folder).reason
    (folder / BODY_FILE).write_bytes(b"x" * 300_000)
    assert "larger than" in read_handover(folder).reason


@pytest.mark.parametrize("name", [BODY_FILE, FACTS_FILE])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "missing"])
def test_only_plain_files_are_opened(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text((folder / name).read_text())
    (folder / name).unlink()
    if kind == "link":
        (folder / name).symlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(folder / name)
    elif kind == "folder":
        (folder / name).mkdir()
    outcome = read_handover(folder)
    assert isinstance(outcome, Refused)
    assert "plain file" in outcome.reason


def test_folder_that_is_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert "is a link" in read_handover(tmp_path / "link").reason


def test_comment_of_a_fork_is_posted_under_the_measuring_run(folder, in_workflow_run, fork_api, sleeps) -> None:
    outcome = publish(in_workflow_run(), fork_api, folder, ["demo"], sleeps.append)
    assert isinstance(outcome, Posted)
    (comment,) = fork_api.stored
    assert comment.body.startswith(f"<!-- retrieval-eval:demo run=432.2 head={HEAD} -->\n### Retrieval\n")
    assert "@octocat" not in comment.body
    assert "posted unchecked" in comment.body


def test_marker_in_a_strangers_body_is_never_the_first_line(folder, in_workflow_run, fork_api, sleeps) -> None:
    other = fork_api.add(f"<!-- retrieval-eval:other run=1.1 head={HEAD} -->\nleave me")
    (folder / BODY_FILE).write_text(f"<!-- retrieval-eval:other run=999999.1 head={HEAD} -->\nmine now")
    publish(in_workflow_run(), fork_api, folder, [], sleeps.append)
    assert fork_api.stored[0] == other
    assert fork_api.stored[1].body.startswith("<!-- retrieval-eval:demo run=432.2")


def test_own_branch_gets_no_note(folder, in_workflow_run, fake_api, sleeps) -> None:
    publish(in_workflow_run(repository="acme/widgets"), fake_api, folder, [], sleeps.append)
    assert "posted unchecked" not in fake_api.stored[0].body


@pytest.mark.parametrize(
    ("claim", "run", "expected"),
    [
        ({"number": 8}, {}, "Refused: pull request 8 cannot be read"),
        ({"head_sha": "b" * 40}, {}, "Refused: another commit"),
        ({}, {"head_sha": "b" * 40}, "Refused: another commit"),
        ({}, {"repository": "mallory/widgets"}, "Refused: not of the branch"),
        ({}, {"branch": "other"}, "Refused: not of the branch"),
        ({"head_sha": "b" * 40}, {"head_sha": "b" * 40}, "Stale: newer commit"),
        ({"report_id": "theirs"}, {}, "Refused: expected demo"),
        ({}, {"id": None}, "Refused: workflow_run"),
    ],
)
def test_claims_that_do_not_fit_the_run_post_nothing(
    folder, in_workflow_run, fork_api, claim: dict, run: dict, expected: str
) -> None:
    write_handover(folder, replace(GOOD, **claim))
    outcome = publish(in_workflow_run(**run), fork_api, folder, ["demo"], lambda seconds: None)
    kind, _, words = expected.partition(": ")
    assert type(outcome).__name__ == kind
    assert words in outcome.reason
    assert "create" not in fork_api.calls


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"is_open": False}, "closed"),
        ({"base_repository": "else/where"}, "not of the branch"),
        ({"head_repository": ""}, "not of"),
    ],
)
def test_pull_request_that_is_closed_or_elsewhere_gets_nothing(
    folder, in_workflow_run, fork_api, sleeps, change: dict, words: str
) -> None:
    fork_api.at = replace(fork_api.at, **change)
    outcome = publish(in_workflow_run(), fork_api, folder, [], sleeps.append)
    assert words in outcome.reason
    assert "create" not in fork_api.calls


def test_other_events_and_a_missing_token_post_nothing(
    folder, in_workflow_run, make_environment, fork_api, sleeps
) -> None:
    outcome = publish(make_environment("pull_request_target", {}), fork_api, folder, [], sleeps.append)
    assert "workflow_run" in outcome.reason
    assert publish(in_workflow_run(), None, folder, [], sleeps.append) == Refused(NO_TOKEN)
    assert fork_api.calls == []


def test_whole_flow_against_the_stand_in(folder, start_standin, connect_to, in_workflow_run, sleeps) -> None:
    standin = start_standin("--head-repo", "stranger/widgets", "--comments", "134")
    for attempt in (1, 2):
        outcome = publish(in_workflow_run(id=432 + attempt), connect_to(standin), folder, [], sleeps.append)
    assert type(outcome).__name__ == "Unchanged"
    assert len(standin.bots) == 1
