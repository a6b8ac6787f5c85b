"""One instance in memory at a time: the peak must not follow the size of the file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="peak memory is read through the resource module")

PROGRAM = """
import resource, sys
from pathlib import Path
from retrieval_eval.dataset import DatasetReader
count = sum(1 for _ in DatasetReader(Path(sys.argv[1])).instances())
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def made(path: Path, count: int) -> Path:
    """A file of `count` instances of about 500 kB each."""
    words = " ".join(f"word{n}" for n in range(1_200))
    session = [{"role": "user", "content": words}]
    with path.open("w") as out:
        for number in range(count):
            record = {
                "question_id": f"q{number}",
                "question": "Which word?",
                "answer_session_ids": ["s0"],
                "haystack_session_ids": [f"s{n}" for n in range(50)],
                "haystack_sessions": [session] * 50,
            }
            out.write(("[" if number == 0 else ",") + json.dumps(record))
        out.write("]")
    return path


def peak_kib(path: Path, root: Path, count: int) -> int:
    environment = {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-c", PROGRAM, str(path)]
    result = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    instances, peak = map(int, result.stdout.split())
    assert instances == count
    return peak // 1024 if sys.platform == "darwin" else peak


def test_peak_memory_does_not_grow_with_the_file(tmp_path: Path, root: Path) -> None:
    small, large = made(tmp_path / "small.json", 10), made(tmp_path / "large.json", 120)
    assert large.stat().st_size > 55_000_000
    grown = peak_kib(large, root, 120) - peak_kib(small, root, 10)
    assert grown < 8 * 1024
