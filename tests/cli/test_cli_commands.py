"""The commands from outside: exit codes, what goes to stdout, stderr and files, and what is refused before the work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

Result = subprocess.CompletedProcess[str]
Cli = Callable[..., Any]


@pytest.fixture
def schema(root: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((root / "docs" / "report.schema.json").read_text())
    return document


def is_one_line_error(done: Result, *parts: str) -> bool:
    """Exit 2, nothing on stdout, and the last line of stderr is the error with these parts; no traceback."""
    last = done.stderr.strip().splitlines()[-1]
    good = done.returncode == 2 and not done.stdout and "Traceback" not in done.stderr and last.startswith("error: ")
    return good and all(part in last for part in parts)


def test_stdout_of_run_is_exactly_the_report(cli: Cli, prepared: Path, schema: dict[str, Any]) -> None:
    done = cli("run", "--cache", prepared)
    assert done.returncode == 0
    jsonschema.validate(json.loads(done.stdout), schema)
    assert "recall" in done.stderr


def test_two_runs_differ_in_timings_alone(cli: Cli, prepared: Path) -> None:
    reports = []
    for seed in ("0", "1"):
        report = json.loads(cli("run", "--cache", prepared, env={"PYTHONHASHSEED": seed}).stdout)
        del report["timings"]
        reports.append(json.dumps(report))
    assert reports[0] == reports[1]


def test_files_take_the_report_and_stdout_stays_empty(
    cli: Cli, prepared: Path, tmp_path: Path, schema: dict[str, Any]
) -> None:
    done = cli("run", "--cache", prepared, "--json", "r.json", "--markdown", "r.md", "--k", "3,1")
    assert (done.returncode, done.stdout) == (0, "")
    report = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(report, schema)
    assert report["k"] == [1, 3]
    assert (tmp_path / "r.md").read_text() == cli("render", "r.json").stdout
    assert cli("render", "r.json", "--markdown", "again.md").stdout == ""
    assert (tmp_path / "again.md").read_bytes() == (tmp_path / "r.md").read_bytes()


def test_one_lane_alone(cli: Cli, prepared: Path) -> None:
    report = json.loads(cli("run", "--cache", prepared, "--lane", "model-free").stdout)
    assert list(report["lanes"]) == ["model-free"]


def test_the_model_free_lane_never_looks_for_a_model(cli: Cli, prepared: Path) -> None:
    broken = {"FAKE_BUG": "a model was looked for"}
    assert cli("run", "--cache", prepared, "--lane", "model-free", env=broken).returncode == 0
    assert cli("run", "--cache", prepared, env=broken).returncode == 1


def test_prep_shows_lines_and_a_summary_on_stderr_where_there_is_no_terminal(cli: Cli, data: Path) -> None:
    done = cli("prep", data, "--cache", "cache")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["read", "embed (fake)", "cache"]
    assert lines[0].startswith(f"read: {data.stat().st_size // 1000} kB")
    assert lines[1].startswith("embed (fake): 10 texts")
    assert lines[2] == "cache: 3 questions ready, 0 texts reused, 10 embedded"
    assert "\x1b" not in done.stderr
    assert "\r" not in done.stderr


def test_a_data_name_that_starts_with_a_dash_or_holds_blanks_works(cli: Cli, data: Path, tmp_path: Path) -> None:
    for name in ("-x.json", "my data.json", 'it\'s "x".json'):
        (tmp_path / name).write_bytes(data.read_bytes())
        assert cli("prep", "--cache", "cache", "--", name).returncode == 0


def spoilt_data(data: Path, kind: str) -> Path:
    whole = data.read_bytes()
    content = {
        "git lfs pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n",
        "html page": b"<!DOCTYPE html><html><body>404</body></html>",
        "cut": whole[: len(whole) // 2],
        "json lines": b"\n".join(json.dumps(item).encode() for item in json.loads(whole)),
        "wrapped": b'{"data": ' + whole + b"}",
        "empty list": b"[]",
        "nothing": b"",
        "scalar": b'"longmemeval"',
        "utf-16": whole.decode().encode("utf-16"),
        "binary": bytes(range(256)),
    }
    target = data.with_name("spoilt.json")
    target.write_bytes(content[kind])
    return target


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("git lfs pointer", "Git LFS pointer"),
        ("html page", "HTML"),
        ("cut", "cut off"),
        ("json lines", "JSON Lines"),
        ("wrapped", "'data'"),
        ("empty list", "no questions"),
        ("nothing", "empty"),
        ("scalar", "a string"),
        ("utf-16", "UTF-16"),
        ("binary", "spoilt.json"),
    ],
)
def test_wrong_data_is_named_and_leaves_nothing(cli: Cli, data: Path, tmp_path: Path, kind: str, words: str) -> None:
    done = cli("prep", spoilt_data(data, kind), "--cache", "cache")
    assert is_one_line_error(done, str(tmp_path / "spoilt.json"), words), done.stderr
    folder = tmp_path / "cache"
    assert not folder.exists() or not list(folder.iterdir())
    assert is_one_line_error(cli("run", "--cache", "cache"), "embedding cache cache", "is not there")


def test_a_good_file_after_a_bad_one_loads(cli: Cli, data: Path) -> None:
    assert cli("prep", spoilt_data(data, "cut"), "--cache", "cache").returncode == 2
    assert cli("prep", data, "--cache", "cache").returncode == 0


def test_missing_things_are_named(cli: Cli, prepared: Path, data: Path) -> None:
    assert is_one_line_error(cli("prep", "gone.json", "--cache", "c"), "gone.json")
    assert is_one_line_error(cli("prep", data.parent, "--cache", "c"), str(data.parent))
    assert is_one_line_error(cli("run", "--cache", "gone"), "gone", "retrieval-eval prep DATA --cache gone")
    assert is_one_line_error(cli("run", "--cache", prepared, "--retriever", "builtin:magic"), "builtin:magic")
    assert is_one_line_error(cli("run", "--cache", prepared, "--retriever", ""), "command line is empty")
    assert is_one_line_error(
        cli("run", "--cache", prepared, "--retriever", "no-such-program-here"), "no-such-program-here"
    )
    assert is_one_line_error(cli("render", "gone.json"), "gone.json")
    assert is_one_line_error(cli("render", data), str(data))
    assert is_one_line_error(cli("prep", data, "--cache", data), str(data))


@pytest.mark.parametrize("option", ["--json", "--markdown"])
@pytest.mark.parametrize(
    ("target", "words"), [("gone/r.out", "there is no folder gone"), ("cache", "is a folder"), (".", "is a folder")]
)
def test_a_target_that_cannot_be_written_is_refused_before_the_work(
    cli: Cli, prepared: Path, option: str, target: str, words: str
) -> None:
    done = cli("run", "--cache", prepared, option, target)
    assert is_one_line_error(done, f"{option} {target}", words), done.stderr
    assert done.stderr.count("\n") == 1


def test_both_wrong_targets_are_named_at_once(cli: Cli, prepared: Path) -> None:
    done = cli("run", "--cache", prepared, "--json", "a/r", "--markdown", "b/r")
    assert is_one_line_error(done, "--json a/r", "--markdown b/r")


def test_one_file_for_both_outputs_is_refused(cli: Cli, prepared: Path) -> None:
    done = cli("run", "--cache", prepared, "--json", "r.out", "--markdown", "./r.out")
    assert is_one_line_error(done, "different files")


def test_a_refused_run_leaves_an_older_report_alone(cli: Cli, prepared: Path, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("older")
    assert cli("run", "--cache", "gone", "--json", "r.json").returncode == 2
    assert (tmp_path / "r.json").read_text() == "older"


def test_debug_shows_the_traceback_of_wrong_input(cli: Cli) -> None:
    done = cli("run", "--cache", "gone", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


def test_an_error_is_one_line_whatever_it_quotes(cli: Cli, data: Path) -> None:
    done = cli("prep", "gone\n::error::made up", "--cache", "c")
    assert is_one_line_error(done, "gone : :error: :made up", "no such file")
    assert done.stderr.count("\n") == 1
    done = cli("prep", data, "--cache", "c", env={"FAKE_BUG": "ours\n::error::made up"})
    assert done.returncode == 1
    assert "::" not in done.stderr


def test_our_own_bug_exits_1_and_says_how_to_report_it(cli: Cli, data: Path) -> None:
    done = cli("prep", data, "--cache", "c", env={"FAKE_BUG": "ours"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "bug: ZeroDivisionError: ours" in done.stderr
    assert "/issues" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in cli("prep", data, "--cache", "c", "--debug", env={"FAKE_BUG": "ours"}).stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_exits_130_and_the_same_command_goes_on(
    cli: Cli, data: Path, prepared: Path, tmp_path: Path, how: signal.Signals
) -> None:
    process = cli("prep", data, "--cache", "slow", env={"FAKE_WAIT_AT": "6"}, start=True)
    while "waiting" not in (line := process.stderr.readline()):
        assert line, "prep ended early"
    process.send_signal(how)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert "interrupted: what was embedded so far is kept" in stderr
    assert "Traceback" not in stderr
    assert is_one_line_error(cli("run", "--cache", "slow"), "is incomplete", "of 3 questions", "run prep again")
    again = cli("prep", data, "--cache", "slow")
    assert again.returncode == 0
    assert "3 questions ready, 4 texts reused, 6 embedded" in again.stderr
    reports = [json.loads(cli("run", "--cache", folder).stdout) for folder in ("slow", prepared)]
    for report in reports:
        del report["timings"], report["cache"]
    assert reports[0] == reports[1]


def test_a_second_ctrl_c_shows_no_traceback(cli: Cli, data: Path) -> None:
    process = cli("prep", data, "--cache", "slow", env={"FAKE_WAIT_AT": "6"}, start=True)
    while "waiting" not in (line := process.stderr.readline()):
        assert line, "prep ended early"
    process.send_signal(signal.SIGINT)
    while "interrupted:" not in (line := process.stderr.readline()):
        assert line, "prep said nothing"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in stderr


def test_questions_without_gold_are_counted_in_the_refusal(cli: Cli, tmp_path: Path, data: Path) -> None:
    instances = json.loads(data.read_text(encoding="utf-8"))
    file = tmp_path / "unscored.json"
    file.write_text(json.dumps([instance | {"answer_session_ids": []} for instance in instances]), encoding="utf-8")
    assert is_one_line_error(cli("prep", file, "--cache", "none"), "nothing to score", "no gold: ", " question")


def test_a_reader_that_stops_early_is_no_error(cli: Cli, prepared: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = cli("run", "--cache", prepared, "--markdown", "r.md", stdout=writer)
    os.close(writer)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert (tmp_path / "r.md").stat().st_size > 0


def test_conformance_names_the_points_and_a_broken_program_is_wrong_input(cli: Cli) -> None:
    done = cli("conformance", "--", sys.executable, "-c", "")
    assert done.returncode == 2
    assert done.stdout.startswith("FAIL hello is answered: ")
    assert "1 of 1 points do not hold" in done.stderr.splitlines()[-1]


def test_conformance_survives_a_reader_that_stops_early(cli: Cli) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = cli("conformance", "--", sys.executable, "-c", "", stdout=writer)
    os.close(writer)
    assert done.returncode == 2
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_stdout_is_said(cli: Cli, prepared: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = cli("run", "--cache", prepared, stdout=full)
    assert done.returncode == 2
    assert "error: stdout: cannot be written: got No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert is_one_line_error(cli("run", "--cache", prepared, "--json", "/dev/full"), "/dev/full", "No space left")


HEAVY = ("numpy", "onnxruntime", "torch", "sentence_transformers", "rich", "jinja2", "sqlite3", "zstandard")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from retrieval_eval.cli import main
try:
    main({arguments!r})
except SystemExit:
    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_run_loads_no_engine_for_the_model_free_lane(cli: Cli, prepared: Path) -> None:
    code = f"""
import sys
from retrieval_eval.cli import main
assert main(["run", "--cache", {str(prepared)!r}, "--lane", "model-free"]) == 0
print([name for name in ("onnxruntime", "torch", "sentence_transformers") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
