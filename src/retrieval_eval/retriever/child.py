"""A running program of the user's: bytes in, lines out, and its end.

Owns the process, its session and its pipes, in one thread: whenever it waits for one pipe it serves the others, so
that neither side can block the other by writing. It knows no message. POSIX only.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from retrieval_eval.errors import RetrieverError

_CHUNK_BYTES = 2**18
_PIPE_BYTES = 2**20
_STDERR_LINES = 10
_STDERR_LINE_CHARS = 500
_DRAIN_S = 1.0
_SWEEPS = 5


class Child:
    """One process, leader of its own session, with a temporary folder (`TMPDIR`) that goes when it goes.

    That variable also tells which processes it started, wherever they moved: they are killed with it.

    `where` in the methods is the beginning of every error message: which retriever, which question.
    """

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], log: Callable[[str], None], max_line_bytes: int
    ) -> None:
        self._log = log
        self._max_line_bytes = max_line_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="retriever-", ignore_cleanup_errors=True)
        try:
            self._process = _started(command, {**env, "TMPDIR": self._folder.name})
        except RetrieverError:
            self._folder.cleanup()
            raise
        assert self._process.stdin and self._process.stdout and self._process.stderr  # noqa: S101 (for mypy: all are pipes)
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        _widen(self._stdin)
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        self._lines: deque[bytes] = deque()
        self._partial = bytearray()
        self._unread_bytes = 0
        self._stdout_open = True
        self._stderr_partial = b""
        self._stderr_tail: deque[str] = deque(maxlen=_STDERR_LINES)

    def write(self, data: bytes, *, timeout_s: float, where: str) -> None:
        """Hand over all of `data`. Raises `RetrieverError` when the program does not take it in time or is gone."""
        try:
            self._write(memoryview(data), timeout_s, where)
        except BrokenPipeError as error:
            raise self._gone(where) from error

    def _write(self, rest: memoryview, timeout_s: float, where: str) -> None:
        deadline = time.monotonic() + timeout_s
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while rest:
                if not self._serve(deadline):
                    raise self._late(timeout_s, "did not read its input", where)
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._stdin.fileno(), rest[:_CHUNK_BYTES]) :]
                self._check_unread(where)
        finally:
            self._selector.unregister(self._stdin)

    def read_line(self, *, timeout_s: float, where: str) -> bytes:
        """The next line of stdout without its end. Raises `RetrieverError` on time-out, exit or a huge line."""
        deadline = time.monotonic() + timeout_s
        while not self._lines:
            self._check_unread(where)
            if not self._stdout_open:
                raise self._gone(where)
            if not self._serve(deadline) and not self._lines:
                raise self._late(timeout_s, "gave no answer", where)
        line = self._lines.popleft()
        self._unread_bytes -= len(line)
        return line

    def end(self, *, wait_s: float, term_s: float) -> None:
        """Close its stdin, give it `wait_s` to leave, then SIGTERM, `term_s` later SIGKILL, to it and its children."""
        with suppress(OSError):
            self._stdin.close()
        if not self._exited_within(wait_s):
            self._signal(signal.SIGTERM)
            if not self._exited_within(term_s):
                self._log(f"did not end within {term_s:g} s of SIGTERM; killed")
        self._signal(signal.SIGKILL)
        self._process.wait()
        _kill_marked(self._folder.name)
        self._drain()
        self._selector.close()
        self._stdout.close()
        self._stderr.close()
        self._folder.cleanup()

    @property
    def exit_code(self) -> int | None:
        """As `subprocess` gives it: negative for a signal, None while it runs."""
        return self._process.poll()

    def _serve(self, deadline: float) -> bool:
        """Wait until a pipe is ready and read what it holds; False when the deadline passed."""
        ready = self._selector.select(max(0.0, deadline - time.monotonic()))
        for key, _ in ready:
            if key.fileobj is self._stdout:
                self._read_stdout()
            elif key.fileobj is self._stderr:
                self._read_stderr()
        return time.monotonic() < deadline

    def _read_stdout(self) -> None:
        chunk = os.read(self._stdout.fileno(), _CHUNK_BYTES)
        if not chunk:
            self._stdout_open = False
            self._selector.unregister(self._stdout)
            return
        self._unread_bytes += len(chunk)
        *whole, last = chunk.split(b"\n")
        for piece in whole:
            self._lines.append(bytes(self._partial) + piece)
            self._partial.clear()
            self._unread_bytes -= 1
        self._partial += last

    def _read_stderr(self) -> None:
        chunk = os.read(self._stderr.fileno(), _CHUNK_BYTES)
        if not chunk:
            self._selector.unregister(self._stderr)
        *lines, self._stderr_partial = (self._stderr_partial + (chunk or b"\n")).split(b"\n")
        if len(self._stderr_partial) > _CHUNK_BYTES:
            lines, self._stderr_partial = [*lines, self._stderr_partial], b""
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip()[:_STDERR_LINE_CHARS]
            if line:
                self._stderr_tail.append(line)
                self._log(line)

    def _check_unread(self, where: str) -> None:
        if self._unread_bytes > self._max_line_bytes:
            raise RetrieverError(
                "stdout holds too much for one answer",
                where=where,
                got=f"{self._unread_bytes:,} bytes",
                expected=f"at most {self._max_line_bytes:,}",
            )

    def _late(self, timeout_s: float, what: str, where: str) -> RetrieverError:
        return RetrieverError(f"{what} within {timeout_s:g} s", where=where, got=self._last_words())

    def _gone(self, where: str) -> RetrieverError:
        if not self._exited_within(1.0):
            return RetrieverError("closed its stdin or stdout but runs on", where=where, got=self._last_words())
        self._drain()
        code = self._process.returncode
        how = f"exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"
        return RetrieverError("ended before it answered", where=where, got=f"{how}, {self._last_words()}")

    def _last_words(self) -> str:
        if not self._stderr_tail:
            return "nothing on stderr"
        return f"last lines of stderr: {' | '.join(self._stderr_tail)!a}"

    def _exited_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            now = time.monotonic()
            if now >= deadline:
                return False
            self._serve(min(deadline, now + 0.02))
            self._lines.clear()
            self._partial.clear()
        return True

    def _drain(self) -> None:
        """Take what an ended process left in its pipes, not for long: a grandchild may hold them open, or fill them."""
        deadline = time.monotonic() + _DRAIN_S
        while any(key.fileobj is not self._stdin for key, _ in self._selector.select(0)):
            self._serve(0.0)
            self._lines.clear()
            self._partial.clear()
            if time.monotonic() > deadline:
                return

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _started(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            list(command), stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True, bufsize=0
        )
    except (OSError, ValueError) as error:
        raise RetrieverError(
            "cannot be started",
            where=f"retriever {command[0]!r}",
            got=str(error),
            hint="give the path of a program that can be executed here, and its arguments",
        ) from error


def _kill_marked(folder: str) -> None:
    """Kill what a program left running: every process whose `TMPDIR` is its folder, in whatever session. Linux only."""
    mark = f"\0TMPDIR={folder}\0".encode()
    for _ in range(_SWEEPS):  # one that forks while it is looked for is found by the next sweep
        found = 0
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in b"\0" + (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
                    found += 1
        if not found:
            return


def _widen(pipe: IO[bytes]) -> None:
    """Let the pipe hold a persona's rows, so that we need not wait while the program works on an earlier one.

    Linux only; the system may refuse, and then it holds 64 KiB as ever.
    """
    with suppress(AttributeError, OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
