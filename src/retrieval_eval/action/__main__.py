"""The container action's way in: the runner's variables to a job, the stages in order, errors to exit codes.

Owns signals, exit codes and what is left behind: it belongs to the workspace's owner. Numbers never set the exit code.
Run as `python -I -m retrieval_eval.action`, so that nothing of the checkout is imported.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from retrieval_eval import __version__
from retrieval_eval.action.delivery import Document, deliver, make_room, publish_comment
from retrieval_eval.action.job import Job, check_places
from retrieval_eval.action.preparation import Preparation, find_dataset
from retrieval_eval.action.settings import Mode, read_settings
from retrieval_eval.compare import with_comparison
from retrieval_eval.dataset.download import ENDPOINT
from retrieval_eval.errors import InputError
from retrieval_eval.exits import EXIT_BUG, EXIT_INPUT, EXIT_INTERRUPTED, EXIT_OK, ISSUES_URL
from retrieval_eval.github.actions_cache import ServiceEnv
from retrieval_eval.github.log import ActionsLog
from retrieval_eval.github.runner import RunnerEnvironment, hand_over, read_environment
from retrieval_eval.http import Http
from retrieval_eval.models import find
from retrieval_eval.pipeline import Effects, Model, Prepared, RunRequest, run
from retrieval_eval.progress import Lines
from retrieval_eval.report.schema import load, validate

SERVICE_OVERRIDE = "RETRIEVAL_EVAL_CACHE_SERVICE"
"""A variable, for odd runners: `v1`, `v2` or `off`."""


def main() -> int:
    """Run one step. 0: done, whatever the numbers; 2: wrong input; 1: our own bug; 130: interrupted."""
    _interrupt_on_signals()
    log = ActionsLog(time.monotonic)
    log.attach()
    try:
        environment = read_environment(os.environ)
        log.mask(environment.token)
        log.info(f"retrieval-eval {__version__}")
        _step(environment, os.environ, log)
    except InputError as error:
        log.error(str(error))
        return EXIT_INPUT
    except KeyboardInterrupt:
        log.info("Interrupted: nothing was saved.")
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence: name it, and say where to report it
        log.info(traceback.format_exc())
        log.error(f"{type(error).__name__}: {error}. This is our mistake, please report it: {ISSUES_URL}")
        return EXIT_BUG
    return EXIT_OK


def _interrupt_on_signals() -> None:
    """The first SIGINT or SIGTERM interrupts; what follows it must not cut the tidying up short.

    The first process of a container ignores SIGTERM unless it handles it.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupt)


def _step(environment: RunnerEnvironment, environ: Mapping[str, str], log: ActionsLog) -> None:
    with log.group("Settings") as stage:
        settings = read_settings(environ)
        service = ServiceEnv.from_env(environ, environ.get(SERVICE_OVERRIDE, ""))
        log.mask(service.token)
        stage.figures = f"mode {settings.mode}, event {environment.event_name or 'none'}, {service.reason}"
    left = [settings.cache_path, settings.report_path, settings.comment_folder, environ.get("HF_HOME", "")]
    with _tidied(environment, [path for path in left if path], log) as scratch:
        os.environ.setdefault("HF_HOME", str(scratch / "hub"))  # huggingface_hub and measured programs read it there
        job = Job(
            environment=environment,
            settings=settings,
            log=log,
            http=Http(),
            service=service,
            effects=Effects(Lines(sys.stdout, time.monotonic), time.monotonic),
            scratch=scratch,
            endpoint=environ.get("HF_ENDPOINT", "") or ENDPOINT,
        )
        if settings.mode is Mode.PUBLISH:
            publish_comment(job)
        else:
            _measure(job)


@contextmanager
def _tidied(environment: RunnerEnvironment, paths: Sequence[str], log: ActionsLog) -> Iterator[Path]:
    """A scratch folder that goes away; in the end `paths` of the workspace are its owner's, whatever happens."""
    made = [_topmost_new(environment.workspace, path) for path in paths]
    try:
        with tempfile.TemporaryDirectory(
            prefix="retrieval-eval-", dir=environment.temporary, ignore_cleanup_errors=True
        ) as scratch:
            yield Path(scratch)
    finally:
        for problem in hand_over(environment, made):
            log.info(f"not given to the workspace's owner: {problem}")


def _topmost_new(workspace: Path, path: str) -> Path:
    """The first folder on the way to `path` that is not there yet, else the path itself."""
    whole = workspace / path
    missing = [folder for folder in whole.parents if folder.is_relative_to(workspace) and not folder.exists()]
    return missing[-1] if missing else whole


def _measure(job: Job) -> None:
    settings = job.settings
    check_places(job)
    make_room(job)
    base = load(job.environment.workspace / settings.compare_report) if settings.compare_report else None
    with job.log.group("Model") as stage:
        model = find(settings.model, settings.model_revision, settings.backend.value)
        stage.figures = f"{model.identity.name} {model.identity.content[:24]}"
    with job.log.group("Restore the embedding cache") as stage:
        preparation = Preparation(job, model, find_dataset(job, settings.dataset or ""))
        stage.figures = preparation.restore()
    document = preparation.use(
        lambda prepared: _report(job, model, prepared, is_restored=bool(preparation.hit.matched_key))
    )
    if base is not None:
        document = with_comparison(document, base, str(settings.compare_report))
    deliver(job, document, preparation.hit)


def _report(job: Job, model: Model, prepared: Prepared, *, is_restored: bool) -> Document:
    """Run on the prepared cache. The report tells what this job embedded, also where it needed no prep.

    What a restored cache says of its data file is checked in the report, by `ReportError`.
    """
    settings = job.settings
    request = RunRequest(
        job.cache_folder, settings.retriever, base=settings.compare_retriever, lanes=settings.lane, ks=settings.k
    )
    with job.log.group("Run") as stage:
        document = run(request, lambda _: model, job.effects)
        lane, k = document["headline"]["lane"], document["headline"]["k"]
        overall = document["lanes"][lane]["overall"]
        stage.figures = f"{lane} recall at {k}: {overall['recall'][str(k)]['fraction']:.4f}, n = {overall['n']}"
    document = {**document, "cache": {"reused": prepared.reused, "embedded": prepared.embedded}}
    if is_restored:
        validate(document, "the report")
    return document


if __name__ == "__main__":
    sys.exit(main())
