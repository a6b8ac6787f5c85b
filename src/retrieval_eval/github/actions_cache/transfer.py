"""An archive's way into blob storage behind a signed URL, as the Azure SDK of the official client sends it.

Owns Put Blob, Put Block and Put Block List. A signed URL stands for itself: no token is ever sent with it.
"""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from urllib.parse import quote, urlsplit

from retrieval_eval.github.actions_cache.limits import Limits
from retrieval_eval.github.actions_cache.service import ServiceError, plain
from retrieval_eval.http import STORAGE_TROUBLE, Deadline, FileSlice, Http, Request, host_of

STORAGE_VERSION = "2020-10-02"
_OCTETS = "application/octet-stream"


def upload_blob(http: Http, url: str, archive: Path, limits: Limits) -> None:
    """Send `archive`: in one piece up to `single_put_bytes`, in blocks above, one after the other.

    A failed piece is sent again, all within `transfer_s`. Raises `ServiceError`, `TransferError`, `OSError`.
    """
    size, deadline = archive.stat().st_size, http.deadline(limits.transfer_s)
    if size <= limits.single_put_bytes:
        headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": _OCTETS}
        _put(http, url, headers, FileSlice(archive, 0, size), deadline)
        return
    upload_id = str(uuid.uuid4())
    ids: list[str] = []
    for start in range(0, size, limits.block_bytes):
        block = FileSlice(archive, start, min(limits.block_bytes, size - start))
        ids.append(block_id(upload_id, len(ids)))
        _put(http, with_query(url, comp="block", blockid=ids[-1]), {"Content-Type": _OCTETS}, block, deadline)
    _put(http, with_query(url, comp="blocklist"), {"Content-Type": "application/xml"}, block_list(ids), deadline)


def block_id(upload_id: str, index: int) -> str:
    """The SDK's form, the only one that all servers take: base64 of a UUID's 36 characters and 12 digits."""
    return base64.b64encode(f"{upload_id}{index:012d}".encode()).decode()


def block_list(ids: list[str]) -> bytes:
    """The body that makes a blob of the blocks, in this order."""
    listed = "".join(f"<Latest>{name}</Latest>" for name in ids)
    return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><BlockList>{listed}</BlockList>'.encode()


def with_query(url: str, **more: str) -> str:
    """`url` with parameters added; its own query, which is signed and may be absent, stays as it is."""
    parts = urlsplit(url)
    pairs = [parts.query] if parts.query else []
    pairs += [f"{name}={quote(value, safe='')}" for name, value in more.items()]
    return parts._replace(query="&".join(pairs)).geturl()


def _put(http: Http, url: str, headers: dict[str, str], body: bytes | FileSlice, deadline: Deadline) -> None:
    signed = {"x-ms-version": STORAGE_VERSION, **headers}
    reply = http.send(Request("PUT", url, signed, body, STORAGE_TROUBLE), deadline)
    if not 200 <= reply.status < 300:
        code = plain(reply.headers.get("x-ms-error-code", ""))
        told = f" ({code})" if code else ""
        raise ServiceError(f"{host_of(url)} answered {reply.status} to the upload{told}")
