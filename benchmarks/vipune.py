"""The real crate for `benchmarks.protocol`: built outside the checkout, with ONNX Runtime of the Python environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import onnxruntime
from benchmarks.measuring import ROOT, shared

REVISION = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"


@dataclass(frozen=True, slots=True)
class Vipune:
    """The program behind the protocol, the one that replays its calls, and what both need of the environment."""

    program: Path
    replay: Path
    variables: dict[str, str]

    def command(self, record: Path | None = None) -> tuple[str, ...]:
        """The program's command line; with `record`, every request line is also written there."""
        plain = ("env", *(f"{name}={value}" for name, value in self.variables.items()), str(self.program))
        return plain if record is None else ("sh", "-c", 'tee "$0" | "$@"', str(record), *plain)

    def direct_s(self, record: Path) -> float:
        """Seconds that the recorded calls take on the crate itself, loading its model included."""
        replay = subprocess.run(
            [str(self.replay), str(record)],
            env={**os.environ, **self.variables},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return float(replay.stdout)


def build(folder: Path) -> Vipune:
    """Build both; `folder` takes the model's place in the hub's layout. Ends the benchmark where cargo fails."""
    default = Path.home() / ".cache" / "retrieval-eval" / "cargo-target"
    target = Path(os.environ.get("RETRIEVAL_EVAL_CARGO_TARGET", default))
    library = _library(target / "onnxruntime")
    cargo = shutil.which("cargo") or sys.exit("no cargo on this machine: use --without-vipune")
    linking = {"ORT_LIB_PATH": str(library), "ORT_PREFER_DYNAMIC_LINK": "1", "CARGO_TARGET_DIR": str(target)}
    subprocess.run(
        [cargo, "build", "--locked", "--release", "--bins", "--example", "replay"],
        cwd=ROOT / "examples" / "retrievers" / "vipune",
        env={**os.environ, **linking},
        check=True,
        stdout=sys.stderr,
    )
    variables = {"HF_HOME": str(_hub(folder)), "HF_HUB_OFFLINE": "1", "LD_LIBRARY_PATH": str(library)}
    release = target / "release"
    return Vipune(release / "vipune-retriever", release / "examples" / "replay", variables)


def _library(folder: Path) -> Path:
    """The wheel's library under the names that the linker and the loader ask for."""
    [library] = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        if (folder / name).resolve() != library.resolve():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(library)
    return folder


def _hub(home: Path) -> Path:
    repository = home / "hub" / "models--BAAI--bge-small-en-v1.5"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "snapshots" / REVISION).symlink_to(shared() / "models" / "bge-small-en-v1.5")
    (repository / "refs" / REVISION).write_text(REVISION, encoding="ascii")
    return home
