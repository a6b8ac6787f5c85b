"""The comment against the stand-in of GitHub's API, through PyGithub."""

from __future__ import annotations

import pytest

from retrieval_eval.github.api import LONGEST_WAIT_S, PATIENCE_S
from retrieval_eval.github.comment import Draft, Posted, Refused, Skipped, Stale, Unchanged, upsert
from retrieval_eval.github.events import PullRequest

HEAD = "a" * 40
TOKEN = "ghs_0123456789secret"
CREATE = "POST /repos/acme/widgets/issues/7/comments"
PATCH = "PATCH"


def draft(body: str = "report one", run_id: int = 500, attempt: int = 1, **options: object) -> Draft:
    pull = options.pop("pull", PullRequest(7, HEAD, is_fork=False))
    report_id = options.pop("report_id", "demo")
    return Draft(pull, report_id, run_id, attempt, body, **options)


def test_first_run_creates_and_the_second_updates_in_place(standin, connect_to, sleeps) -> None:
    first = upsert(connect_to(standin), draft(), sleeps.append)
    second = upsert(connect_to(standin), draft("report two", 501), sleeps.append)
    assert isinstance(first, Posted)
    assert first.is_created
    assert isinstance(second, Posted)
    assert not second.is_created
    assert first.url == second.url
    assert standin.bots == [f"<!-- retrieval-eval:demo run=501.1 head={HEAD} -->\nreport two"]
    assert sleeps == []


def test_same_body_sends_no_write(standin, connect_to, sleeps) -> None:
    upsert(connect_to(standin), draft(), sleeps.append)
    again = upsert(connect_to(standin), draft(run_id=501), sleeps.append)
    assert isinstance(again, Unchanged)
    assert standin.requests(PATCH) == []
    assert len(standin.requests(CREATE)) == 1


def test_own_comment_is_found_behind_134_others_and_a_person_who_quotes_it(start_standin, connect_to, sleeps) -> None:
    standin = start_standin("--comments", "134")
    upsert(connect_to(standin), draft(), sleeps.append)
    people = [comment["body"] for comment in standin.comments if comment["user"]["type"] != "Bot"]
    assert "<!-- retrieval-eval:demo" in people[-1]
    upsert(connect_to(standin), draft("report two", 501), sleeps.append)
    assert [body.endswith("report two") for body in standin.bots] == [True]
    assert [comment["body"] for comment in standin.comments if comment["user"]["type"] != "Bot"] == people


def test_reports_with_different_ids_stand_side_by_side(standin, connect_to, sleeps) -> None:
    for report_id in ("demo", "demo-2", "de"):
        upsert(connect_to(standin), draft(report_id, report_id=report_id), sleeps.append)
    upsert(connect_to(standin), draft("demo again", 501), sleeps.append)
    assert [body.split("\n")[1] for body in standin.bots] == ["demo again", "demo-2", "de"]


def test_of_several_own_comments_the_oldest_is_kept(standin, connect_to, sleeps) -> None:
    for number in range(3):
        standin.seed(f"<!-- retrieval-eval:demo run=4{number}.1 head= -->\nold {number}")
    oldest = standin.comments[0]["id"]
    outcome = upsert(connect_to(standin), draft(), sleeps.append)
    assert isinstance(outcome, Posted)
    assert [comment["id"] for comment in standin.comments] == [oldest]
    assert standin.bots[0].endswith("report one")


def test_moved_head_is_not_overwritten(start_standin, connect_to, sleeps) -> None:
    standin = start_standin("--head-sha", "b" * 40)
    outcome = upsert(connect_to(standin), draft(), sleeps.append)
    assert isinstance(outcome, Stale)
    assert standin.bots == []


def test_slow_old_run_does_not_overwrite_a_later_one_but_a_repeated_run_may(standin, connect_to, sleeps) -> None:
    upsert(connect_to(standin), draft("new", 600), sleeps.append)
    assert isinstance(upsert(connect_to(standin), draft("old", 500), sleeps.append), Stale)
    assert standin.bots[0].endswith("new")
    assert isinstance(upsert(connect_to(standin), draft("again", 500, attempt=2), sleeps.append), Posted)
    assert standin.bots[0].endswith("again")


def test_update_only_never_writes_a_first_comment(standin, connect_to, sleeps) -> None:
    quiet = draft("same", is_update_only=True)
    assert isinstance(upsert(connect_to(standin), quiet, sleeps.append), Skipped)
    assert standin.bots == []
    upsert(connect_to(standin), draft("moved"), sleeps.append)
    assert isinstance(upsert(connect_to(standin), quiet, sleeps.append), Posted)
    assert standin.bots[0].endswith("same")


def test_unknown_head_is_not_asked_for(standin, connect_to, sleeps) -> None:
    outcome = upsert(connect_to(standin), draft(pull=PullRequest(7, "", is_fork=False)), sleeps.append)
    assert isinstance(outcome, Posted)
    assert standin.requests("GET /repos/acme/widgets/pulls") == []


