"""The image, built and run for real, as the runner runs a container action."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from typing import Any

import psutil

HEAD = "a" * 40


def figures(done: Any) -> tuple[int, int]:
    assert done.code == 0, done.log
    return done.report["cache"]["reused"], done.report["cache"]["embedded"]


def pull_event(head_repository: str) -> dict[str, object]:
    head = {"sha": HEAD, "repo": {"full_name": head_repository}}
    return {"number": 7, "pull_request": {"number": 7, "head": head, "base": {"repo": {"full_name": "acme/widgets"}}}}


def test_a_miss_is_saved_a_hit_embeds_nothing_and_one_more_session_embeds_one(job, cache_service, make_dataset) -> None:
    first = job.step()
    assert figures(first) == (0, 12)
    assert first.outputs["cache-hit"] == "false"
    assert job.owners() == {1234}

    job.fresh_checkout()
    second = job.step()
    assert figures(second) == (12, 0)
    assert second.outputs["cache-hit"] == "true"
    assert second.report["lanes"] == first.report["lanes"]

    job.fresh_checkout()
    job.write(make_dataset(extra_sessions=1))
    grown = job.step()
    assert figures(grown) == (12, 1)
    assert grown.outputs["cache-matched-key"] == second.outputs["cache-matched-key"]
    assert not (first.annotations("warning") + second.annotations("warning") + grown.annotations("warning"))


def test_a_comment_is_updated_and_never_doubled(job, comments, make_dataset) -> None:
    job.event("pull_request", pull_event("acme/widgets"))
    first = job.step({"cache": "false"})
    job.write(make_dataset()[:2])
    second = job.step({"cache": "false"})
    assert first.code == second.code == 0, first.log + second.log
    assert first.outputs["comment-url"] == second.outputs["comment-url"] != ""
    (body,) = comments.bodies()
    assert "n = 2" in body


def test_a_forks_run_degrades_and_puts_its_comment_aside(job, comments) -> None:
    job.event("pull_request", pull_event("stranger/widgets"))
    comments.fault("read_only")
    done = job.step({"cache": "false"})
    assert done.code == 0, done.log
    assert done.outputs["n"] == "3"
    assert done.summary.startswith("### Retrieval: recall@5")
    (warning,) = done.annotations("warning")
    assert "from a fork" in warning
    folder = job.workspace / done.outputs["comment-folder"]
    assert json.loads((folder / "comment.json").read_text())["number"] == 7
    assert job.owners() == {1234}


def test_a_module_of_the_checkout_is_not_imported(job) -> None:
    for name in ("requests.py", "sitecustomize.py"):
        (job.workspace / name).write_text("open('/github/workspace/imported', 'w').close()\n")
    job.variables["PYTHONPATH"] = "/github/workspace"
    assert job.step({"cache": "false"}).code == 0
    assert not (job.workspace / "imported").exists()


def test_the_sample_runs_without_anything_in_the_workspace_but_a_model(job) -> None:
    done = job.step({"dataset": "sample", "cache": "false"})
    assert done.code == 0, done.log
    assert int(done.outputs["n"]) >= 24


def test_wrong_input_is_exit_code_2(job) -> None:
    done = job.step({"k": "0"})
    assert done.code == 2
    assert len(done.annotations("error")) == 1


def test_sigterm_ends_it_with_130_and_no_half_written_cache(job, cache_service, make_dataset, buildah) -> None:
    job.write(make_dataset(extra_sessions=3000))
    container = buildah("from", "--pull-never", job.image)
    try:
        process = job.start(container, {})
        log = ""
        for line in process.stdout:
            log += line
            if "::group::Prep" in line:
                _python_of(process).send_signal(signal.SIGTERM)
                break
        log += process.communicate(timeout=60)[0]
    finally:
        buildah("rm", container)
    assert process.returncode == 130, log
    assert not (job.workspace / ".embcache" / "manifest.json").exists()
    assert job.owners() == {1234}
    with urllib.request.urlopen(f"{cache_service}_control/state") as reply:
        assert json.load(reply)["entries"] == []


def _python_of(process: subprocess.Popen[str]) -> psutil.Process:
    """The action's process among those that buildah started for us."""
    children = psutil.Process(process.pid).children(recursive=True)
    return next(child for child in children if "-I" in child.cmdline() and "python" in child.cmdline()[0])


def test_a_change_of_our_code_keeps_the_layer_of_dependencies(image, other_image, buildah) -> None:
    layers = [
        json.loads(buildah("inspect", "--type", "image", name))["OCIv1"]["rootfs"]["diff_ids"]
        for name in (image, other_image)
    ]
    assert layers[0][:-1] == layers[1][:-1]
    assert layers[0][-1] != layers[1][-1]


def test_the_image_says_what_it_is_and_starts_isolated_as_root(image, buildah) -> None:
    config = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    assert config["Entrypoint"] == ["python", "-I", "-m", "retrieval_eval.action"]
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"
    assert config["Labels"]["org.opencontainers.image.source"].startswith("https://github.com/")
    assert config.get("User", "") == ""


def test_the_image_has_what_it_needs_and_no_torch(image, buildah) -> None:
    container = buildah("from", "--pull-never", image)
    try:
        listed = buildah("run", container, "--", "sh", "-c", "ls /opt/retrieval-eval/lib/python3.*/site-packages")
    finally:
        buildah("rm", container)
    names = set(listed.split())
    assert {"retrieval_eval", "onnxruntime", "zstandard"} <= names
    assert not {"torch", "pip", "tests", "pytest"} & names


def test_the_base_is_python_3_13(image, buildah) -> None:
    container = buildah("from", "--pull-never", image)
    try:
        assert buildah("run", container, "--", "python", "--version").startswith("Python 3.13.")
    finally:
        buildah("rm", container)
