"""What two runs, a person and a flaky network do at once: the rules against an API in memory."""

from __future__ import annotations

import pytest

from retrieval_eval.github.comment import NO_TOKEN, Draft, Posted, Refused, Stale, Unchanged, connect, upsert
from retrieval_eval.github.events import PullRequest
from retrieval_eval.github.pulls import ApiError, Standing, Trouble

HEAD = "a" * 40


def draft(body: str = "mine", run_id: int = 500) -> Draft:
    return Draft(PullRequest(7, HEAD, is_fork=False), "demo", run_id, 1, body)


def raising(trouble: Trouble, status: int = 502) -> object:
    def act() -> None:
        raise ApiError(trouble, status, "broken")

    return act


def test_no_token_sends_nothing() -> None:
    assert upsert(None, draft(), lambda s: None) == Refused(NO_TOKEN)


def test_connection_needs_token_and_repository(make_environment, sleeps) -> None:
    for variables in ({"TOKEN": ""}, {"REPOSITORY": ""}):
        assert connect(make_environment("push", {}, **variables), sleep=sleeps.append, clock=lambda: 0.0) is None
    assert connect(make_environment("push", {}), sleep=sleeps.append, clock=lambda: 0.0) is not None


def test_post_that_worked_behind_an_error_is_not_posted_twice(fake_api, sleeps) -> None:
    def arrive_and_fail() -> None:
        fake_api.add(draft().text)
        raise ApiError(Trouble.UNCERTAIN, 502, "bad gateway")

    fake_api.before["create"] = arrive_and_fail
    outcome = upsert(fake_api, draft(), sleeps.append)
    assert outcome == Posted("https://example.invalid/1", is_created=True)
    assert fake_api.calls.count("create") == 1
    assert len(fake_api.stored) == 1


def test_post_that_did_not_arrive_is_tried_once_more(fake_api, sleeps) -> None:
    fake_api.before["create"] = raising(Trouble.UNCERTAIN)
    assert isinstance(upsert(fake_api, draft(), sleeps.append), Posted)
    assert fake_api.calls.count("create") == 2
    assert len(fake_api.stored) == 1
    assert sleeps == [3.0]


def test_refused_post_is_not_repeated(fake_api, sleeps) -> None:
    fake_api.before["create"] = raising(Trouble.REFUSED, 403)
    assert isinstance(upsert(fake_api, draft(), sleeps.append), Refused)
    assert fake_api.calls.count("create") == 1


def test_race_lost_to_an_earlier_run_updates_the_older_comment_and_removes_ours(fake_api, sleeps) -> None:
    fake_api.before["create"] = lambda: fake_api.add(draft("theirs", 499).text) and None
    outcome = upsert(fake_api, draft(), sleeps.append)
    assert outcome == Posted("https://example.invalid/1", is_created=False)
    assert [comment.body for comment in fake_api.stored] == [draft().text]


def test_race_lost_to_a_later_run_leaves_its_word(fake_api, sleeps) -> None:
    fake_api.before["create"] = lambda: fake_api.add(draft("theirs", 501).text) and None
    assert isinstance(upsert(fake_api, draft(), sleeps.append), Stale)
    assert [comment.body for comment in fake_api.stored] == [draft("theirs", 501).text]


def test_comment_of_a_later_run_that_came_after_ours_is_left_to_that_run(fake_api, sleeps) -> None:
    fake_api.before["create"] = lambda: fake_api.before.update(
        comments=lambda: fake_api.add(draft("theirs", 501).text) and None
    )
    upsert(fake_api, draft(), sleeps.append)
    assert [comment.body for comment in fake_api.stored] == [draft().text, draft("theirs", 501).text]


@pytest.mark.parametrize("other_run", [499, 501])
def test_two_runs_that_create_at_once_end_with_one_comment_of_the_later(fake_api, sleeps, other_run: int) -> None:
    """The other run goes through whole between our request and our second look."""
    fake_api.before["create"] = lambda: fake_api.before.update(
        comments=lambda: upsert(fake_api, draft("theirs", other_run), sleeps.append) and None
    )
    upsert(fake_api, draft(), sleeps.append)
    assert [comment.body for comment in fake_api.stored] == [
        draft("theirs", 501).text if other_run == 501 else draft().text
    ]


def test_comments_that_cannot_be_read_after_the_post_change_nothing(fake_api, sleeps) -> None:
    fake_api.before["create"] = lambda: fake_api.before.update(comments=raising(Trouble.UNCERTAIN))
    assert upsert(fake_api, draft(), sleeps.append) == Posted("https://example.invalid/1", is_created=True)


def test_person_who_pastes_the_marker_is_left_alone(fake_api, sleeps) -> None:
    pasted = fake_api.add(draft("pasted").text, is_by_bot=False)
    assert isinstance(upsert(fake_api, draft(), sleeps.append), Posted)
    assert fake_api.stored[0] == pasted
    assert len(fake_api.stored) == 2


def test_comment_of_a_personal_token_is_ours_when_github_says_so(fake_api, sleeps) -> None:
    comment = fake_api.add(draft("before", 400).text, is_by_bot=False)
    fake_api.standings[comment.id] = Standing(is_ours=True, is_hidden=False)
    assert isinstance(upsert(fake_api, draft(), sleeps.append), Posted)
    assert [comment.body for comment in fake_api.stored] == [draft().text]


def test_hidden_comment_is_shown_again_when_it_says_something_new(fake_api, sleeps) -> None:
    comment = fake_api.add(draft("before", 400).text)
    fake_api.standings[comment.id] = Standing(is_ours=True, is_hidden=True)
    upsert(fake_api, draft(), sleeps.append)
    assert "unhide" in fake_api.calls
    fake_api.calls.clear()
    assert isinstance(upsert(fake_api, draft(run_id=501), sleeps.append), Unchanged)
    assert "unhide" not in fake_api.calls


def test_tidying_that_fails_changes_nothing(fake_api, sleeps) -> None:
    fake_api.add(draft("one", 400).text)
    fake_api.add(draft("two", 401).text)
    fake_api.before.update(delete=raising(Trouble.REFUSED, 403), standing=raising(Trouble.INVALID, 400))
    assert isinstance(upsert(fake_api, draft(), sleeps.append), Posted)
    assert fake_api.stored[0].body == draft().text
