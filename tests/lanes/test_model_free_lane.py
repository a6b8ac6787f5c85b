"""The model-free lane runs where no model can be loaded, and reports do not depend on the hash seed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BLOCKED = ("onnxruntime", "tokenizers", "torch", "transformers", "sentence_transformers", "huggingface_hub")
WITHOUT_MODELS = f"""
import sys
sys.modules.update(dict.fromkeys({BLOCKED!r}))
from retrieval_eval.cli import main
sys.exit(main())
"""


def command(program: str, arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], env=env, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def cache(new_bench: Callable[[], Any], dataset: Callable[..., Any]) -> Path:
    """A cache of 9 questions whose model is nowhere to be found."""
    return Path(new_bench().prep(dataset(9, 12)))


def test_the_model_free_lane_needs_no_model_and_none_of_its_libraries(
    cache: Path, environment: Callable[..., dict[str, str]]
) -> None:
    arguments = ["run", "--cache", str(cache), "--lane", "model-free"]
    done = command(WITHOUT_MODELS, arguments, environment(HF_HUB_OFFLINE="1"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report["lanes"]) == ["model-free"]
    assert report["lanes"]["model-free"]["path"] == "search"
    assert report["lanes"]["model-free"]["overall"]["n"] == 9
    assert all(len(question["lanes"]["model-free"]["ranked"]) == 10 for question in report["questions"])


def test_the_model_dependent_lane_stops_there_and_says_what_is_missing(
    cache: Path, environment: Callable[..., dict[str, str]]
) -> None:
    done = command(WITHOUT_MODELS, ["run", "--cache", str(cache)], environment(HF_HUB_OFFLINE="1"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such model folder" in done.stderr
    assert "Traceback" not in done.stderr


BOTH_LANES = """
import hashlib, json, pathlib, sys
from contextlib import contextmanager
import numpy as np
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity
from retrieval_eval.pipeline import Effects, Model, RunRequest, prep, run
from retrieval_eval.retriever.spec import parse_spec

class Fake:
    backend, identity = "fake", ModelIdentity("fake", "sha256:00", 16, 1)
    def embed(self, texts, role):
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            yield Embedded(np.random.default_rng(seed).standard_normal(16).astype(np.float32), False)

class Silent:
    @contextmanager
    def stage(self, name, total, unit):
        yield self
    def advance(self, n=1):
        pass

folder = pathlib.Path(sys.argv[1])
effects, model = Effects(Silent(), lambda: 0.0), Model("fake", None, Fake.identity, Fake)
prep(folder / "data.json", folder / sys.argv[2], model, effects)
for spec in ("builtin:hybrid", "builtin:hybrid-fts5"):
    report = run(RunRequest(folder / sys.argv[2], parse_spec(spec)), lambda _: model, effects)
    del report["timings"]
    print(json.dumps(report))
"""


def test_reports_are_the_same_to_the_byte_under_another_hash_seed(
    tmp_path: Path, dataset: Callable[..., Any], environment: Callable[..., dict[str, str]]
) -> None:
    (tmp_path / "data.json").write_text(json.dumps(dataset(12, 15)), encoding="utf-8")
    outputs = []
    for seed in ("0", "1"):
        done = command(BOTH_LANES, [str(tmp_path), f"cache{seed}"], environment(PYTHONHASHSEED=seed))
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert [json.loads(line)["lanes"]["model-dependent"]["overall"]["n"] for line in outputs[0].splitlines()] == [
        12,
        12,
    ]
