"""action.yml, the tables in the code, docs/action.md and every example name the same inputs and outputs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrieval_eval.action.delivery import OUTPUTS
from retrieval_eval.action.settings import INPUTS, TOKEN

ALL = {each.name: each for each in (*INPUTS, TOKEN)}


@pytest.fixture(scope="module")
def manifest(root: Path) -> Any:
    return yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))


def test_action_yml_fits_githubs_schema(root: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_action_yml_has_the_inputs_of_the_table_in_its_order(manifest: Any) -> None:
    assert list(manifest["inputs"]) == list(ALL)
    for name, found in manifest["inputs"].items():
        assert found["description"] == ALL[name].description
        assert found.get("default", "") == ALL[name].default
        assert found["required"] is False, "GitHub does not enforce it, and settings.py says it better"


def test_action_yml_has_the_outputs_of_the_table(manifest: Any) -> None:
    assert {name: found["description"] for name, found in manifest["outputs"].items()} == OUTPUTS


def test_every_default_is_accepted_by_its_own_parser() -> None:
    for each in INPUTS:
        if each.default:
            each.parse(each.default)


def test_docs_have_a_row_for_every_input_and_output(root: Path) -> None:
    text = (root / "docs" / "action.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    inputs = [f"| `{e.name}` | {f'`{e.default}`' if e.default else ''} | {e.description} |" for e in ALL.values()]
    outputs = [f"| `{name}` | {description} |" for name, description in OUTPUTS.items()]
    assert rows[: len(inputs)] == inputs
    assert rows[len(inputs) : len(inputs) + len(outputs)] == outputs


def steps_in(node: Any) -> Iterator[Any]:
    """Every mapping with `uses`, at any depth."""
    if isinstance(node, dict):
        if "uses" in node:
            yield node
        for value in node.values():
            yield from steps_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from steps_in(value)


def snippets(root: Path) -> dict[str, str]:
    """Workflows of the examples, and YAML blocks of README and docs, by where they stand."""
    found = {str(path): path.read_text(encoding="utf-8") for path in (root / "examples").rglob("*.yml")}
    for page in (root / "README.md", *(root / "docs").glob("*.md")):
        blocks = re.findall(r"^```ya?ml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        found |= {f"{page.name} block {number}": block for number, block in enumerate(blocks)}
    return found


def test_examples_and_snippets_use_inputs_that_exist(root: Path) -> None:
    used = 0
    for where, text in snippets(root).items():
        for step in steps_in(yaml.safe_load(text)):
            if step["uses"].startswith("retrieval-eval/"):
                used += 1
                assert set(step.get("with", {})) <= set(ALL), where
    assert used >= 3


def test_examples_and_snippets_read_outputs_that_exist(root: Path) -> None:
    for where, text in snippets(root).items():
        ours = {
            step["id"] for step in steps_in(yaml.safe_load(text)) if "id" in step and "retrieval-eval/" in step["uses"]
        }
        for name, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", text):
            assert name not in ours or output in OUTPUTS, where


def test_the_readme_snippet_uses_the_action(root: Path) -> None:
    assert "uses: retrieval-eval/retrieval-eval@" in (root / "README.md").read_text(encoding="utf-8")


def test_action_yml_is_a_container_action_without_arguments(manifest: Any) -> None:
    assert manifest["runs"] == {"using": "docker", "image": "Dockerfile"}


def test_the_entry_point_is_in_exec_form_and_isolated(root: Path) -> None:
    text = (root / "Dockerfile").read_text(encoding="utf-8")
    assert 'ENTRYPOINT ["python", "-I", "-m", "retrieval_eval.action"]' in text
    assert not re.search(r"^USER ", text, re.MULTILINE)
