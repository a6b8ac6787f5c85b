from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ["retrieval.yml", "retrieval-comment.yml"]
OURS = "retrieval-eval/retrieval-eval@v0"


@pytest.fixture(params=NAMES)
def workflow(root: Path, request: pytest.FixtureRequest) -> Path:
    return root / "examples" / "workflows" / request.param


def test_workflow_fits_githubs_schema(workflow: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing(workflow: Path) -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    if not zizmor.is_file():
        pytest.skip("zizmor is not installed")
    done = subprocess.run([zizmor, "--offline", "--no-progress", workflow], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_foreign_actions_are_pinned_by_commit_with_the_version_beside(workflow: Path) -> None:
    uses = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
    assert uses.count(OURS) == 1
    for line in uses:
        assert line == OURS or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)


def test_permissions_start_from_none(workflow: Path) -> None:
    assert "\npermissions: {}\n" in workflow.read_text(encoding="utf-8")


def test_second_workflow_touches_nothing_of_the_pull_request(root: Path) -> None:
    text = (root / "examples" / "workflows" / "retrieval-comment.yml").read_text(encoding="utf-8")
    assert "actions/checkout" not in text
    assert "run:" not in text.replace("workflow_run:", "")
    assert "\n  pull_request" not in text


def test_second_workflow_waits_for_the_first_by_its_name(root: Path) -> None:
    folder = root / "examples" / "workflows"
    name = re.search(r"^name: (.+)$", (folder / "retrieval.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert name is not None
    assert f"workflows: [{name[1]}]" in (folder / "retrieval-comment.yml").read_text(encoding="utf-8")
