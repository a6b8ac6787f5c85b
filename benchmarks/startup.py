"""What people wait for before anything happens: the import and `--help`, beside a Python that does nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.measuring import ROOT, header, median, table

COMMANDS = {
    "`python -c pass`": ("-c", "pass"),
    "`import retrieval_eval`": ("-c", "import retrieval_eval"),
    "`import retrieval_eval.cli`": ("-c", "import retrieval_eval.cli"),
    "`retrieval-eval --help`": ("-m", "retrieval_eval.cli", "--help"),
    "`retrieval-eval run --help`": ("-m", "retrieval_eval.cli", "run", "--help"),
}


def _seconds(arguments: tuple[str, ...]) -> float:
    started_s = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="each command once a round, in turn (default: 15)")
    arguments = parser.parse_args()
    header("Start-up")
    took: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(arguments.rounds):
        for name, command in COMMANDS.items():
            took[name].append(_seconds(command))
    bare = took["`python -c pass`"]
    rows = []
    for name, times in took.items():
        above = median(t - b for t, b in zip(times, bare, strict=True))
        ratio = median(t / b for t, b in zip(times, bare, strict=True))
        rows.append((name, f"{1000 * median(times):.0f} ms", f"{1000 * above:.0f} ms", f"{ratio:.2f}"))
    table(("command", "median", "above `pass`", "ratio to `pass`"), rows)


if __name__ == "__main__":
    main()
