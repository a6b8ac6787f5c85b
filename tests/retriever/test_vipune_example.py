"""The real crate behind the protocol: built here, and its lists are the golden ones, question by question."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
import onnxruntime
import pytest

from retrieval_eval.retriever.builtin import Builtin, BuiltinRetriever
from retrieval_eval.retriever.conformance import run_conformance
from retrieval_eval.retriever.process import ExternalRetriever, child_environment
from retrieval_eval.retriever.protocol import Leg, Path, Query, Vector
from retrieval_eval.terms import Vocabulary

REVISION = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"


@dataclass(frozen=True)
class StoredRow:
    row_id: str
    text: str
    vector: Vector


@dataclass(frozen=True)
class GoldenQuestion:
    question_id: str
    text: str
    vector: Vector
    rows: list[StoredRow]
    hybrid: tuple[str, ...]
    semantic: tuple[str, ...]
    bm25: tuple[str, ...]


@pytest.fixture(scope="session")
def cargo_target() -> FilePath:
    """Outside the checkout and the same at every run, so that only the first build takes minutes."""
    default = FilePath.home() / ".cache" / "retrieval-eval" / "cargo-target"
    return FilePath(os.environ.get("RETRIEVAL_EVAL_CARGO_TARGET", default))


@pytest.fixture(scope="session")
def onnxruntime_folder(cargo_target) -> FilePath:
    """The library of the Python wheel under the names that the linker and the loader ask for.

    It lies beside the build because cargo builds anew whenever the path changes.
    """
    [library] = (FilePath(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    folder = cargo_target / "onnxruntime"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        if (folder / name).resolve() != library.resolve():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(library)
    return folder


@pytest.fixture(scope="session")
def vipune(root, cargo_target, onnxruntime_folder) -> str:
    """The program, built from the lock file."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo on this machine")
    library = {"ORT_LIB_PATH": str(onnxruntime_folder), "ORT_PREFER_DYNAMIC_LINK": "1"}
    build = subprocess.run(
        ["cargo", "build", "--locked", "--release"],
        cwd=root / "examples" / "retrievers" / "vipune",
        env={**os.environ, **library, "CARGO_TARGET_DIR": str(cargo_target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr[-3000:]
    return str(cargo_target / "release" / "vipune-retriever")


@pytest.fixture(scope="session")
def environment(shared, onnxruntime_folder, tmp_path_factory) -> dict[str, str]:
    """The model in the hub's own layout, and no network."""
    home = tmp_path_factory.mktemp("hub")
    repository = home / "hub" / "models--BAAI--bge-small-en-v1.5"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "snapshots" / REVISION).symlink_to(shared / "models" / "bge-small-en-v1.5")
    (repository / "refs" / REVISION).write_text(REVISION, encoding="ascii")
    folders = {"HF_HOME": str(home), "LD_LIBRARY_PATH": str(onnxruntime_folder), "HF_HUB_OFFLINE": "1"}
    return {**child_environment(os.environ), **folders}


@pytest.fixture(scope="session")
def golden_48(shared, tmp_path_factory) -> list[GoldenQuestion]:
    """All 122 questions of the 48-session set with their rows and the crate's own lists, as row ids."""
    composed = tmp_path_factory.mktemp("composed") / "48.json"
    compose = [sys.executable, str(shared / "data" / "compose.py"), str(composed)]
    subprocess.run(compose, check=True, capture_output=True)
    instances = json.loads(composed.read_bytes())
    composed.unlink()
    lists = json.loads(gzip.decompress((shared / "golden" / "lists_48.json.gz").read_bytes()))["instances"]
    with np.load(shared / "golden" / "vectors.npz") as saved:
        sessions = dict(zip(saved["session_ids"].tolist(), saved["session_vectors"], strict=True))
        questions = dict(zip(saved["question_ids"].tolist(), saved["question_vectors"], strict=True))
    return [golden_question(*both, sessions, questions) for both in zip(instances, lists, strict=True)]


def golden_question(instance, lists, sessions, questions) -> GoldenQuestion:
    question_id = instance["question_id"]
    assert question_id == lists["question_id"]
    rows = [
        StoredRow(
            hashlib.sha256(f"{question_id}\n{session_id}".encode()).hexdigest()[:32],
            "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns),
            sessions[session_id],
        )
        for session_id, turns in zip(instance["haystack_session_ids"], instance["haystack_sessions"], strict=True)
    ]
    hybrid, semantic, bm25 = (
        tuple(rows[position].row_id for position in positions)
        for positions in (lists["hybrid"]["10"], lists["semantic"], lists["bm25"])
    )
    return GoldenQuestion(question_id, instance["question"], questions[question_id], rows, hybrid, semantic, bm25)


@pytest.fixture
def retriever(vipune, environment) -> Iterator[ExternalRetriever]:
    with ExternalRetriever([vipune], env=environment) as running:
        yield running


def test_every_list_of_the_crate_is_the_golden_one(retriever, golden_48):
    different = []
    for question in golden_48:
        with retriever.open(question.question_id, question.rows) as persona:
            hybrid = persona.search(Query(question.question_id, Path.SEARCH_HYBRID, 10, question.text, question.vector))
            semantic = persona.search(
                Query(question.question_id, Path.SEARCH, len(question.rows), None, question.vector)
            )
        found = (hybrid.ranked, semantic.ranked, hybrid.legs[Leg.SEMANTIC], hybrid.legs[Leg.BM25])
        if found != (question.hybrid, question.semantic, question.semantic, question.bm25):
            different.append(question.question_id)
    assert different == []
    assert len(golden_48) == 122
    assert retriever.starts == 1


def test_the_built_in_fts5_store_answers_as_the_crate_does(retriever, golden_48):
    builtin = BuiltinRetriever(Builtin.HYBRID_FTS5, Vocabulary(), 384)
    different = []
    for question in golden_48:
        answers = []
        for measured in (retriever, builtin):
            with measured.open(question.question_id, question.rows) as persona:
                answers += [
                    persona.search(Query(question.question_id, path, 10, question.text, question.vector)).ranked
                    for path in (Path.SEARCH_HYBRID, Path.SEARCH)
                ]
        if answers[:2] != answers[2:]:
            different.append(question.question_id)
    assert different == []


def test_the_text_alone_gives_the_same_hybrid_list(retriever, golden_48):
    """The crate embeds the question itself: our vector is for the leg that is shown, not for the list."""
    for question in golden_48[:5]:
        with retriever.open(question.question_id, question.rows) as persona:
            answer = persona.search(Query(question.question_id, Path.SEARCH_HYBRID, 10, question.text, None))
        assert answer.ranked == question.hybrid
        assert answer.legs == {}
    assert retriever.facts(10)["query_vectors"] == "made by the retriever"


def test_the_crate_keeps_every_rule_of_the_protocol(vipune, environment):
    points = run_conformance([vipune], env=environment)
    assert [point for point in points if not point.holds] == []
    details = {point.name: point.detail for point in points}
    assert details["search_hybrid: awkward questions"].endswith("refused with an error: empty, blank, NUL, 200 kB")
    assert details["search: the same question gives the same list"].endswith("the newer came first")


def test_the_lock_file_names_the_crate_and_the_public_index_only(root):
    lock = (root / "examples" / "retrievers" / "vipune" / "Cargo.lock").read_text(encoding="utf-8")
    sources = {line for line in lock.splitlines() if line.startswith("source")}
    assert sources == {'source = "registry+https://github.com/rust-lang/crates.io-index"'}
    assert 'name = "vipune"\nversion = "0.20.2"' in lock
