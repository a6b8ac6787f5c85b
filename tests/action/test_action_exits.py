"""Exit codes, signals, what is left behind, and what a stranger's files cannot do."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import pytest

from retrieval_eval.action import __main__ as action


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"dataset": ""}, "input 'dataset': required"),
        ({"dataset": "gone.json"}, "no such file"),
        ({"dataset": "longmemeval-v2.json"}, "longmemeval-v2 is a different benchmark"),
        ({"dataset": "data/*.json"}, "no such file"),
        ({"k": "0", "cache": "maybe"}, "input 'k'"),
        ({"model": "./nowhere"}, "no such model folder"),
        ({"model": "acme/unheard-of"}, "the hub cannot be reached"),
        ({"compare-report": "gone.json"}, "cannot read the report"),
        ({"retriever": "no-such-program"}, "no-such-program"),
        ({"report-path": "data.json/report.json"}, "input 'report-path': data.json/report.json: cannot be written"),
        ({"report-path": "../workspace"}, "input 'report-path'"),
    ],
)
def test_wrong_input_is_one_error_and_exit_code_2(runner, inputs, said) -> None:
    done = runner.step({"cache": "false", **inputs})
    assert done.code == 2, done.log
    (error,) = done.annotations("error")
    assert said in error
    assert "Traceback" not in done.log


def test_a_report_that_cannot_be_written_is_found_out_before_the_work(runner) -> None:
    (runner.workspace / "report.json").mkdir()
    done = runner.step({"cache": "false", "report-path": "report.json"})
    assert done.code == 2
    assert "is a folder" in done.log
    assert not (runner.workspace / ".embcache").exists()


def test_all_wrong_inputs_are_in_the_one_error(runner) -> None:
    (error,) = runner.step({"k": "0", "cache": "maybe", "lane": "x"}).annotations("error")
    assert all(f"input '{name}'" in error for name in ("k", "cache", "lane"))


def test_a_file_that_is_no_dataset_is_named_and_not_shown(runner) -> None:
    secret = runner.folder / "passwd"
    secret.write_text("root:x:0:0:root:/root:/bin/bash\n")
    done = runner.step({"dataset": "../passwd", "cache": "false"})
    assert done.code == 2
    assert "not a JSON array" in done.log
    assert "root:x" not in done.log


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("report-path", "retrieval-report.json"),
        ("comment-folder", "retrieval-comment"),
        ("comment-folder", "retrieval-comment/comment.md"),
        ("cache-path", ".embcache"),
        ("cache-path", ".embcache/embeddings.sqlite"),
    ],
)
def test_a_link_in_the_checkout_leads_nothing_out_of_the_workspace(runner, name, link) -> None:
    outside = runner.folder / "outside"
    outside.mkdir()
    place = runner.workspace / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside / "file" if place.suffix else outside)
    done = runner.step({"cache": "false"})
    assert done.code == 2
    (error,) = done.annotations("error")
    assert f"input '{name}': '{link}' is" in error
    assert not list(outside.iterdir())


def test_numbers_never_set_the_exit_code(runner, make_dataset) -> None:
    instances = make_dataset()
    for instance in instances:
        instance["answer_session_ids"] = ["gone"]
    runner.write(instances)
    done = runner.step({"cache": "false"})
    assert (done.code, done.outputs["recall-at-10"]) == (0, "0.0000")


def test_a_bug_of_ours_is_exit_code_1_with_the_way_to_report_it(monkeypatch, capfd) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a question of\n::error::numbers")

    package = logging.getLogger("retrieval_eval")
    monkeypatch.setattr(action, "_step", fail)
    monkeypatch.setattr(action, "_interrupt_on_signals", lambda: None)
    monkeypatch.setattr(package, "handlers", [])
    monkeypatch.setattr(package, "propagate", True)
    assert action.main() == 1
    log = capfd.readouterr().out
    (error,) = [line for line in log.splitlines() if line.lstrip().startswith("::error")]
    assert "ZeroDivisionError" in error
    assert "please report it: https://" in error
    assert "Traceback" in log


def test_files_left_behind_belong_to_the_owner_of_the_workspace(runner) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(runner.workspace, 1234, 1234)
    done = runner.step({"cache": "false", "report-path": "out/deep/report.json", "cache-path": "made/here"})
    assert done.code == 0, done.log
    left = [path for path in runner.workspace.rglob("*") if path.name != "data.json"]
    assert {path.name for path in left} >= {"out", "deep", "report.json", "made", "here", "embeddings.sqlite"}
    assert {path.stat().st_uid for path in left} == {1234}


def test_files_left_behind_by_a_failure_belong_to_the_owner_too(runner) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(runner.workspace, 1234, 1234)
    assert runner.step({"cache": "false", "retriever": "no-such-program"}).code == 2
    left = list((runner.workspace / ".embcache").rglob("*"))
    assert {path.stat().st_uid for path in left} == {1234}


def test_scratch_goes_away(runner) -> None:
    runner.step({"cache": "false"})
    assert list((runner.folder / "temp").iterdir()) == []


def test_a_module_of_the_checkout_is_not_imported(runner) -> None:
    for name in ("requests.py", "numpy.py", "json.py", "sitecustomize.py"):
        (runner.workspace / name).write_text("open('imported', 'w').close(); raise SystemExit(9)\n")
    done = runner.step({"cache": "false"}, PYTHONPATH=str(runner.workspace))
    assert done.code == 0, done.log
    assert not (runner.workspace / "imported").exists()


def test_questions_and_retrievers_run_no_workflow_command(runner, make_dataset) -> None:
    instances = make_dataset()
    instances[0]["question"] = "x\n::error::from a question ##[error]and @everyone"
    runner.write(instances)
    program = runner.workspace / "noisy.sh"
    program.write_text("#!/bin/sh\necho '::error::from stderr' >&2\necho '##[error]from stdout'\n")
    program.chmod(0o755)
    done = runner.step({"cache": "false", "retriever": "./noisy.sh"})
    assert "from stderr" in done.log
    lines = [line.lstrip() for line in done.log.splitlines()]
    assert not [line for line in lines if line.startswith("::error::from") or "##[" in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_130_and_leaves_a_cache_to_go_on_from(runner, make_dataset, kill_when, number) -> None:
    runner.write(make_dataset(extra_sessions=4000))
    process = runner.start({"cache": "false"})
    log = kill_when(process, "::group::Prep", number)
    assert process.returncode == 130, log
    assert not (runner.workspace / ".embcache" / "manifest.json").exists()
    assert list((runner.folder / "temp").iterdir()) == []
    runner.write(make_dataset())
    assert runner.step({"cache": "false"}).code == 0


def test_a_signal_while_saving_leaves_no_entry(runner, cache_service, kill_when) -> None:
    cache_service.control("faults", [{"op": "PutBlob", "delay": 20}])
    process = runner.start({})
    started_s = time.monotonic()
    log = kill_when(process, "::group::Save", signal.SIGTERM)
    assert process.returncode == 130, log
    assert time.monotonic() - started_s < 15
    assert cache_service.control("state")["entries"] == []


def test_every_stage_is_a_group_closed_by_a_line_of_figures(runner) -> None:
    log = runner.step({"cache": "false"}).log.splitlines()
    opened = [line.removeprefix("::group::") for line in log if line.startswith("::group::")]
    assert opened == ["Settings", "Model", "Restore the embedding cache", "Prep", "Run", "Report", "Comment"]
    for name in opened:
        after = log[log.index("::endgroup::", log.index(f"::group::{name}")) + 1]
        assert after.startswith(f"{name}: ")


def test_a_runner_temp_of_the_host_is_not_needed(runner) -> None:
    assert runner.step({"cache": "false"}, RUNNER_TEMP="/home/runner/work/_temp").code == 0


def test_a_leftover_cache_of_another_model_is_named_and_kept(runner, other_model) -> None:
    runner.step({"cache": "false"})
    done = runner.step({"cache": "false", "model": str(other_model)})
    assert done.code == 2
    assert "another model" in done.annotations("error")[0]
    assert (Path(runner.workspace) / ".embcache" / "manifest.json").exists()
