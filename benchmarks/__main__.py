"""`make bench`: the benchmarks, one after the other, as Markdown on stdout. See docs/performance.md."""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.measuring import ROOT, shared

QUICK: tuple[tuple[str, ...], ...] = (
    ("startup",),
    ("run_m", "--size", "s", "--part", "122"),
    ("embedding",),
)
WHOLE: tuple[tuple[str, ...], ...] = (*QUICK, ("image",), ("run_m",), ("growth",))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="leave out the size of M and the growth: minutes, not half an hour"
    )
    arguments = parser.parse_args()
    shared()
    for module, *options in QUICK if arguments.quick else WHOLE:
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *options], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
