"""A large file over HTTP: resumed after a break or a kill, checked by length and digest, in place only when whole.

Owns `<target>.partial` and `<target>.partial.json` (what the partial belongs to). It must not know what is downloaded.
Two processes must not download to the same target at the same time.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from retrieval_eval.digest import sha256_of
from retrieval_eval.http import (
    STORAGE_TROUBLE,
    Deadline,
    Http,
    Incoming,
    TransferError,
    backoff_s,
    host_of,
    retry_after_s,
)


def download(http: Http, url: str, target: Path, *, sha256: str | None, max_bytes: int, deadline_s: float) -> None:
    """Fetch `url` into `target`; an existing `target` is replaced only by a whole, verified file.

    Continues `target.partial` where the server's strong ETag still is the one it was begun with; begins anew
    otherwise. Attempts that bring no new byte are limited to `http.tries` in a row, everything by `deadline_s`.
    `sha256` is 64 hex digits. Raises `TransferError`; the partial stays for the next call, except after a wrong digest.
    """
    deadline = http.deadline(deadline_s)
    part = _Partial(target.with_name(f"{target.name}.partial"), target.with_name(f"{target.name}.partial.json"), url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _fill(http, part, max_bytes, deadline)
        _verify(part, sha256)
        part.data.replace(target)
        part.note.unlink(missing_ok=True)
    except OSError as error:
        raise TransferError(f"cannot write {target.name}: {error.strerror or error}", is_final=True) from error


@dataclass(frozen=True, slots=True)
class _Note:
    """What a partial belongs to: digest of the URL (which may be secret), strong ETag or "", whole size or None."""

    url_sha256: str
    etag: str
    size: int | None


@dataclass(frozen=True, slots=True)
class _Partial:
    data: Path
    note: Path
    url: str

    def size(self) -> int:
        return self.data.stat().st_size if self.data.is_file() else 0

    def read_note(self) -> _Note | None:
        """None where there is nothing that can be continued."""
        try:
            note = _Note(**json.loads(self.note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return note if note.url_sha256 == _digest(self.url) and note.etag else None

    def write_note(self, etag: str, size: int | None) -> None:
        note = _Note(_digest(self.url), etag, size)
        self.note.write_text(json.dumps(asdict(note)), encoding="utf-8")

    def drop(self) -> None:
        self.note.unlink(missing_ok=True)
        self.data.unlink(missing_ok=True)


def _fill(http: Http, part: _Partial, max_bytes: int, deadline: Deadline) -> None:
    best, failures = part.size(), 0
    while True:
        try:
            return _attempt(http, part, max_bytes, deadline)
        except TransferError as error:
            have = part.size()
            failures = 1 if have > best else failures + 1
            best = max(best, have)
            if error.is_final or failures >= http.tries:
                raise
            if not deadline.wait(max(backoff_s(failures), error.retry_after_s)):
                raise


def _attempt(http: Http, part: _Partial, max_bytes: int, deadline: Deadline) -> None:
    note, offset = part.read_note(), part.size()
    if note is None or offset == 0:
        note, offset = None, 0
    elif offset == note.size:
        return
    headers = {} if note is None else {"Range": f"bytes={offset}-", "If-Range": note.etag}
    with http.stream(part.url, headers, deadline) as incoming:
        start, size = _placed(incoming, part, note, offset)
        if size is not None and size > max_bytes:
            raise TransferError(f"the file has {size} bytes, at most {max_bytes} are allowed", is_final=True)
        part.write_note(_strong_etag(incoming) or (note.etag if note and start else ""), size)
        _append(incoming, part, start, max_bytes)
    if size is not None and part.size() != size:
        if part.size() > size:
            part.drop()
        raise TransferError(f"{host_of(part.url)} sent other than the {size} bytes it announced")


def _placed(incoming: Incoming, part: _Partial, note: _Note | None, offset: int) -> tuple[int, int | None]:
    """Where the body belongs and how large the file is, if the server said so."""
    host = host_of(part.url)
    if incoming.headers.get("content-encoding", "identity") != "identity":
        raise TransferError(f"{host} sent the file in another encoding than asked for", is_final=True)
    if incoming.status == 200:
        length = re.fullmatch(r"[0-9]{1,18}", incoming.headers.get("content-length", ""))
        return 0, int(length[0]) if length else None
    if note is not None and incoming.status in {206, 416}:
        found = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18}|\*)", incoming.headers.get("content-range", ""))
        if incoming.status == 206 and found and int(found[1]) == offset:
            size = note.size if found[2] == "*" else int(found[2])
            if incoming.headers.get("etag", note.etag) == note.etag and size == (note.size or size):
                return offset, size
        part.drop()
        raise TransferError(f"{host} no longer has the file that was begun")
    raise TransferError(
        f"{host} answered {incoming.status}",
        status=incoming.status,
        is_final=incoming.status not in STORAGE_TROUBLE,
        retry_after_s=retry_after_s(incoming.headers),
    )


def _append(incoming: Incoming, part: _Partial, start: int, max_bytes: int) -> None:
    with part.data.open("ab" if start else "wb") as file:
        written = start
        for chunk in incoming.chunks():
            written += len(chunk)
            if written > max_bytes:
                raise TransferError(f"the file has more than the {max_bytes} bytes allowed", is_final=True)
            file.write(chunk)


def _verify(part: _Partial, sha256: str | None) -> None:
    if sha256 is None:
        return
    found = sha256_of(part.data)
    if found != sha256.lower():
        part.drop()
        raise TransferError(f"the file has sha256 {found}, expected {sha256.lower()}", is_final=True)


def _strong_etag(incoming: Incoming) -> str:
    etag = incoming.headers.get("etag", "")
    return etag if etag.startswith('"') else ""


def _digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()
