"""The example workflows, and the sharded one run here: its own commands, with a stand-in for `actions/cache`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

DATA = "longmemeval_m_cleaned.json"
NAMES = ["sharded-prep.yml", "publish-cache.yml"]
FAKE_CLI = Path(__file__).with_name("fake_cli.py")


@pytest.fixture(params=NAMES)
def workflow(root: Path, request: pytest.FixtureRequest) -> Path:
    return root / "examples" / "workflows" / request.param


def test_scale_workflow_fits_githubs_schema(workflow: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing_in_scale_workflow(workflow: Path) -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    if not zizmor.is_file():
        pytest.skip("zizmor is not installed")
    done = subprocess.run([zizmor, "--offline", "--no-progress", workflow], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scale_workflow_pins_actions_and_starts_without_permissions(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    for line in re.findall(r"uses: (.+)", text):
        assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)


def test_report_job_restores_as_many_shards_as_there_are(root: Path) -> None:
    text = (root / "examples" / "workflows" / "sharded-prep.yml").read_text(encoding="utf-8")
    restored = [int(number) for number in re.findall(r"name: Restore shard (\d+)", text)]
    assert restored == list(range(1, yaml.safe_load(text)["env"]["SHARDS"] + 1))


@dataclass
class Runner:
    """Runs jobs of a workflow: `run` steps in bash, `actions/cache` steps on `entries`, other actions not at all."""

    workflow: Mapping[str, Any]
    home: Path
    env: dict[str, str]
    entries: dict[str, Path] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    def job(self, name: str, attempt: int, shard: int | None = None, **env: str) -> bool:
        """One job on a machine of its own; whether it succeeded."""
        place = self.home / f"{name}-{shard}-{attempt}"
        place.mkdir()
        facts = {f"env.{key}": value for key, value in self.env.items()}
        facts |= {"github.run_id": "77", "github.run_attempt": str(attempt), "matrix.shard": str(shard)}
        is_good = True
        for step in self.workflow["jobs"][name]["steps"]:
            condition = self._filled(str(step.get("if", "success()")), facts)
            if condition == "always()" or (is_good and self._holds(condition)):
                is_good &= self._step(step, place, facts, env)
        return is_good

    def _holds(self, condition: str) -> bool:
        if condition == "success()":
            return True
        name = re.fullmatch(r"(steps\.\w+\.outputs\.[\w-]+) != 'true'", condition)
        assert name is not None, condition
        return self.outputs.get(name[1]) != "true"

    def _filled(self, text: str, facts: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: facts[found[1]], text)

    def _step(self, step: Mapping[str, Any], place: Path, facts: Mapping[str, str], env: dict[str, str]) -> bool:
        options = {key: self._filled(str(value), facts) for key, value in step.get("with", {}).items()}
        if "actions/cache/restore" in step.get("uses", ""):
            return self._restore(place, options, str(step.get("id")))
        if "actions/cache/save" in step.get("uses", ""):
            return self._save(place, options)
        if "run" not in step:
            return True
        told = place / "outputs"
        environment = {**os.environ, **self.env, **env, "GITHUB_OUTPUT": str(told), "GITHUB_STEP_SUMMARY": "summary.md"}
        environment |= {key: self._filled(str(value), facts) for key, value in step.get("env", {}).items()}
        environment["PATH"] = f"{self.home / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=place, env=environment, check=False)
        if told.exists():
            self.outputs |= dict(line.split("=", 1) for line in told.read_text().splitlines())
        return done.returncode == 0

    def _restore(self, place: Path, options: Mapping[str, str], step: str) -> bool:
        prefixes = [options["key"], *options.get("restore-keys", "").split()]
        keys = [key for prefix in prefixes for key in reversed(self.entries) if key.startswith(prefix)]
        self.outputs[f"steps.{step}.outputs.cache-hit"] = str(options["key"] in self.entries).lower()
        if keys and options.get("lookup-only") != "true":
            _copy(self.entries[keys[0]], place / options["path"])
        return bool(keys) or options.get("fail-on-cache-miss") != "true"

    def _save(self, place: Path, options: Mapping[str, str]) -> bool:
        assert options["key"] not in self.entries, "entries are immutable"
        _copy(place / options["path"], self.home / "entries" / str(len(self.entries)))
        self.entries[options["key"]] = self.home / "entries" / str(len(self.entries))
        return True


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _program(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.fixture
def runner(root: Path, lab: Any, tmp_path: Path) -> Runner:
    data, home = lab.data(120, name=DATA), tmp_path / "runner"
    home.mkdir()
    workflow = yaml.safe_load((root / "examples" / "workflows" / "sharded-prep.yml").read_text(encoding="utf-8"))
    _program(home / "bin" / "retrieval-eval", f'exec "{sys.executable}" "{FAKE_CLI}" "$@"')
    _program(home / "bin" / "pip", "exit 0")
    _program(home / "bin" / "curl", f'echo fetched >> "{home}/fetched"; for last; do :; done; cp "{data}" "$DATA"')
    env = {key: str(value) for key, value in workflow["env"].items()}
    return Runner(workflow, home, env | {"DATA_SHA256": hashlib.sha256(data.read_bytes()).hexdigest()})


def lists(report: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    del facts["timings"]
    return facts


@pytest.mark.skipif(shutil.which("jq") is None, reason="the workflow's plan job needs jq")
def test_failed_shard_is_run_again_alone_and_the_report_is_that_of_a_whole_prep(
    runner: Runner, lab: Any, tmp_path: Path
) -> None:
    assert runner.job("plan", 1)
    shards = json.loads(runner.outputs["shards"])
    assert shards == [1, 2, 3, 4]
    killed = {2: {"FAKE_EMBED_MOST": "80"}}
    assert [runner.job("prep", 1, shard, **killed.get(shard, {})) for shard in shards] == [True, False, True, True]
    assert not runner.job("report", 1), "a merge without shard 2 must not pass"

    assert runner.job("prep", 2, 2, FAKE_EMBED_MOST="80"), "it goes on, so it needs fewer than 80 texts now"
    assert runner.job("report", 2)

    lab.prepare(lab.data(120, name=DATA), tmp_path / "whole")
    code, _, err = lab.run("run", "--cache", tmp_path / "whole", "--json", tmp_path / "whole.json")
    assert code == 0, err
    measured, whole = lists(runner.home / "report-None-2" / "report.json"), lists(tmp_path / "whole.json")
    assert measured.pop("cache")["embedded"] < whole.pop("cache")["embedded"]
    assert measured == whole
    assert "120" in (runner.home / "report-None-2" / "summary.md").read_text()


def test_data_file_is_fetched_once(runner: Runner) -> None:
    assert runner.job("plan", 1)
    assert runner.job("plan", 2)
    assert (runner.home / "fetched").read_text() == "fetched\n"


def test_data_file_with_another_digest_stops_the_plan(runner: Runner) -> None:
    runner.env["DATA_SHA256"] = "0" * 64
    assert not runner.job("plan", 1)
    assert runner.entries == {}
