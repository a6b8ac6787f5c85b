"""What one request does when things go wrong: repeats, waits, secrets."""

from __future__ import annotations

import subprocess
import sys

import pytest
from github import GithubException

from retrieval_eval.github.api import TRIES
from retrieval_eval.github.pulls import ApiError, Comment, Trouble

TOKEN = "ghs_0123456789secret"
COMMENT = Comment(1, "IC_1", "body", "", is_by_bot=True)


@pytest.fixture
def api(standin, connect_to):
    return connect_to(standin)


@pytest.fixture
def answering(api, monkeypatch):
    """Let every request of the API end in one exception; returns the API and the requests."""

    def make(error: Exception):
        sent: list[str] = []

        def fail(method: str, url: str, **options: object) -> None:
            sent.append(f"{method} {url}")
            raise error

        monkeypatch.setattr(api._requester, "requestJsonAndCheck", fail)
        return api, sent

    return make


@pytest.mark.parametrize("fault", ["server", "cut"])
def test_creation_is_never_repeated_on_an_unclear_answer(standin, api, sleeps, fault: str) -> None:
    standin.fault(fault, -1)
    with pytest.raises(ApiError) as failure:
        api.create(7, "body")
    assert failure.value.trouble is Trouble.UNCERTAIN
    assert len(standin.requests("POST")) == 1
    assert sleeps == []


@pytest.mark.parametrize("act", ["comments", "pull", "edit", "delete"])
def test_what_can_be_repeated_is_tried_three_times(standin, api, sleeps, act: str) -> None:
    standin.fault("server", -1)
    arguments = {"comments": (7,), "pull": (7,), "edit": (COMMENT, "x"), "delete": (COMMENT,)}[act]
    with pytest.raises(ApiError):
        getattr(api, act)(*arguments)
    assert len(standin.requests()) == TRIES
    assert sleeps == [1.0, 2.0]


def test_limit_that_ends_in_an_hour_is_not_waited_for(answering, sleeps) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}
    api, sent = answering(GithubException(403, {"message": "API rate limit exceeded"}, headers))
    with pytest.raises(ApiError) as failure:
        api.pull(7)
    assert failure.value.trouble is Trouble.LIMITED
    assert len(sent) == 1
    assert sleeps == []


def test_waiting_of_one_run_is_bounded_over_all_requests(answering, sleeps) -> None:
    api, _ = answering(GithubException(429, {"message": "slow down"}, {"Retry-After": "25"}))
    for _ in range(5):
        with pytest.raises(ApiError):
            api.pull(7)
    assert sleeps == [25.0, 25.0]


def test_token_in_an_answer_is_blotted_out_and_no_cause_is_kept(answering) -> None:
    api, _ = answering(
        GithubException(422, {"message": f"bad {TOKEN}\n::error::x", "errors": [{"message": "why"}]}, {})
    )
    with pytest.raises(ApiError) as failure:
        api.create(7, "body")
    assert str(failure.value) == "422: bad *** ::error::x why"
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None


@pytest.mark.parametrize("answer", [None, "text", {}, {"id": "1"}, [1], {"message": "ok"}])
def test_answers_that_make_no_sense_are_failures(api, monkeypatch, answer: object) -> None:
    monkeypatch.setattr(api._requester, "requestJsonAndCheck", lambda *a, **k: ({}, answer))
    for act in (
        lambda: api.comments(7),
        lambda: api.pull(7),
        lambda: api.create(7, "x"),
        lambda: api.pulls_of_commit("a"),
    ):
        with pytest.raises(ApiError) as failure:
            act()
        assert failure.value.trouble is Trouble.UNCERTAIN


def test_standing_is_read_from_graphql(api, monkeypatch) -> None:
    nodes = [{"id": "IC_1", "viewerDidAuthor": True, "isMinimized": True}, None, {"id": "IC_9"}]
    monkeypatch.setattr(api._requester, "requestJsonAndCheck", lambda *a, **k: ({}, {"data": {"nodes": nodes}}))
    (standing,) = api.standing([COMMENT]).values()
    assert standing.is_ours
    assert standing.is_hidden


def test_deleting_what_is_gone_is_no_failure(standin, api) -> None:
    api.delete(COMMENT)
    assert standin.requests("DELETE") == ["DELETE /repos/acme/widgets/issues/comments/1 0"]


def test_pulls_are_found_by_commit_and_by_branch(api) -> None:
    (by_commit,) = api.pulls_of_commit("a" * 40)
    (by_branch,) = api.open_pulls_from("acme", "change")
    assert by_commit == by_branch == api.pull(7)
    assert by_commit.is_open
    assert by_commit.head_repository == by_commit.base_repository == "acme/widgets"


def test_pygithub_is_loaded_by_its_home_module_alone() -> None:
    code = (
        "import sys; from retrieval_eval.github import comment, events, publish, runner, log;"
        "sys.exit('github' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
