"""Restores and saves one path of the workspace through the Actions cache.

Owns what a failure means: a value with a reason, never an exception, because no cache may change a run's exit code.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from retrieval_eval import archive
from retrieval_eval.archive import ArchiveError
from retrieval_eval.download import download
from retrieval_eval.github.actions_cache.choice import Api, ServiceEnv
from retrieval_eval.github.actions_cache.keys import is_match, is_same_key, key_problem, path_problem, version_of
from retrieval_eval.github.actions_cache.limits import Limits
from retrieval_eval.github.actions_cache.service import (
    CacheService,
    Entry,
    EntryExistsError,
    Mask,
    NoSuchServiceError,
    ServiceError,
    plain,
)
from retrieval_eval.github.actions_cache.v1 import ServiceV1
from retrieval_eval.github.actions_cache.v2 import ServiceV2
from retrieval_eval.http import Http, TransferError

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Restored:
    """The path now holds the entry's content. `exact` where it was saved under the key itself."""

    matched_key: str
    exact: bool
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing was restored and nothing was touched. `is_degraded` where it was not simply that no entry is there."""

    reason: str
    is_degraded: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """The entry is there. `size_bytes` is the archive's."""

    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """An entry of this key exists; entries are immutable, so nothing was sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotSaved:
    """Nothing was saved. `is_degraded` is False where the workflow itself asked for no saving."""

    reason: str
    is_degraded: bool


class ActionsCache:
    """The cache of this job. `scratch` is a folder for archives in the making, best outside the workspace."""

    def __init__(
        self, env: ServiceEnv, http: Http, workspace: Path, scratch: Path, mask: Mask, limits: Limits | None = None
    ) -> None:
        self._env, self._http, self._mask = env, http, mask
        self._workspace, self._scratch, self._limits = workspace, scratch, limits or Limits()
        self._service = self._build(env.api, env.url)

    def restore(self, path: str, key: str, restore_keys: Sequence[str] = ()) -> Restored | Miss:
        """Put the best entry's content at `path`, a relative path below the workspace, in place of what is there.

        The service looks for `key`, then for the newest entry that begins with it, then for each restore key likewise.
        What was restored is a stranger's data: the caller has to verify it.
        """
        keys = (key, *restore_keys)
        problem = path_problem(path) or key_problem(keys)
        if problem or not self._env.can_read:
            return Miss(problem or self._closed("read"), is_degraded=bool(problem) or self._env.api is Api.OFF)
        try:
            return self._restore(path, keys)
        except (ServiceError, TransferError, ArchiveError) as error:
            return Miss(f"the cache was not restored: {error.reason}", is_degraded=True)
        except OSError as error:
            return Miss(f"the cache was not restored: {_told(error)}", is_degraded=True)

    def save(self, path: str, key: str) -> Saved | AlreadyThere | NotSaved:
        """Save what is at `path`, a relative path below the workspace, under `key`."""
        problem = path_problem(path) or key_problem([key])
        if problem or not self._env.can_write:
            return NotSaved(problem or self._closed("written"), is_degraded=bool(problem) or self._env.api is Api.OFF)
        try:
            return self._save(path, key)
        except EntryExistsError as error:
            return AlreadyThere(f"the cache was not saved: {error.reason}")
        except (ServiceError, TransferError, ArchiveError) as error:
            return NotSaved(f"the cache was not saved: {error.reason}", is_degraded=True)
        except OSError as error:
            return NotSaved(f"the cache was not saved: {_told(error)}", is_degraded=True)

    def _restore(self, path: str, keys: Sequence[str]) -> Restored | Miss:
        version = version_of(path)
        log.debug("looking for cache keys %s, version %s", ", ".join(keys), version)
        entry: Entry | None = self._ask(lambda service: service.find(keys, version))
        if entry is None:
            return Miss(f"no cache entry matches {keys[0]} or its restore keys", is_degraded=False)
        matched = plain(entry.matched_key)
        if not is_match(keys, entry.matched_key):
            return Miss(f"the service answered with the key {matched!a}, which was not asked for", is_degraded=True)
        with tempfile.TemporaryDirectory(dir=self._scratch, ignore_cleanup_errors=True) as folder:
            packed, limits = Path(folder, "cache.tzst"), self._limits
            download(
                self._http,
                entry.url,
                packed,
                sha256=None,
                max_bytes=limits.max_archive_bytes,
                deadline_s=limits.transfer_s,
            )
            archive.extract(packed, self._workspace, path, limits.contents)
            size = packed.stat().st_size
        exact = is_same_key(keys[0], entry.matched_key)
        return Restored(matched, exact, size, f"restored {size} bytes from {matched}")

    def _save(self, path: str, key: str) -> Saved | NotSaved:
        version = version_of(path)
        with tempfile.TemporaryDirectory(dir=self._scratch, ignore_cleanup_errors=True) as folder:
            packed = Path(folder, "cache.tzst")
            archive.create(self._workspace, path, packed, self._limits.contents)
            size = packed.stat().st_size
            if size > self._limits.max_archive_bytes:
                allowed = self._limits.max_archive_bytes
                return NotSaved(f"the archive has {size} bytes, at most {allowed} are sent", is_degraded=True)
            self._ask(lambda service: service.store(key, version, packed))
        return Saved(size, f"saved {size} bytes as {key}")

    def _ask(self, question: Callable[[CacheService], T]) -> T:
        """Ask the chosen service, and from then on the fallback where v2 turns out not to be there."""
        try:
            return question(self._service)
        except NoSuchServiceError as error:
            if not self._env.fallback_url or isinstance(self._service, ServiceV1):
                raise
            log.info("%s: using v1", error.reason)
            self._service = self._build(Api.V1, self._env.fallback_url)
            return question(self._service)

    def _build(self, api: Api, url: str) -> CacheService:
        service = ServiceV1 if api is Api.V1 else ServiceV2
        return service(self._http, url, self._env.token, self._mask, self._limits)

    def _closed(self, done: str) -> str:
        if self._env.api is Api.OFF:
            return self._env.reason
        return f"the cache may not be {done} in this job (cache mode or read-only token)"


def _told(error: OSError) -> str:
    return f"{error.strerror or type(error).__name__}"
