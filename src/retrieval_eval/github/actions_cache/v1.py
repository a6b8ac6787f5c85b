"""The older cache service, which GitHub Enterprise Server, Gitea, Forgejo and act speak: REST, archives sent to it.

Owns the four calls. github.com has answered them with 422 since April 2025.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from retrieval_eval.github.actions_cache.limits import Limits
from retrieval_eval.github.actions_cache.service import (
    Entry,
    Mask,
    ServiceError,
    hide,
    json_object,
    refusal,
    text_of,
)
from retrieval_eval.http import STORAGE_TROUBLE, Deadline, FileSlice, Http, Reply, Request


class ServiceV1:
    """`CacheService` over REST. The token may be empty: act needs none."""

    def __init__(self, http: Http, cache_url: str, token: str, mask: Mask, limits: Limits) -> None:
        self._http, self._mask, self._limits = http, mask, limits
        self._base = f"{cache_url.rstrip('/')}/_apis/artifactcache/"
        self._headers = {"Accept": "application/json;api-version=6.0-preview.1"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def find(self, keys: Sequence[str], version: str) -> Entry | None:
        """See `CacheService`."""
        query = urlencode({"keys": ",".join(keys), "version": version})
        reply = self._send(Request("GET", f"{self._base}cache?{query}", self._headers))
        if reply.status == 204:
            return None
        found = json_object(reply) or {}
        return Entry(text_of(found, "cache_key"), hide(text_of(found, "archive_location"), self._mask))

    def store(self, key: str, version: str, archive: Path) -> None:
        """See `CacheService`."""
        size = archive.stat().st_size
        made = json_object(self._post("caches", {"key": key, "version": version, "cacheSize": size})) or {}
        number = made.get("cacheId")
        if not isinstance(number, int):
            raise ServiceError("the service reserved no entry")
        self._upload(f"caches/{number}", archive, size)
        self._post(f"caches/{number}", {"size": size})

    def _upload(self, route: str, archive: Path, size: int) -> None:
        deadline = self._http.deadline(self._limits.transfer_s)
        for start in range(0, size, self._limits.v1_chunk_bytes):
            chunk = FileSlice(archive, start, min(self._limits.v1_chunk_bytes, size - start))
            headers = {
                **self._headers,
                "Content-Type": "application/octet-stream",
                "Content-Range": f"bytes {start}-{start + chunk.size - 1}/*",
            }
            self._send(Request("PATCH", self._base + route, headers, chunk, STORAGE_TROUBLE), deadline)

    def _post(self, route: str, asked: Mapping[str, object]) -> Reply:
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._send(Request("POST", self._base + route, headers, json.dumps(asked).encode()))

    def _send(self, request: Request, deadline: Deadline | None = None) -> Reply:
        reply = self._http.send(request, deadline or self._http.deadline(self._limits.lookup_s))
        if not 200 <= reply.status < 300:
            raise refusal(reply, request.url)
        return reply
