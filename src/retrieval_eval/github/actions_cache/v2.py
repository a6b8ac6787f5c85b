"""The cache service of github.com and ghe.com since 2025: Twirp with JSON bodies, archives in blob storage.

Owns the three calls. Requests use snake_case; answers are read in either spelling and unknown fields are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from retrieval_eval.github.actions_cache.limits import Limits
from retrieval_eval.github.actions_cache.service import (
    Entry,
    Mask,
    ServiceError,
    hide,
    json_object,
    plain,
    refusal,
    text_of,
)
from retrieval_eval.github.actions_cache.transfer import upload_blob
from retrieval_eval.http import Http, Request, host_of

_ROUTE = "/twirp/github.actions.results.api.v1.CacheService/"


class ServiceV2:
    """`CacheService` over Twirp. Any path of `results_url` is dropped, as the official client does."""

    def __init__(self, http: Http, results_url: str, token: str, mask: Mask, limits: Limits) -> None:
        self._http, self._token, self._mask, self._limits = http, token, mask, limits
        self._base = urlsplit(results_url)._replace(path=_ROUTE, query="", fragment="").geturl()

    def find(self, keys: Sequence[str], version: str) -> Entry | None:
        """See `CacheService`."""
        asked: dict[str, object] = {"key": keys[0], "version": version}
        if len(keys) > 1:
            asked["restore_keys"] = list(keys[1:])
        found = self._call("GetCacheEntryDownloadURL", asked)
        if not found.get("ok"):
            return None
        return Entry(text_of(found, "matched_key"), hide(text_of(found, "signed_download_url"), self._mask))

    def store(self, key: str, version: str, archive: Path) -> None:
        """See `CacheService`."""
        made = self._confirmed("CreateCacheEntry", {"key": key, "version": version})
        url = hide(text_of(made, "signed_upload_url"), self._mask)
        upload_blob(self._http, url, archive, self._limits)
        size = str(archive.stat().st_size)
        self._confirmed("FinalizeCacheEntryUpload", {"key": key, "size_bytes": size, "version": version})

    def _confirmed(self, method: str, asked: dict[str, object]) -> dict[str, object]:
        found = self._call(method, asked)
        if not found.get("ok"):
            raise ServiceError(plain(text_of(found, "message")) or f"the service did not accept {method}")
        return found

    def _call(self, method: str, asked: dict[str, object]) -> dict[str, object]:
        url = self._base + method
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = Request("POST", url, headers, json.dumps(asked).encode())
        reply = self._http.send(request, self._http.deadline(self._limits.lookup_s))
        if reply.status != 200:
            raise refusal(reply, url)
        found = json_object(reply)
        if found is None:
            raise ServiceError(f"{host_of(url)} answered {method} with something else than JSON")
        return found
