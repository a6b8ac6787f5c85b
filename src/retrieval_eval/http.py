"""Home of requests (and urllib3 under it): one HTTP exchange, with time-outs, retries and a deadline over all of it.

Owns sessions, what is retried and what never leaves: no netrc is read, no Authorization follows a redirect, and no
message holds more of a URL than its host, because queries of signed URLs are secrets. It must not know any service.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

log = logging.getLogger(__name__)

SERVER_TROUBLE = frozenset({500, 502, 503, 504})
"""Statuses that mean "not now" for an API call."""

STORAGE_TROUBLE = SERVER_TROUBLE | {408, 429}
"""The same for blob storage and file downloads, where asking again is expected."""

MAX_REPLY_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class TransferError(Exception):
    """An exchange that did not succeed: the connection, the time allowed, a length, a digest or a status.

    `reason` is one sentence that names the host at most. `status` is set where a server answered; `is_final` where
    trying again at once is no use; `retry_after_s` is what the server asked for, 0 where it asked for nothing.
    """

    def __init__(
        self, reason: str, *, status: int | None = None, is_final: bool = False, retry_after_s: float = 0.0
    ) -> None:
        self.reason, self.status, self.is_final, self.retry_after_s = reason, status, is_final, retry_after_s
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Clock:
    """Where seconds come from and how to wait; tests hand in their own."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Deadline:
    """A time budget in seconds over everything that is done under it, waits included."""

    def __init__(self, clock: Clock, budget_s: float) -> None:
        self.clock, self.budget_s = clock, budget_s
        self._end = clock.monotonic() + budget_s

    def left_s(self) -> float:
        """Seconds that remain; negative once it is over."""
        return self._end - self.clock.monotonic()

    def check(self) -> None:
        """Raise `TransferError` once the budget is used up."""
        if self.left_s() <= 0:
            raise TransferError(f"gave up after {self.budget_s:g} s", is_final=True)

    def wait(self, seconds: float) -> bool:
        """Wait, or return False at once where the budget would be over by then."""
        if seconds >= self.left_s():
            return False
        self.clock.sleep(seconds)
        return True


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A body that is read from a file while it is sent, from `start`, `size` bytes; each attempt opens it anew."""

    path: Path
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Request:
    """What `Http.send` sends. `retry_on` are the statuses after which it tries again."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | FileSlice = b""
    retry_on: frozenset[int] = SERVER_TROUBLE


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; `headers` are lower-cased, `tries` says how often was asked until it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    tries: int


class Incoming:
    """An answer whose body is still to come. `headers` are lower-cased."""

    def __init__(self, response: requests.Response, deadline: Deadline) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response, self._deadline = response, deadline

    def chunks(self) -> Iterator[bytes]:
        """The body as it was sent, piece by piece. Raises `TransferError` where it is cut or too slow."""
        while True:
            self._deadline.check()
            with _translated(self._response.url):
                data: bytes = self._response.raw.read1(_CHUNK_BYTES, decode_content=False)
            if not data:
                return
            yield data


