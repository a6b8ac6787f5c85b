from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.github.runner import (
    SUMMARY_BUDGET_BYTES,
    SUMMARY_LIMIT_BYTES,
    NotWritten,
    Written,
    append_summary,
    hand_over,
    read_environment,
    set_outputs,
    summary_room_bytes,
)

AWKWARD = st.lists(
    st.sampled_from(["a=b", "x<<EOF", "\n", "\r", "EOF", "::set-output name=n::v", "é", "\ud83d", " ", "=", "<<"])
    | st.text(max_size=8)
).map("".join)


def test_everything_missing_is_an_environment_without_event_and_files() -> None:
    environment = read_environment({})
    assert environment.event == {}
    assert environment.event_problem == "GITHUB_EVENT_PATH is not set"
    assert environment.summary_path is None
    assert environment.run_url == ""
    assert environment.token == ""
    assert environment.api_url == "https://api.github.com"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_broken_event_file_is_a_problem_not_an_exception(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "event.json"
    path.write_bytes(content)
    environment = read_environment({"GITHUB_EVENT_PATH": str(path)})
    assert environment.event == {}
    assert problem in environment.event_problem


def test_event_path_that_is_a_folder_or_missing_is_a_problem(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        assert "cannot be read" in read_environment({"GITHUB_EVENT_PATH": str(path)}).event_problem


def test_token_comes_from_the_input_first_and_stays_out_of_the_repr() -> None:
    environment = read_environment({"INPUT_GITHUB-TOKEN": "input-secret", "GITHUB_TOKEN": "env-secret"})
    assert environment.token == "input-secret"
    assert "secret" not in repr(environment)
    assert read_environment({"INPUT_GITHUB-TOKEN": " ", "GITHUB_TOKEN": "env-secret"}).token == "env-secret"


def test_runner_temp_of_an_old_runner_does_not_exist_and_is_replaced(tmp_path: Path) -> None:
    assert read_environment({"RUNNER_TEMP": str(tmp_path)}).temporary == tmp_path
    assert read_environment({"RUNNER_TEMP": "/home/runner/work/_temp"}).temporary.is_dir()


def test_run_url_names_the_attempt_only_after_the_first() -> None:
    variables = {
        "GITHUB_REPOSITORY": "acme/widgets",
        "GITHUB_RUN_ID": "12",
        "GITHUB_SERVER_URL": "https://ghes.example/",
    }
    assert read_environment(variables).run_url == "https://ghes.example/acme/widgets/actions/runs/12"
    assert read_environment({**variables, "GITHUB_RUN_ATTEMPT": "3"}).run_url.endswith("/runs/12/attempts/3")


@pytest.mark.parametrize("name", ["acme", "acme/widgets/x", "../x/y", "acme/wid gets", "acme/widgets\n"])
def test_odd_repository_is_none_at_all(name: str) -> None:
    assert read_environment({"GITHUB_REPOSITORY": name}).repository == ""


@pytest.mark.parametrize(("head", "is_fork"), [("acme/widgets", False), ("stranger/widgets", True), (None, True)])
def test_fork_is_another_head_repository_or_a_deleted_one(make_environment, pull_event, head, is_fork) -> None:
    environment = make_environment("pull_request", pull_event(head_repository=head))
    assert environment.is_fork is is_fork


@pytest.mark.parametrize("event", [{}, {"pull_request": None}, {"pull_request": {"head": 3}}, {"workflow_run": []}])
def test_fork_question_survives_events_of_any_shape(make_environment, event) -> None:
    assert make_environment("push", event).is_fork is False


@given(outputs=st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,12}", fullmatch=True), AWKWARD, max_size=4))
def test_no_value_starts_another_output(tmp_path_factory, runner_outputs, outputs) -> None:
    path = tmp_path_factory.mktemp("outputs") / "output.txt"
    assert isinstance(set_outputs(path, outputs), Written)
    read = runner_outputs(path.read_bytes().decode()) if path.stat().st_size else {}
    assert read == {name: value.encode("utf-8", "replace").decode() for name, value in outputs.items()}


def test_delimiter_that_occurs_in_the_value_is_drawn_again(tmp_path: Path, runner_outputs, monkeypatch) -> None:
    monkeypatch.setattr("retrieval_eval.github.runner.uuid.uuid4", iter(["guessed", "fresh"]).__next__)
    value = "x\nretrieval-eval-guessed\nn=1"
    set_outputs(tmp_path / "output.txt", {"reason": value})
    assert runner_outputs((tmp_path / "output.txt").read_text()) == {"reason": value}


def test_outputs_are_appended(tmp_path: Path, runner_outputs) -> None:
    path = tmp_path / "output.txt"
    set_outputs(path, {"n": "1"})
    set_outputs(path, {"recall-at-5": "0.9"})
    assert runner_outputs(path.read_text()) == {"n": "1", "recall-at-5": "0.9"}


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\nb", "a<<b", "1a"])
def test_output_name_that_is_not_ours_is_a_bug(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not an output name"):
        set_outputs(tmp_path / "output.txt", {name: "x"})


def test_file_problems_are_values(tmp_path: Path) -> None:
    assert set_outputs(None, {"n": "1"}) == NotWritten("GITHUB_OUTPUT is not set")
    assert isinstance(set_outputs(tmp_path, {"n": "1"}), NotWritten)
    assert append_summary(None, "x") == NotWritten("GITHUB_STEP_SUMMARY is not set")
    assert isinstance(append_summary(tmp_path / "no" / "folder", "x"), NotWritten)
    assert isinstance(set_outputs(tmp_path / "o", {"n": "x" * 600_000}), NotWritten)
    assert not (tmp_path / "o").exists()


def test_summary_is_appended_and_counted_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    assert append_summary(path, "é\n") == Written(3)
    assert path.read_text(encoding="utf-8") == "before\né\n"
    assert isinstance(append_summary(path, "éé", budget_bytes=3), NotWritten)
    assert path.read_text(encoding="utf-8") == "before\né\n"


@pytest.mark.parametrize("before", [0, 1_000, 500_000, 1_000_000, 1_040_000, 2_000_000])
def test_summary_room_counts_what_is_there_and_keeps_the_file_below_the_limit(tmp_path: Path, before: int) -> None:
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * before)
    room = summary_room_bytes(path)
    assert 0 <= room <= SUMMARY_BUDGET_BYTES
    assert room == 0 or before + room < SUMMARY_LIMIT_BYTES
    assert (room > 30_000) == (before <= 1_000_000)
    assert isinstance(append_summary(path, "y" * room), Written)
    assert isinstance(append_summary(path, "y" * (SUMMARY_BUDGET_BYTES + 1)), NotWritten)


def test_what_we_leave_behind_goes_to_the_owner_of_the_workspace(make_environment, tmp_path: Path) -> None:
    environment = make_environment("push", {})
    left = environment.workspace / "cache"
    (left / "deep").mkdir(parents=True)
    (left / "deep" / "file").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    (left / "link").symlink_to(outside)
    given_to: dict[Path, tuple[int, int]] = {}
    chown = lambda path, uid, gid: given_to.update({path: (uid, gid)})  # noqa: E731 - a one-line fake
    problems = hand_over(environment, [left, environment.workspace / "missing"], chown)
    owner = environment.workspace.stat()
    assert problems == ()
    assert set(given_to) == {left, left / "deep", left / "deep" / "file", left / "link"}
    assert set(given_to.values()) == {(owner.st_uid, owner.st_gid)}


def test_paths_that_lead_out_of_the_workspace_are_not_handed_over(make_environment, tmp_path: Path) -> None:
    environment = make_environment("push", {}, TEMP="")
    elsewhere = Path("/etc")
    (environment.workspace / "etc").symlink_to(elsewhere)
    touched: list[Path] = []
    hand_over(
        environment, [elsewhere / "hosts", environment.workspace / "etc" / "hosts"], lambda p, u, g: touched.append(p)
    )
    assert touched == []


def test_a_refused_chown_is_a_sentence(make_environment) -> None:
    environment = make_environment("push", {})
    (environment.workspace / "report.json").write_text(json.dumps({}))

    def refuse(path: Path, uid: int, gid: int) -> None:
        raise PermissionError(1, os.strerror(1))

    (problem,) = hand_over(environment, [environment.workspace / "report.json"], refuse)
    assert problem.endswith("report.json: Operation not permitted")
