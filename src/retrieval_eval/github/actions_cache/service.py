"""What both generations of the service have in common: the interface, refusals, and how their answers are read.

Owns the words in which a refusal is told. Texts of a service are strangers' data: shortened and freed of controls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from retrieval_eval.http import Reply, host_of

Mask = Callable[[str], None]
"""Makes the log hide a text from now on (`::add-mask::`)."""


class ServiceError(Exception):
    """The service did not do what was asked; `reason` is one sentence for a warning line."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class EntryExistsError(ServiceError):
    """Keys are immutable and this one is taken: normal life."""


class NoSuchServiceError(ServiceError):
    """Something answered, but no cache service of this generation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A found entry and where its archive can be fetched without a token."""

    matched_key: str
    url: str = field(repr=False)


class CacheService(Protocol):
    """One generation of the service. Methods raise `ServiceError`, `TransferError` and `OSError`."""

    def find(self, keys: Sequence[str], version: str) -> Entry | None:
        """The best entry for the keys, primary first, then restore keys in order; None where there is none."""
        ...

    def store(self, key: str, version: str, archive: Path) -> None:
        """Reserve the key, send the archive, commit. Raises `EntryExistsError` where the key is taken."""
        ...


def json_object(reply: Reply) -> dict[str, object] | None:
    """The reply's JSON object; None where the body is anything else."""
    try:
        found = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def text_of(found: dict[str, object], name: str) -> str:
    """A string field by its snake_case or camelCase name; empty where it is missing or of another type."""
    head, *rest = name.split("_")
    value = found.get(name, found.get(head + "".join(word.capitalize() for word in rest)))
    return value if isinstance(value, str) else ""


def plain(text: str) -> str:
    """A stranger's text for one line of ours: one line, printable, at most 200 characters."""
    words = "".join(sign if sign.isprintable() else " " for sign in text[:2000]).split()
    line = " ".join(words)
    return line if len(line) <= 200 else f"{line[:199]}…"


def refusal(reply: Reply, url: str) -> ServiceError:
    """The trouble that a status other than success means."""
    found, host = json_object(reply) or {}, host_of(url)
    said = plain(text_of(found, "msg") or text_of(found, "message"))
    if reply.status == 409 and reply.tries == 1:
        return EntryExistsError("an entry with this key is already there")
    if reply.status == 404 and "code" not in found:
        return NoSuchServiceError(f"{host} has no cache service of this version (404)")
    told = _MEANINGS.get(reply.status, f"{host} answered {reply.status}")
    if reply.status == 429 and reply.headers.get("retry-after"):
        told += f" (retry after {plain(reply.headers['retry-after'])})"
    return ServiceError(f"{told}: {said}" if said else told)


_MEANINGS = {
    401: "the service refused the token (401)",
    403: "the service refused the token (403)",
    409: "the key is taken, maybe by a first try of ours that was not answered (409)",
    422: "the service refused the request (422), as github.com does for clients of its old version",
    429: "the service takes no more requests for now (429)",
}


def hide(url: str, mask: Mask) -> str:
    """Mask the signature of a signed URL in every spelling, and hand the URL on.

    Raises `ServiceError` where it is no http(s) URL.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ServiceError("the service named no usable address for the archive")
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() == "sig" and value:
            plain_value = unquote(value)
            for spelling in dict.fromkeys((plain_value, value, quote(plain_value, safe=""))):
                mask(spelling)
    return url
