"""How every benchmark measures and prints: a child process with its tree, medians, the machine, Markdown tables."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
POLL_S = 0.02
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of a command: wall time from its start to its end, processor time of all its processes, and the most
    memory that they held together."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def shared() -> Path:
    """The folder with the real excerpts and the model; ends the benchmark where it is missing."""
    folder = Path(os.environ.get("RETRIEVAL_EVAL_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        sys.exit(f"{folder} is not there: set RETRIEVAL_EVAL_SHARED to the folder with the excerpts and the model")
    return folder


def compose(out: Path, *, instances: int, sessions: int, unique: int = 0) -> Path:
    """A LongMemEval-shaped file of this size, from the real excerpts."""
    command = [sys.executable, str(shared() / "data" / "compose.py"), str(out)]
    command += ["--instances", str(instances), "--sessions", str(sessions), "--unique", str(unique)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return out


def sample(command: Sequence[str]) -> Sample:
    """Run `command` from the project's root. Its output goes to stderr; a failure ends the benchmark.

    Memory is the sum of the resident sizes of all its processes, read every 20 ms: pages that they share count in
    each, so it is an upper bound.
    """
    started_s, cpu_s, peak = time.perf_counter(), _children_cpu_seconds(), 0
    with subprocess.Popen(command, cwd=ROOT, stdout=sys.stderr) as process:
        while process.poll() is None:
            peak = max(peak, _resident_bytes(process.pid))
            time.sleep(POLL_S)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return Sample(time.perf_counter() - started_s, _children_cpu_seconds() - cpu_s, peak)


def stage(*arguments: str | Path) -> Sample:
    """Run one of `stages.py` in a process of its own."""
    return sample([sys.executable, "-m", "benchmarks.stages", *map(str, arguments)])


def _children_cpu_seconds() -> float:
    """Processor time, user and system, of all that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident_bytes(pid: int) -> int:
    """Resident size of a process and all below it; what has ended meanwhile counts nothing."""
    process, children = Path(f"/proc/{pid}"), []
    try:
        pages = int((process / "statm").read_text(encoding="ascii").split()[1])
        for thread in (process / "task").iterdir():
            children += (thread / "children").read_text(encoding="ascii").split()
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_resident_bytes(int(child)) for child in children)


def median(values: Iterable[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def seconds(value: float) -> str:
    """`3.42 s`, or `41 s` from ten on."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def mebibytes(value: int) -> str:
    """`212 MiB`."""
    return f"{value / MIB:,.0f} MiB"


def header(title: str) -> None:
    """Print what every table stands under: the command, the machine and how busy it was."""
    module = Path(sys.argv[0]).stem
    command = " ".join(["python -m", f"benchmarks.{module}", *sys.argv[1:]])
    print(f"\n### {title}\n")
    machine = f"{_cpu()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"
    print(f"`{command}` on {machine}; load average at the start {os.getloadavg()[0]:.1f}\n", flush=True)


def _cpu() -> str:
    """Model name, with family and model number where the name alone says little."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    name = fields.get("model name", platform.machine())
    return f"{name} (family {fields.get('cpu family')}, model {fields.get('model')})"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table, the first column to the left and the others to the right."""
    print(f"| {' | '.join(columns)} |")
    print(f"|---|{'--:|' * (len(columns) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
