"""Runs that cannot comment: the numbers come out all the same, with one warning and exit code 0.

`report` does what the action does once the numbers are there.
"""

from __future__ import annotations

import pytest

from retrieval_eval.github.comment import CommentMode, Draft, Refused, Wanted, connect, upsert, wanted
from retrieval_eval.github.events import NoPullRequest, pull_request_of
from retrieval_eval.github.log import ActionsLog
from retrieval_eval.github.runner import append_summary, set_outputs

TOKEN = "ghs_0123456789secret"


@pytest.fixture
def report(sleeps, capsys):
    """Deliver a report for an environment; returns the log."""

    def deliver(environment) -> str:
        log = ActionsLog(clock=lambda: 0.0)
        append_summary(environment.summary_path, "### Retrieval: recall@5 0.000\n")
        set_outputs(environment.output_path, {"recall-at-5": "0.0"})
        api = connect(environment, sleep=sleeps.append, clock=lambda: 0.0)
        pull = pull_request_of(environment, api)
        if isinstance(pull, NoPullRequest):
            log.info(f"no comment: {pull.reason}")
        elif wanted(CommentMode.ALWAYS, {}) is Wanted.POST:
            outcome = upsert(api, Draft(pull, "demo", environment.run_id, 1, "body"), sleeps.append)
            if isinstance(outcome, Refused):
                log.warning(outcome.reason)
        return capsys.readouterr().out

    return deliver


def is_delivered(environment) -> bool:
    return "recall@5" in environment.summary_path.read_text() and "recall-at-5" in environment.output_path.read_text()


def test_read_only_token_on_a_fork_is_one_warning_that_helps(
    start_standin, make_environment, pull_event, report, runner_commands
) -> None:
    standin = start_standin("--head-repo", "stranger/widgets")
    standin.fault("read_only", -1)
    environment = make_environment("pull_request", pull_event(head_repository="stranger/widgets"), API_URL=standin.url)
    (warning,) = runner_commands(report(environment))
    assert warning.name == "warning"
    for word in ("fork", "pull-requests: write", "workflow_run", "Resource not accessible by integration"):
        assert word in warning.data
    assert TOKEN not in warning.data
    assert is_delivered(environment)


@pytest.mark.parametrize("variables", [{"TOKEN": ""}, {"TOKEN": " "}])
def test_no_token_sends_nothing_and_warns_once(
    standin, make_environment, pull_event, report, runner_commands, variables: dict[str, str]
) -> None:
    environment = make_environment("pull_request", pull_event(), API_URL=standin.url, **variables)
    (warning,) = runner_commands(report(environment))
    assert "no token" in warning.data
    assert standin.requests() == []
    assert is_delivered(environment)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("push", {"ref": "refs/heads/trunk", "after": "f" * 40}),
        ("workflow_dispatch", {"inputs": None, "ref": "refs/heads/trunk"}),
        ("schedule", {"schedule": "1 2 * * 3"}),
        ("pull_request", {}),
    ],
)
def test_no_pull_request_is_a_plain_line(standin, make_environment, report, runner_commands, name, event) -> None:
    environment = make_environment(name, event, API_URL=standin.url, SHA="f" * 40)
    text = report(environment)
    assert runner_commands(text) == []
    assert "no comment: " in text
    assert standin.requests("POST") == []
    assert is_delivered(environment)


def test_lasting_rate_limit_is_bounded_and_one_warning(
    standin, make_environment, pull_event, report, runner_commands, sleeps
) -> None:
    standin.fault("rate", -1)
    environment = make_environment("pull_request", pull_event(), API_URL=standin.url)
    (warning,) = runner_commands(report(environment))
    assert "rate limit" in warning.data
    assert len(standin.requests()) == 3
    assert is_delivered(environment)


def test_answer_of_a_strange_server_runs_no_command(standin, make_environment, report, runner_commands) -> None:
    event = {"pull_request": {"number": 8, "head": {"sha": "\r::error::x", "repo": {"full_name": "##[error]y"}}}}
    environment = make_environment("pull_request", event, API_URL=standin.url)
    (warning,) = runner_commands(report(environment))
    assert warning.name == "warning"
    assert is_delivered(environment)
