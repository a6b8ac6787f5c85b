"""The image: how large its parts are, and a warm run of the action on the sample beside a container that does nothing.

Needs root, buildah and an image, which `python -m pytest tests/image` makes. Says so where they are missing.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import header, median, seconds, shared, table

BUILDAH = shutil.which("buildah") or ""
IMAGE = "localhost/retrieval-eval-test"
ENVIRONMENT = {**os.environ, "STORAGE_DRIVER": "overlay", "BUILDAH_ISOLATION": "chroot"}
ENTRY = ("python", "-I", "-m", "retrieval_eval.action")
MOUNTS = ("workspace", "home", "files")
PACKAGES = "/opt/retrieval-eval/lib/python3.13/site-packages"
LARGEST = 8
MB = 1_000_000


def _buildah(*arguments: str) -> str:
    done = subprocess.run([BUILDAH, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"buildah {arguments[0]} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _run(image: str, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> tuple[float, str]:
    """Seconds from the making of a container to its removal, and what `command` printed in it."""
    started_s = time.perf_counter()
    container = _buildah("from", "--pull-never", image).strip()
    try:
        said = _buildah(
            "run",
            "--network=host",
            "--workingdir=/github/workspace",
            *(f"--volume={folder / name}:/github/{name}" for name in MOUNTS),
            *(f"--env={name}={value}" for name, value in variables.items()),
            container,
            "--",
            *command,
        )
    finally:
        _buildah("rm", container)
    return time.perf_counter() - started_s, said


def _variables(url: str) -> dict[str, str]:
    """A push on a runner whose cache service is at `url`."""
    claims = {"ac": json.dumps([{"Scope": "refs/heads/main", "Permission": 3}]), "repository_id": "1"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
    return {
        "ACTIONS_RESULTS_URL": url,
        "ACTIONS_RUNTIME_TOKEN": ".".join([*parts, "x"]),
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_OUTPUT": "/github/files/output",
        "GITHUB_REPOSITORY": "acme/widgets",
        "GITHUB_RUN_ID": "1",
        "GITHUB_STEP_SUMMARY": "/github/files/summary",
        "GITHUB_WORKSPACE": "/github/workspace",
        "HOME": "/github/home",
        "INPUT_COMMENT": "off",
        "INPUT_DATASET": "sample",
        "INPUT_MODEL": "model",
    }


@contextmanager
def _cache_service(folder: Path) -> Iterator[str]:
    ready = folder / "ready.json"
    server = shared() / "tools" / "cache_standin" / "server.py"
    command = [sys.executable, str(server), "--port", "0", "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not ready.exists() and process.poll() is None:
                time.sleep(0.05)
            yield json.loads(ready.read_text(encoding="utf-8"))["url"]
        finally:
            process.terminate()


def _times(image: str, folder: Path, rounds: int) -> None:
    """Print the table of times; the first run, which embeds and saves, is not counted."""
    for name in MOUNTS:
        (folder / name).mkdir()
    shutil.copytree(shared() / "models" / "bge-small-en-v1.5", folder / "workspace" / "model")
    with _cache_service(folder) as url:
        variables = _variables(url)
        commands: dict[str, tuple[Sequence[str], dict[str, str]]] = {
            "`true`": (("true",), {}),
            "`python -c pass`": (("python", "-I", "-c", "pass"), {}),
            "the action, `lane: model-free`": (ENTRY, {**variables, "INPUT_LANE": "model-free"}),
            "the action": (ENTRY, variables),
        }
        _run(image, ENTRY, folder, variables)
        took: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, (command, given) in commands.items():
                shutil.rmtree(folder / "workspace" / ".embcache", ignore_errors=True)
                spent_s, said = _run(image, command, folder, given)
                if command is ENTRY and "Prep: not needed" not in said:
                    sys.exit(f"the cache was not hit:\n{said[-2000:]}")
                took[name].append(spent_s)
    bare = took["`true`"]
    rows = [
        (name, seconds(median(times)), f"{median(t / b for t, b in zip(times, bare, strict=True)):.1f}")
        for name, times in took.items()
    ]
    table(("in a new container", "median", "ratio to `true`"), rows)


def _sizes(image: str, folder: Path) -> None:
    """Print the table of sizes, in MB of 1,000,000 bytes; the base is what is left."""
    _, said = _run(image, ("sh", "-c", f"du -b -d 0 /opt/retrieval-eval; du -b -d 1 {PACKAGES}"), folder, {})
    found = {Path(path).name: int(size) / MB for size, path in map(str.split, said.splitlines())}
    whole = float(_buildah("images", "--noheading", "--format", "{{.Size}}", image).split()[0])
    ours = sum(size for name, size in found.items() if name.startswith("retrieval_eval"))
    environment = found["retrieval-eval"]
    parts = sorted(((size, name) for name, size in found.items() if name != "site-packages"), reverse=True)
    largest = [f"{name} {size:.0f}" for size, name in parts if not name.startswith("retrieval")][:LARGEST]
    print()
    rows = [
        ("base", f"{whole - environment:.0f}", ""),
        ("dependencies", f"{environment - ours:.0f}", ", ".join(largest)),
        ("our code", f"{ours:.0f}", ""),
        ("the image", f"{whole:.0f}", ""),
    ]
    table(("part", "MB", "of that"), rows)


def _is_possible(image: str) -> bool:
    if os.geteuid() != 0 or not BUILDAH:
        print("Skipped: this needs root and buildah.", file=sys.stderr)
        return False
    found = subprocess.run(
        [BUILDAH, "inspect", "--type", "image", image], env=ENVIRONMENT, capture_output=True, check=False
    )
    if found.returncode:
        print(f"Skipped: there is no image {image}: python -m pytest tests/image makes one.", file=sys.stderr)
    return found.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default=IMAGE, help=f"image to measure (default: {IMAGE})")
    parser.add_argument("--rounds", type=int, default=6, help="each command once a round, in turn (default: 6)")
    arguments = parser.parse_args()
    if not _is_possible(arguments.image):
        return
    header("The image")
    with tempfile.TemporaryDirectory() as name:
        _times(arguments.image, Path(name), arguments.rounds)
        _sizes(arguments.image, Path(name))


if __name__ == "__main__":
    main()