class _Session(requests.Session):
    """A session that takes credentials from nowhere but the headers it is given, and keeps them from other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.max_redirects = 5
        self.headers.update({"Accept-Encoding": "identity", "User-Agent": "retrieval-eval"})
        self.auth = lambda request: request  # an auth of our own that adds nothing: without one, requests reads netrc

    def rebuild_auth(
        self,
        prepared_request: requests.PreparedRequest,
        response: requests.Response,  # noqa: ARG002 - requests passes both
    ) -> None:
        """Called on redirects, where requests would consult netrc again."""
        prepared_request.headers.pop("Authorization", None)


class Http:
    """Exchanges over one session. Proxies and CA bundles come from the environment, as everywhere."""

    def __init__(
        self,
        session: requests.Session | None = None,
        *,
        clock: Clock | None = None,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 30.0,
        tries: int = 3,
    ) -> None:
        self._session = session or _Session()
        self.clock = clock or Clock()
        self.tries = tries
        self._timeouts_s = (connect_timeout_s, read_timeout_s)

    def deadline(self, budget_s: float) -> Deadline:
        """A budget that starts now, on this object's clock."""
        return Deadline(self.clock, budget_s)

    def send(self, request: Request, deadline: Deadline) -> Reply:
        """Send, and ask again up to `tries` times in all; redirects are not followed.

        Any status is a reply, also one of `retry_on` that stayed. Raises `TransferError` where no answer came, where it
        is over 1 MiB, or where the deadline is over.
        """
        attempt = 1
        while True:
            pause_s = backoff_s(attempt)
            try:
                reply = self._attempt(request, deadline, attempt)
            except TransferError as error:
                log.debug("%s, try %d: %s", request.method, attempt, error.reason)
                if error.is_final or attempt >= self.tries or not deadline.wait(pause_s):
                    raise
            else:
                log.debug("%s %s, try %d: %d", request.method, host_of(request.url), attempt, reply.status)
                if reply.status not in request.retry_on or attempt >= self.tries:
                    return reply
                if not deadline.wait(max(pause_s, retry_after_s(reply.headers))):
                    return reply
            attempt += 1

    @contextmanager
    def stream(self, url: str, headers: Mapping[str, str], deadline: Deadline) -> Iterator[Incoming]:
        """One GET, redirects followed, whose body is read inside the context. Raises `TransferError`."""
        if any(name.lower() == "authorization" for name in headers):
            raise ValueError("a request that follows redirects carries no Authorization")
        with self._open(Request("GET", url, headers), deadline, follow=True) as response:
            yield Incoming(response, deadline)

    def _attempt(self, request: Request, deadline: Deadline, attempt: int) -> Reply:
        with self._open(request, deadline, follow=False) as response:
            incoming, body = Incoming(response, deadline), bytearray()
            for chunk in incoming.chunks():
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise TransferError(f"{host_of(request.url)} answered with more than 1 MiB", is_final=True)
            return Reply(incoming.status, incoming.headers, bytes(body), attempt)

    @contextmanager
    def _open(self, request: Request, deadline: Deadline, *, follow: bool) -> Iterator[requests.Response]:
        deadline.check()
        connect_s, read_s = (max(0.001, min(limit, deadline.left_s())) for limit in self._timeouts_s)
        with _body(request.body, deadline) as data, _translated(request.url):
            response = self._session.request(
                request.method,
                request.url,
                headers=dict(request.headers),
                data=data,
                stream=True,
                allow_redirects=follow,
                timeout=(connect_s, read_s),
            )
        try:
            yield response
        finally:
            response.close()


class _SliceReader:
    """Hands a slice to the connection in small reads, so that time-outs count per read and the deadline is kept."""

    def __init__(self, source: FileSlice, deadline: Deadline) -> None:
        self._file = source.path.open("rb")
        self._file.seek(source.start)
        self._left, self._deadline = source.size, deadline

    def __len__(self) -> int:
        return self._left

    def read(self, size: int = -1) -> bytes:
        self._deadline.check()
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


@contextmanager
def _body(body: bytes | FileSlice, deadline: Deadline) -> Iterator[bytes | _SliceReader]:
    if isinstance(body, bytes):
        yield body
        return
    reader = _SliceReader(body, deadline)
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Turn what requests and urllib3 raise into `TransferError`. Their texts quote whole URLs, so none is passed on."""
    try:
        yield
    except (requests.RequestException, HTTPError, OSError, UnicodeError) as error:
        raise TransferError(f"{host_of(url)} {_trouble(error)}") from None


def _trouble(error: Exception) -> str:
    if isinstance(error, requests.Timeout) or "Timeout" in type(error).__name__:
        return "did not answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "could not be reached: TLS failed"
    if isinstance(error, requests.ConnectionError | HTTPError | OSError):
        return "could not be reached, or closed the connection"
    return f"could not be asked ({type(error).__name__})"


def host_of(url: str) -> str:
    """The host of a URL for people: never its path, query or credentials."""
    try:
        return urlsplit(url).hostname or "a URL without a host"
    except ValueError:
        return "a malformed URL"


def backoff_s(attempt: int) -> float:
    """Seconds to wait after failed attempt 1, 2, 3 …: 1, 2, 4 … up to 30."""
    return min(30.0, float(2 ** (attempt - 1)))


def retry_after_s(headers: Mapping[str, str]) -> float:
    """The seconds of `retry-after` (lower-cased headers); 0 where it is missing or a date."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else 0.0
