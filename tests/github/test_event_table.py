from __future__ import annotations

from dataclasses import replace

import pytest

from retrieval_eval.github.events import NoPullRequest, PullRequest, pull_request_of
from retrieval_eval.github.pulls import ApiError, Pull, Trouble

HEAD = "a" * 40
OPEN = Pull(7, True, HEAD, "change", "acme/widgets", "acme/widgets", "c" * 40)
FORK = replace(OPEN, number=9, head_repository="stranger/widgets")


class Lookup:
    """Answers every question with the same pull requests and counts the questions."""

    def __init__(self, *pulls: Pull) -> None:
        self.pulls, self.asked = pulls, []

    def pulls_of_commit(self, sha: str) -> list[Pull]:
        self.asked.append(sha)
        return list(self.pulls)

    def open_pulls_from(self, owner: str, branch: str) -> list[Pull]:
        self.asked.append(f"{owner}:{branch}")
        return list(self.pulls)


def run_event(pulls: object = (), repository: str | None = "acme/widgets", branch: str = "change") -> dict[str, object]:
    head = {"full_name": repository} if repository else None
    run = {"id": 3, "head_sha": HEAD, "head_branch": branch, "head_repository": head, "pull_requests": list(pulls)}
    return {"workflow_run": run}


@pytest.mark.parametrize(
    "name", ["pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment"]
)
@pytest.mark.parametrize("is_fork", [False, True])
def test_pull_request_events_tell_all_themselves(make_environment, pull_event, name: str, is_fork: bool) -> None:
    event = pull_event(head_repository="stranger/widgets" if is_fork else "acme/widgets", sha="d" * 40)
    lookup = Lookup()
    assert pull_request_of(make_environment(name, event), lookup) == PullRequest(7, "d" * 40, is_fork)
    assert lookup.asked == []


@pytest.mark.parametrize(
    ("name", "event", "pulls", "expected"),
    [
        ("push", {}, [OPEN], PullRequest(7, HEAD, False)),
        ("push", {}, [FORK], PullRequest(9, HEAD, True)),
        ("push", {}, [], "no open pull request"),
        ("push", {}, [replace(OPEN, is_open=False)], "no open pull request"),
        ("push", {}, [replace(OPEN, head_sha="e" * 40)], "no open pull request"),
        ("push", {}, [replace(OPEN, base_repository="else/where")], "no open pull request"),
        ("push", {}, [replace(OPEN, head_sha="e" * 40, merge_sha=HEAD)], PullRequest(7, "e" * 40, False)),
        ("push", {}, [OPEN, replace(OPEN, number=8, head_ref="other")], PullRequest(7, HEAD, False)),
        ("push", {}, [OPEN, replace(OPEN, number=8)], "several open pull requests"),
        ("workflow_dispatch", {"inputs": {}}, [OPEN], PullRequest(7, HEAD, False)),
        ("workflow_dispatch", {"inputs": {}}, [], "no open pull request"),
        ("schedule", {"schedule": "0 3 * * *"}, [], "no open pull request"),
        ("issue_comment", {"issue": {"number": 7, "pull_request": {"url": "x"}}}, [], PullRequest(7, "", False)),
        ("issue_comment", {"issue": {"number": 7}}, [], "on an issue"),
        ("merge_group", {"merge_group": {"head_ref": "refs/heads/gh-readonly-queue/main/pr-7-" + HEAD}}, [], "several"),
        ("workflow_run", run_event([{"number": 7, "head": {"sha": HEAD}}]), [], PullRequest(7, HEAD, False)),
        ("workflow_run", run_event([{"number": 7, "head": {"sha": "e" * 40}}]), [OPEN], PullRequest(7, HEAD, False)),
        ("workflow_run", run_event(repository="stranger/widgets"), [FORK], PullRequest(9, HEAD, True)),
        ("workflow_run", run_event(repository="stranger/widgets"), [OPEN], "no open pull request"),
        ("workflow_run", run_event(repository="stranger/widgets"), [replace(FORK, head_sha="e" * 40)], "no open"),
        ("workflow_run", run_event(repository=None), [FORK], "branch that was measured is gone"),
        ("workflow_run", {"workflow_run": {}}, [FORK], "names no commit"),
    ],
)
def test_event_table(make_environment, name: str, event: dict, pulls: list[Pull], expected: PullRequest | str) -> None:
    found = pull_request_of(make_environment(name, event), Lookup(*pulls))
    if isinstance(expected, PullRequest):
        assert found == expected
    else:
        assert isinstance(found, NoPullRequest)
        assert expected in found.reason


def test_fork_in_workflow_run_is_looked_up_by_owner_and_branch(make_environment) -> None:
    lookup = Lookup(FORK)
    pull_request_of(make_environment("workflow_run", run_event(repository="stranger/widgets")), lookup)
    assert lookup.asked == ["stranger:change"]


def test_explicit_number_wins_and_keeps_the_head_only_of_its_own_event(make_environment, pull_event) -> None:
    environment = make_environment("pull_request", pull_event(number=7))
    assert pull_request_of(environment, None, pr_number=7) == PullRequest(7, HEAD, False)
    assert pull_request_of(environment, None, pr_number=8) == PullRequest(8, "", False)
    assert pull_request_of(make_environment("merge_group", {}), None, pr_number=3) == PullRequest(3, "", False)


def test_deleted_branch_has_no_commit_and_asks_nothing(make_environment) -> None:
    lookup = Lookup(OPEN)
    assert isinstance(pull_request_of(make_environment("push", {}, SHA="0" * 40), lookup), NoPullRequest)
    assert lookup.asked == []


@pytest.mark.parametrize("name", ["push", "workflow_run"])
def test_without_a_token_nothing_is_looked_up(make_environment, name: str) -> None:
    found = pull_request_of(make_environment(name, run_event(repository="stranger/widgets")), None)
    assert found.reason.startswith("without a token")


@pytest.mark.parametrize("name", ["pull_request", "issue_comment", "workflow_run", "push", "nonsense", ""])
@pytest.mark.parametrize(
    "event", [None, [], 3, {}, {"pull_request": []}, {"issue": "x"}, {"workflow_run": {"head_sha": 1}}]
)
def test_events_of_any_shape_end_in_a_reason(make_environment, name: str, event: object) -> None:
    found = pull_request_of(make_environment(name, event), Lookup())
    assert isinstance(found, NoPullRequest)
    assert found.reason


def test_failed_lookup_is_a_reason(make_environment) -> None:
    class Broken(Lookup):
        def pulls_of_commit(self, sha: str) -> list[Pull]:
            raise ApiError(Trouble.UNCERTAIN, 502, "HTTP 502")

    found = pull_request_of(make_environment("push", {}), Broken())
    assert found == NoPullRequest("the pull requests of this commit could not be listed (502: HTTP 502)")
