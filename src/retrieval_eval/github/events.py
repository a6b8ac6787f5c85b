"""From an event to the pull request that it is about.

Owns the table of events. Decides from the environment alone where it can, and asks `lookup` where it cannot; sends and
writes nothing itself, and never raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_eval.github.payload import list_at, number_at, text_at, value_at
from retrieval_eval.github.pulls import ApiError, Pull, PullLookup
from retrieval_eval.github.runner import RunnerEnvironment

_TOLD_BY_EVENT = frozenset(
    {
        "pull_request",
        "pull_request_target",
        "pull_request_review",
        "pull_request_review_comment",
        "issue_comment",
        "merge_group",
    }
)
"""Events whose payload decides; every other one knows a commit only and needs a look-up."""

_NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Where the comment belongs. `head_sha` is the measured commit, "" where the event does not tell."""

    number: int
    head_sha: str
    is_fork: bool


@dataclass(frozen=True, slots=True)
class NoPullRequest:
    """There is no pull request to comment on; `reason` is a plain sentence part."""

    reason: str


def pull_request_of(
    environment: RunnerEnvironment, lookup: PullLookup | None, pr_number: int | None = None
) -> PullRequest | NoPullRequest:
    """Find the pull request of this run. `pr_number` (the input) wins; `lookup` is None where there is no token.

    Where several open pull requests fit a commit, the one whose head branch is the pushed branch is taken, else none.
    """
    try:
        return _pull_request_of(environment, lookup, pr_number)
    except ApiError as failure:
        return NoPullRequest(f"the pull requests of this commit could not be listed ({failure})")


def _pull_request_of(
    environment: RunnerEnvironment, lookup: PullLookup | None, pr_number: int | None
) -> PullRequest | NoPullRequest:
    if pr_number is not None:
        return _explicit(environment, pr_number)
    if environment.event_name == "workflow_run":
        return _from_workflow_run(environment, lookup)
    if environment.event_name in _TOLD_BY_EVENT:
        return _from_event(environment)
    return _from_commit(environment, lookup)


def _from_event(environment: RunnerEnvironment) -> PullRequest | NoPullRequest:
    event = environment.event
    if environment.event_name == "merge_group":
        return NoPullRequest("a merge group may hold several pull requests")
    if environment.event_problem:
        return NoPullRequest(environment.event_problem)
    if environment.event_name == "issue_comment":
        number = number_at(event, "issue", "number")
        if not number or value_at(event, "issue", "pull_request") is None:
            return NoPullRequest("the comment is on an issue, not on a pull request")
        return PullRequest(number, head_sha="", is_fork=False)
    number = number_at(event, "pull_request", "number") or number_at(event, "number")
    if not number:
        return NoPullRequest(f"the {environment.event_name} event names no pull request")
    return PullRequest(number, text_at(event, "pull_request", "head", "sha"), environment.is_fork)


def _explicit(environment: RunnerEnvironment, number: int) -> PullRequest:
    head_sha = ""
    if number_at(environment.event, "pull_request", "number") == number:
        head_sha = text_at(environment.event, "pull_request", "head", "sha")
    return PullRequest(number, head_sha, environment.is_fork)


def _from_workflow_run(environment: RunnerEnvironment, lookup: PullLookup | None) -> PullRequest | NoPullRequest:
    """The event lists the pull requests of the repository's own branches; for a fork the list is empty."""
    run = value_at(environment.event, "workflow_run")
    head_sha = text_at(run, "head_sha")
    if not head_sha:
        return NoPullRequest(environment.event_problem or "the workflow_run event names no commit")
    listed = [number_at(pull, "number") for pull in list_at(run, "pull_requests") if _is_at(pull, head_sha)]
    if len(listed) == 1 and listed[0] and not environment.is_fork:
        return PullRequest(listed[0], head_sha, is_fork=False)
    head_repository, branch = text_at(run, "head_repository", "full_name"), text_at(run, "head_branch")
    if not (head_repository and branch):
        return NoPullRequest("the branch that was measured is gone")
    if lookup is None:
        return NoPullRequest("without a token the pull request of this run cannot be looked up")
    found = [
        pull
        for pull in lookup.open_pulls_from(head_repository.split("/")[0], branch)
        if _is_open_here(pull, environment) and (pull.head_sha, pull.head_repository) == (head_sha, head_repository)
    ]
    return _the_only(found, branch)


def _from_commit(environment: RunnerEnvironment, lookup: PullLookup | None) -> PullRequest | NoPullRequest:
    """push, workflow_dispatch, schedule and every event that knows only a commit."""
    sha = environment.sha
    if not sha or sha == _NO_COMMIT:
        return NoPullRequest(f"the {environment.event_name or 'unnamed'} event names no commit")
    if lookup is None:
        return NoPullRequest("without a token the pull request of this commit cannot be looked up")
    found = [
        pull
        for pull in lookup.pulls_of_commit(sha)
        if _is_open_here(pull, environment) and sha in (pull.head_sha, pull.merge_sha)
    ]
    return _the_only(found, environment.ref_name)


def _the_only(found: Sequence[Pull], branch: str) -> PullRequest | NoPullRequest:
    if not found:
        return NoPullRequest("no open pull request has this commit as its head")
    if len(found) > 1:
        found = [pull for pull in found if pull.head_ref == branch]
    if len(found) != 1:
        return NoPullRequest("several open pull requests have this commit as their head")
    pull = found[0]
    return PullRequest(pull.number, pull.head_sha, is_fork=pull.head_repository != pull.base_repository)


def _is_at(pull: object, head_sha: str) -> bool:
    return text_at(pull, "head", "sha") == head_sha


def _is_open_here(pull: Pull, environment: RunnerEnvironment) -> bool:
    return pull.is_open and pull.base_repository == environment.repository
