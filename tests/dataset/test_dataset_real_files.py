"""The real excerpts and a composed file, against plain counting over json.load."""

import gzip
import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from retrieval_eval.dataset import DatasetReader
from retrieval_eval.model import Exclusion


@pytest.fixture(scope="module")
def composed(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("composed") / "small.json"
    command = [sys.executable, str(shared / "data" / "compose.py"), str(path), "--sessions", "6"]
    subprocess.run(command, check=True, capture_output=True)
    return path


def plainly(path: Path) -> list[dict]:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def agrees_with_plain_reading(path: Path) -> None:
    reader, raw = DatasetReader(path), plainly(path)
    instances = list(reader.instances())
    assert [i.pair.question_id for i in instances] == [r["question_id"] for r in raw]
    assert [[s.session_id for s in i.sessions] for i in instances] == [r["haystack_session_ids"] for r in raw]
    assert [i.pair.gold for i in instances] == [tuple(sorted(set(r["answer_session_ids"]))) for r in raw]
    texts = [["\n".join(f"{t['role']}: {t['content']}" for t in s) for s in r["haystack_sessions"]] for r in raw]
    assert [[s.text for s in i.sessions] for i in instances] == texts
    scored = Counter(i.pair.category for i in instances if i.exclusion is None)
    assert scored == Counter(r["question_type"] for r in raw if not r["question_id"].endswith("_abs"))
    assert {i.exclusion for i in instances} <= {None, Exclusion.ABSTENTION}
    assert reader.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert reader.notes.warnings == ()


@pytest.mark.parametrize("name", ["longmemeval_oracle_122.json.gz", "longmemeval_s_2.json.gz"])
def test_real_excerpts(shared: Path, name: str) -> None:
    agrees_with_plain_reading(shared / "data" / name)


def test_composed_file(composed: Path) -> None:
    agrees_with_plain_reading(composed)
