"""How time and memory of prep (stand-in model), run and render grow with the questions and the haystack.

Times are of whole processes; in brackets the processor time, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import compose, header, mebibytes, sample, seconds, stage, table

QUESTIONS = (50, 122, 500, 2_000)
SESSIONS = (48, 475, 2_000)


def _measure(questions: int, sessions: int) -> tuple[str, ...]:
    """One row of the table: every stage once, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="retrieval-eval-bench-") as name:
        folder = Path(name)
        unique = 0 if sessions <= SESSIONS[0] else 5 * sessions
        data = compose(folder / "data.json", instances=questions, sessions=sessions, unique=unique)
        size, report = data.stat().st_size, folder / "report.json"
        prep = stage("prep", data, folder / "cache")
        data.unlink()
        run = stage("run", folder / "cache", report)
        markdown = str(folder / "report.md")
        render = sample([sys.executable, "-m", "retrieval_eval.cli", "render", str(report), "--markdown", markdown])
    rows = questions * sessions
    cells = [f"{questions:,}", f"{sessions:,}", f"{rows:,}", f"{size / 1e6:,.0f} MB"]
    for measured in (prep, run, render):
        cells += [f"{seconds(measured.seconds)} ({seconds(measured.cpu_seconds)})", mebibytes(measured.peak_bytes)]
    return tuple(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, nargs="+", default=QUESTIONS, help="at 48 sessions each")
    parser.add_argument("--sessions", type=int, nargs="+", default=SESSIONS[1:], help="for 50 questions")
    arguments = parser.parse_args()
    header("Growth")
    sizes = [(n, SESSIONS[0]) for n in arguments.questions] + [(QUESTIONS[0], n) for n in arguments.sessions]
    columns = ("questions", "sessions each", "rows", "data file", "prep", "memory", "run", "memory", "render", "memory")
    table(columns, (_measure(*size) for size in sizes))


if __name__ == "__main__":
    main()
