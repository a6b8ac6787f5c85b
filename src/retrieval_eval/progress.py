"""How far a long stage has come: the protocol, and a plain line at most every ten seconds where there is no terminal.

Owns when a line is written and what it says; bars are `terminal.py`'s. It never changes what a stage does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from retrieval_eval import figures

FIRST_LINE_S = 1.0
NEXT_LINE_S = 10.0


class Stage(Protocol):
    """A stage that is under way."""

    def advance(self, n: int = 1) -> None:
        """Count `n` more units as done."""
        ...


class Progress(Protocol):
    """Where stages report to."""

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]:
        """Open a stage of `total` units (None: not known); `unit` is a plural noun such as `sessions`."""
        ...


class Lines:
    """`embed: 1,240 of 19,195 sessions (6 %), 10.3 sessions/s, 29 min left`: after 1 s, every 10 s, and at the end."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream, self._clock = stream, clock

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        """Open a stage; its last line is written also when it is interrupted or fails."""
        counted = _CountedStage(self._stream, self._clock, (name, total, unit))
        try:
            yield counted
        finally:
            counted.finish()


class _CountedStage:
    def __init__(self, stream: TextIO, clock: Callable[[], float], what: tuple[str, int | None, str]) -> None:
        self._stream, self._clock = stream, clock
        self._name, self._total, self._unit = what
        self._done, self._started_s = 0, clock()
        self._due_s = self._started_s + FIRST_LINE_S

    def advance(self, n: int = 1) -> None:
        """Count, and write a line when one is due."""
        self._done += n
        now_s = self._clock()
        if now_s >= self._due_s:
            self._due_s = now_s + NEXT_LINE_S
            self._write(now_s - self._started_s, is_last=False)

    def finish(self) -> None:
        """Write the last line, with the time taken."""
        self._write(self._clock() - self._started_s, is_last=True)

    def _write(self, elapsed_s: float, *, is_last: bool) -> None:
        rate = self._done / elapsed_s if elapsed_s > 0 else 0.0
        parts = [self._count()]
        if rate:
            parts.append(f"{rate:,.1f} {self._unit}/s")
        if is_last:
            parts.append(f"took {figures.duration(elapsed_s)}")
        elif rate and self._total is not None and self._total > self._done:
            parts.append(f"{figures.duration((self._total - self._done) / rate)} left")
        self._stream.write(f"{self._name}: {', '.join(parts)}\n")
        self._stream.flush()

    def _count(self) -> str:
        done = figures.count(self._done)
        if self._total is None or self._done == self._total:
            return f"{done} {self._unit}"
        return f"{done} of {figures.count(self._total)} {self._unit} ({figures.percent(self._done, self._total)})"
