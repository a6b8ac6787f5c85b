"""`prep --from`: a published cache is fetched, held against its digest, unpacked beside its target and looked over.

An archive is a stranger's data: it is used only when it is whole, of the right model and nothing but a cache.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_eval.archive import GIB, ArchiveError, Caps, extract
from retrieval_eval.cache import schema
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.digest import sha256_of
from retrieval_eval.download import download
from retrieval_eval.embedding.embedder import ModelIdentity
from retrieval_eval.errors import CacheError, SettingsError
from retrieval_eval.http import Http, TransferError, host_of
from retrieval_eval.sharing.exporting import FILES, ROOT

MAX_ARCHIVE_BYTES = 10 * GIB
"""Largest download whose size nothing states."""
DOWNLOAD_S = 3600.0
"""Budget of one download; what came by then is kept, and the next call goes on from there."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a published cache is: a path, or a URL, and what is known of it. `sha256`: 64 lower-case hex digits."""

    name: str
    location: str
    is_url: bool
    sha256: str | None
    size_bytes: int | None = None

    @staticmethod
    def parse(text: str, sha256: str | None) -> Source:
        """From `ARCHIVE`, `URL` or `MANIFEST.json` (an object of url, sha256 and size_bytes), and the digest given.

        A URL needs a digest. Raises `SettingsError`, and `CacheError` where a manifest is not one.
        """
        if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            raise SettingsError([f"--from-sha256 {sha256[:80]!r} is not 64 hex digits"])
        is_url = text.startswith(("https://", "http://"))
        if not is_url and text.endswith(".json"):
            if sha256 is not None:
                raise SettingsError(["--from-sha256 goes with an archive or a URL; a manifest states its own digest"])
            return _from_manifest(Path(text))
        if is_url and sha256 is None:
            raise SettingsError(["--from with a URL needs --from-sha256, or a manifest file that states the digest"])
        name = f"published cache at {host_of(text)}" if is_url else f"published cache {text}"
        return Source(name, text, is_url, sha256 and sha256.lower())


def _from_manifest(file: Path) -> Source:
    try:
        facts: Any = json.loads(file.read_text(encoding="utf-8"))
        url, sha256, size = facts["url"], facts["sha256"], facts["size_bytes"]
        if not re.match("https?://", url) or not re.fullmatch(r"[0-9a-f]{64}", sha256) or type(size) is not int:
            raise ValueError("a url, digest or size of another form")
    except OSError as error:
        raise CacheError("cannot be read", where=f"--from {file}", got=error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CacheError(
            "is not the manifest of a published cache",
            where=f"--from {file}",
            got=f"{type(error).__name__}: {error}"[:120],
            expected='{"url": "https://…", "sha256": "64 hex digits", "size_bytes": whole number}',
        ) from error
    return Source(f"published cache at {host_of(url)}", url, True, sha256, size)


def restore(source: Source, folder: Path, identity: ModelIdentity, http: Http) -> bool:
    """Put the published cache at `folder`, in one step; False where there is a finished one of this model already.

    Raises `CacheError` as `unpacked` does, and where `folder` holds anything else.
    """
    if (folder / schema.FILE_NAME).exists():
        with CacheReader(folder) as cache:
            cache.check_identity(identity)
        return False
    with unpacked(source, folder, identity, http) as fresh:
        try:
            fresh.replace(folder)
        except OSError as error:
            raise CacheError(
                "cannot be put in place",
                where=f"embedding cache {folder}",
                got=error.strerror or str(error),
                hint="give a folder that is empty or not there",
            ) from error
    return True


@contextmanager
def unpacked(source: Source, near: Path, identity: ModelIdentity, http: Http) -> Iterator[Path]:
    """A folder with the finished cache of `source`, for as long as the context lasts; it lies beside `near`.

    Raises `CacheError` where it cannot be had, has another digest, is cut, holds anything but a cache, or one of
    another model than `identity`.
    """
    try:
        near.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=f".{near.name}-", dir=near.parent)
    except OSError as error:
        raise CacheError("cannot be written", where=str(near.parent), got=error.strerror or str(error)) from error
    with scratch as name:
        folder = Path(name, ROOT)
        if source.is_url:
            archive = near.with_name(f"{near.name}.published")
            _fetch(source, archive, http)
            _unpack(source, archive, folder)
            archive.unlink()
        else:
            _unpack(source, Path(source.location), folder)
        _check_cache(source, folder, identity)
        yield folder


def _fetch(source: Source, archive: Path, http: Http) -> None:
    """Download `source` to `archive`, going on where an earlier call was stopped."""
    most = source.size_bytes or MAX_ARCHIVE_BYTES
    try:
        download(http, source.location, archive, sha256=source.sha256, max_bytes=most, deadline_s=DOWNLOAD_S)
    except TransferError as error:
        raise CacheError(
            "cannot be downloaded",
            where=source.name,
            got=error.reason,
            hint="check the URL and the network and run it again: what came is kept",
        ) from error


def _unpack(source: Source, archive: Path, folder: Path) -> None:
    try:
        if not source.is_url and source.sha256 is not None:
            _check_digest(source, archive)
        extract(archive, folder.parent, folder.name, Caps())
        strange = sorted({item.name for item in folder.iterdir()} ^ FILES)
    except ArchiveError as error:
        raise CacheError("cannot be unpacked", where=source.name, got=error.reason) from error
    except OSError as error:
        raise CacheError("cannot be unpacked", where=source.name, got=error.strerror or str(error)) from error
    if strange:
        raise CacheError(
            "holds other files than an exported cache",
            where=source.name,
            got=f"one too many or too few: {strange[0][:80]!a}",
        )


def _check_digest(source: Source, archive: Path) -> None:
    found = sha256_of(archive)
    if found != source.sha256:
        raise CacheError("has another digest", where=source.name, got=f"sha256 {found}", expected=str(source.sha256))


def _check_cache(source: Source, folder: Path, identity: ModelIdentity) -> None:
    try:
        with CacheReader(folder) as cache:
            cache.check_identity(identity)
    except CacheError as error:
        raise CacheError(
            f"cannot be used: the cache in it {error.problem}",
            where=source.name,
            got=error.got,
            expected=error.expected,
            hint="give another archive, or go without --from",
        ) from error
