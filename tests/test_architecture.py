from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

HOMES = {
    "actions_toolkit": {"github/log.py"},
    "github": {"github/api.py"},
    "huggingface_hub": {"embedding/model_folder.py"},
    "ijson": {"dataset/stream.py"},
    "jinja2": {"report/markdown.py"},
    "jsonschema": {"report/schema.py"},
    "onnxruntime": {"embedding/onnx.py"},
    "openvino": {"embedding/openvino.py"},
    "requests": {"http.py"},
    "rich": {"terminal.py"},
    "sentence_transformers": {"embedding/sentence_transformer.py"},
    "tokenizers": {"embedding/tokens.py"},
    "torch": {"embedding/sentence_transformer.py"},
    "transformers": {"embedding/sentence_transformer.py"},
    "urllib3": {"http.py"},
    "zstandard": {"compression.py"},
}
PACKAGES = {"github": "pygithub"}
"""Where the package has another name than what it is imported by."""
EVERYWHERE = {"numpy", "retrieval_eval"}
IMPURE = {"pathlib", "os", "io", "sqlite3", "subprocess", "socket", "time", "datetime", "random", "tempfile", "logging"}


def imports_of(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.fixture(scope="module")
def modules(root: Path) -> dict[str, set[str]]:
    package = root / "src" / "retrieval_eval"
    return {file.relative_to(package).as_posix(): imports_of(file) for file in package.rglob("*.py")}


def test_each_third_party_library_is_imported_in_its_home_only(modules: dict[str, set[str]]) -> None:
    users: dict[str, set[str]] = {}
    for name, imported in modules.items():
        for library in imported - sys.stdlib_module_names - EVERYWHERE:
            users.setdefault(library, set()).add(name)
    assert users == HOMES


def test_each_library_that_is_imported_is_declared(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["sentence-transformers"], *extras["openvino"]]
    declared = {re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-") for requirement in wanted}
    with_sentence_transformers = {"torch", "transformers"}
    packages = {library: PACKAGES.get(library, library.replace("_", "-")) for library in {*HOMES, "numpy"}}
    assert {packages[library] for library in packages.keys() - with_sentence_transformers} == declared


def test_scoring_knows_no_files_network_clock_or_environment(modules: dict[str, set[str]]) -> None:
    scoring = {name: imported & IMPURE for name, imported in modules.items() if name.startswith("scoring/")}
    assert len(scoring) > 5
    assert not {name: imported for name, imported in scoring.items() if imported}


def test_model_values_import_nothing_of_the_package(modules: dict[str, set[str]]) -> None:
    assert "retrieval_eval" not in modules["model.py"] | modules["errors.py"]