def test_comment_deleted_between_read_and_write_is_made_anew(standin, connect_to, sleeps) -> None:
    upsert(connect_to(standin), draft(), sleeps.append)
    standin.fault("gone")
    outcome = upsert(connect_to(standin), draft("report two", 501), sleeps.append)
    assert isinstance(outcome, Posted)
    assert len(standin.requests(CREATE)) == 2
    assert len(standin.bots) == 1
    assert standin.bots[0].endswith("report two")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("read_only", ["cannot read or write comments", "pull-requests: write", "workflow_run", "403"]),
        ("no_access", ["cannot read or write comments", "pull-requests: write", "workflow_run"]),
        ("not_found", ["cannot read or write comments", "404"]),
        ("locked", ["conversation is locked"]),
        ("rate", ["rate limit"]),
        ("secondary", ["rate limit"]),
        ("server", ["did not answer as it should", "502"]),
        ("cut", ["did not answer as it should", "no answer"]),
    ],
)
def test_lasting_fault_is_one_sentence_and_bounded(standin, connect_to, sleeps, fault: str, words: list[str]) -> None:
    standin.fault(fault, -1)
    outcome = upsert(connect_to(standin), draft(), sleeps.append)
    assert isinstance(outcome, Refused)
    for word in words:
        assert word in outcome.reason
    assert TOKEN not in outcome.reason
    assert "\n" not in outcome.reason
    assert len(standin.requests()) <= 8
    assert sum(sleeps) <= PATIENCE_S
    assert standin.bots == []


@pytest.mark.parametrize("fault", ["read_only", "no_access"])
def test_refusal_on_a_fork_says_so(standin, connect_to, sleeps, fault: str) -> None:
    standin.fault(fault, -1)
    outcome = upsert(connect_to(standin), draft(pull=PullRequest(7, HEAD, is_fork=True)), sleeps.append)
    assert "on a pull request from a fork" in outcome.reason


@pytest.mark.parametrize("fault", ["rate", "secondary", "server", "cut"])
def test_passing_fault_is_waited_for(standin, connect_to, sleeps, fault: str) -> None:
    standin.fault(fault, 2)
    outcome = upsert(connect_to(standin), draft(), sleeps.append)
    assert isinstance(outcome, Posted)
    assert len(standin.bots) == 1
    assert 0 < len(sleeps) <= 3
    assert max(sleeps) <= LONGEST_WAIT_S


def test_slow_answers_are_awaited(standin, connect_to, sleeps) -> None:
    upsert(connect_to(standin), draft(), sleeps.append)
    standin.fault("slow", 1)
    assert isinstance(upsert(connect_to(standin), draft("two", 501), sleeps.append), Posted)


def test_bad_token_is_named_as_such_and_never_shown(standin, connect_to, sleeps, caplog) -> None:
    caplog.set_level("DEBUG", logger="retrieval_eval")
    outcome = upsert(connect_to(standin, TOKEN="ghs_another_secret"), draft(), sleeps.append)
    assert "the token is not valid (401" in outcome.reason
    assert "secret" not in outcome.reason + caplog.text


def test_nothing_listens(make_environment, connect_to, sleeps) -> None:
    class Nowhere:
        url = "http://127.0.0.1:9"

    outcome = upsert(connect_to(Nowhere()), draft(), sleeps.append)
    assert "no answer" in outcome.reason
    assert sleeps == [1.0, 2.0]


def test_too_long_body_is_refused_before_any_request(standin, connect_to, sleeps) -> None:
    outcome = upsert(connect_to(standin), draft("\U0001f600" * 33_000), sleeps.append)
    assert "longer than 65,536" in outcome.reason
    assert standin.requests() == []
    assert isinstance(upsert(connect_to(standin), draft("x" * 65_000), sleeps.append), Posted)


def test_user_endpoint_is_never_called(standin, connect_to, sleeps) -> None:
    for run_id in (500, 501):
        upsert(connect_to(standin), draft(f"run {run_id}", run_id), sleeps.append)
    assert standin.requests("GET /user") == []


def test_enterprise_server_is_reached_under_its_own_path(connect_to, monkeypatch) -> None:
    class Enterprise:
        url = "https://ghes.example/api/v3"

    api = connect_to(Enterprise())
    asked: list[tuple[str, str]] = []

    def answer(self: object, method: str, url: str, **options: object) -> tuple[int, dict[str, str], str]:
        asked.append((self._Requester__hostname + self._Requester__prefix, url))
        return 200, {}, "[]"

    monkeypatch.setattr(type(api._requester), "requestJson", lambda self, m, u, *a, **k: answer(self, m, u))
    assert api.comments(7) == []
    assert asked == [("ghes.example/api/v3", "/repos/acme/widgets/issues/7/comments")]
    assert api._requester.graphql_url == "https://ghes.example/api/graphql"
