"""The job log of the action: groups, annotations, masks.

Owns every workflow command, and is the only home of `actions_toolkit`, of which it uses `core` alone. What the toolkit
leaves open is closed here: it writes `info` and the lines of a message as they come, it does not flush, and it counts
no annotations. Nothing goes to `notice`. Rendering is not done here, and nothing is decided.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from actions_toolkit import core

from retrieval_eval.github.escaping import harmless

MAX_ANNOTATIONS = {"warning": 4, "error": 2}
"""Annotations per run, by level. The runner shows 10 of a kind per step and 50 per run, shared with everybody else."""

_PACKAGE = "retrieval_eval"


@dataclass(slots=True)
class Stage:
    """An open group of the log; `figures` is the line that stands under it once it is closed."""

    name: str
    figures: str = ""


class ActionsLog:
    """Writes to standard output, a line at a time, whatever threads call it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds and never goes back; it times the groups."""
        self._clock = clock
        self._lock = threading.RLock()
        self._secrets: list[str] = []
        self._annotations: Counter[str] = Counter()

    def debug(self, message: str) -> None:
        """Write lines that show only where debug logging is on."""
        for line in self._clean(message).split("\n"):
            self._write(core.debug, line)

    def info(self, message: str) -> None:
        """Write plain lines."""
        self._write(core.info, self._clean(message))

    def warning(self, message: str) -> None:
        """Annotate the run, or write plain lines once its annotations are used up."""
        self._annotate("warning", core.warning, message)

    def error(self, message: str) -> None:
        """Annotate the run with an error, or write plain lines once its annotations are used up."""
        self._annotate("error", core.error, message)

    def mask(self, secret: str) -> None:
        """Keep `secret` out of the log from here on, by the runner's masking and by our own."""
        for part in filter(None, (line.strip() for line in secret.splitlines())):
            if part not in self._secrets:
                self._secrets.append(part)
                self._write(core.set_secret, part)

    def without_secrets(self, text: str) -> str:
        """Return `text` with `***` for everything that was masked: for what leaves by other ways than the log."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    @contextmanager
    def group(self, name: str) -> Iterator[Stage]:
        """Fold what is written inside; closed by one line outside the fold: name, time, and `figures` of the stage.

        GitHub knows no groups within groups: open one at a time.
        """
        stage, started, outcome = Stage(name), self._clock(), "failed after "
        self._write(core.start_group, self._clean(name).replace("\n", " "))
        try:
            yield stage
            outcome = ""
        finally:
            self._write(core.end_group)
            parts = (f"{outcome}{self._clock() - started:.1f} s", stage.figures)
            self.info(f"{name}: {' · '.join(filter(None, parts))}")

    def attach(self) -> logging.Handler:
        """Send the package's `logging` records here; returns the handler so that the caller can remove it."""
        handler = _LogHandler(self)
        logger = logging.getLogger(_PACKAGE)
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        return handler

    def _annotate(self, level: str, command: Callable[[str], None], message: str) -> None:
        text = self._clean(message)
        with self._lock:
            self._annotations[level] += 1
            is_within = self._annotations[level] <= MAX_ANNOTATIONS[level]
        self._write(command if is_within else core.info, text if is_within else f"{level.capitalize()}: {text}")

    def _clean(self, message: str) -> str:
        return harmless(self.without_secrets(message))

    def _write(self, command: Callable[..., None], *arguments: str) -> None:
        """Call the toolkit and flush: in a container standard output is a pipe, and a late line is a lost one."""
        with self._lock:
            command(*arguments)
            sys.stdout.flush()


class _LogHandler(logging.Handler):
    """Carries `logging` records of the package into the log, by level."""

    def __init__(self, log: ActionsLog) -> None:
        super().__init__(logging.DEBUG)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            if record.levelno >= logging.ERROR:
                self._log.error(text)
            elif record.levelno >= logging.WARNING:
                self._log.warning(text)
            elif record.levelno >= logging.INFO:
                self._log.info(text)
            else:
                self._log.debug(text)
        except Exception as error:  # noqa: BLE001 - a log line never stops the program, and logging's own way out prints raw text
            self._log.info(f"a log record of {record.name} could not be written: {type(error).__name__}")
