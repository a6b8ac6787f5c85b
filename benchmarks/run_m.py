"""Prep and run at the size of LongMemEval's M file (500 questions of 475 sessions, 3.3 GB), beside the plain way.

The model is a stand-in, so that only our own reading, storing, searching and scoring is measured. Whole processes are
timed, start included. The plain way (json.load, then per question rank-bm25 and a numpy cosine) is timed on a part of
the questions, in turn with our run on the same part: the ratio is of these two.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.measuring import Sample, compose, header, mebibytes, median, seconds, stage, table

SIZES = {"m": (475, 50_000), "s": (48, 0)}
"""Sessions in a haystack and distinct sessions in all (0: the real ones alone)."""


def _row(name: str, sample: Sample, questions: int) -> tuple[str, ...]:
    each_ms = 1000 * sample.seconds / questions
    times = seconds(sample.seconds), seconds(sample.cpu_seconds), f"{each_ms:.1f} ms"
    return name, str(questions), *times, mebibytes(sample.peak_bytes)


def _middle(samples: list[Sample]) -> Sample:
    """Median times, largest memory."""
    cpu_seconds = median(s.cpu_seconds for s in samples)
    return Sample(median(s.seconds for s in samples), cpu_seconds, max(s.peak_bytes for s in samples))


def _side_by_side(folder: Path, shape: dict[str, int], part: int, rounds: int) -> list[tuple[str, ...]]:
    """Rows for our run and the plain way on `part` questions, in turn."""
    data = compose(folder / "part.json", instances=part, **shape)
    prepared = stage("prep", data, folder / "part")
    ours, plain = [], []
    for _ in range(rounds):
        ours.append(stage("run", folder / "part", folder / "part-report.json"))
        plain.append(stage("plain", data))
    data.unlink()
    ratio = median(p.seconds / o.seconds for o, p in zip(ours, plain, strict=True))
    return [
        _row("prep of a part", prepared, part),
        _row("run of the part", _middle(ours), part),
        _row(f"plain way on the part: {ratio:.1f} times the run", _middle(plain), part),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="m", help="haystacks as in M or in S (default: m)")
    parser.add_argument("--questions", type=int, default=500, help="instances in the file (default: 500)")
    parser.add_argument("--part", type=int, default=40, help="instances for the side-by-side (default: 40)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of the side-by-side (default: 3)")
    arguments = parser.parse_args()
    sessions, unique = SIZES[arguments.size]
    shape = {"sessions": sessions, "unique": unique}
    header(f"{arguments.questions} questions of {sessions} sessions")
    with tempfile.TemporaryDirectory(prefix="retrieval-eval-bench-") as name:
        folder = Path(name)
        data = compose(folder / "data.json", instances=arguments.questions, **shape)
        size = f"{data.stat().st_size / 1e9:.2f} GB"
        rows = [_row(f"prep of {size} (stand-in model)", stage("prep", data, folder / "cache"), arguments.questions)]
        data.unlink()
        runs = [stage("run", folder / "cache", folder / "report.json") for _ in range(arguments.rounds)]
        rows.append(_row("run, both lanes, okapi", _middle(runs), arguments.questions))
        rows += _side_by_side(folder, shape, min(arguments.part, arguments.questions), arguments.rounds)
    table(("what", "questions", "time", "processor time", "a question", "peak memory, all processes"), rows)


if __name__ == "__main__":
    main()
