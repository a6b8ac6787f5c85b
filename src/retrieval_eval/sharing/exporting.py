"""export: a finished cache as one archive for others, the same bytes whatever the history of the cache.

Owns what is in the archive. How it is fetched and trusted is `restoring.py`'s.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from retrieval_eval import __version__
from retrieval_eval.archive import ArchiveError, Caps, create
from retrieval_eval.cache import manifest as manifests
from retrieval_eval.cache import schema
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.digest import sha256_of
from retrieval_eval.errors import CacheError
from retrieval_eval.progress import Progress
from retrieval_eval.sharing.merging import merge

ROOT = "retrieval-eval-cache"
"""The one folder in the archive."""

CARD, LICENSE = "provenance.json", "LICENSE-LongMemEval"
FILES = frozenset({schema.FILE_NAME, manifests.FILE_NAME, CARD, LICENSE})

_SQLITE_VERSION_AT = 96
"""Four bytes of the file's header in which SQLite leaves its own version; nothing reads them."""

_NOTICE = """\
The questions and sessions in this archive come from the data file that provenance.json names. Where that is a release
of LongMemEval (xiaowu0162/longmemeval, xiaowu0162/longmemeval-cleaned), this is its licence:

MIT License

Copyright (c) 2024 Di Wu (LongMemEval, xiaowu0162)

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


@dataclass(frozen=True, slots=True)
class Exported:
    """The archive that was made: what a manifest for `prep --from` states besides the URL."""

    sha256: str
    size_bytes: int


def export(folder: Path, archive: Path, progress: Progress) -> Exported:
    """Pack the finished cache in `folder` into `archive` (.tar.zst), which appears only when it is whole.

    The cache is written anew, as a prep of its data file into an empty folder would, so that equal content gives equal
    bytes (under the same versions of this tool, SQLite and zstd). Raises `CacheError`.
    """
    with CacheReader(folder):
        pass  # it is finished and whole
    try:
        with tempfile.TemporaryDirectory(prefix=".export-", dir=archive.parent) as scratch:
            fresh, packed = Path(scratch, ROOT), Path(scratch, "archive")
            _complete(fresh, merge(fresh, [folder], progress))
            create(Path(scratch), ROOT, packed, Caps())
            exported = _measured(packed)
            packed.replace(archive)
    except ArchiveError as error:
        raise CacheError("cannot be exported", where=f"embedding cache {folder}", got=error.reason) from error
    except OSError as error:
        raise CacheError("cannot be written", where=str(archive), got=error.strerror or str(error)) from error
    return exported


def _complete(fresh: Path, merged: Manifest) -> None:
    """Make the merged cache one that tells nothing of its history, and add the card and the notice."""
    with CacheReader(fresh) as cache:
        identity, dataset = cache.identity, dict(cache.dataset)
    _forget_sqlite_version(fresh / schema.FILE_NAME)
    vectors = merged.reused + merged.embedded
    replace(merged, model_source=identity.name, reused=vectors, embedded=0).write(fresh)
    card = {
        "tool": f"retrieval-eval {__version__}",
        "cache_schema": schema.SCHEMA_VERSION,
        "fingerprint": identity.fingerprint,
        "model": asdict(identity),
        "dataset": dataset,
        "vectors": vectors,
        "license": LICENSE,
    }
    (fresh / CARD).write_text(json.dumps(card, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (fresh / LICENSE).write_text(_NOTICE, encoding="utf-8")
    for item in (*fresh.iterdir(), fresh):
        os.utime(item, (0, 0))


def _forget_sqlite_version(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(_SQLITE_VERSION_AT)
        file.write(bytes(4))


def _measured(archive: Path) -> Exported:
    return Exported(sha256_of(archive), archive.stat().st_size)
