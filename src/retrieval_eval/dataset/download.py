"""LongMemEval's published files: which there are, and how one is fetched and told to be the right one.

Owns names, revision and digests. Knows no settings and no cache; what the file holds is the reader's business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from retrieval_eval.download import download
from retrieval_eval.errors import DatasetError
from retrieval_eval.http import Http, TransferError

ENDPOINT = "https://huggingface.co"
REPOSITORY = "xiaowu0162/longmemeval-cleaned"
REVISION = "98d7416c24c778c2fee6e6f3006e7a073259d48f"

SHA256 = {
    "longmemeval_oracle.json": "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
    "longmemeval_s_cleaned.json": "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
    "longmemeval_m_cleaned.json": "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f",
}
"""The files at `REVISION`: 15, 277 and 2,737 MB."""

MAX_BYTES = 8 * 1024**3
DEADLINE_S = 3600.0

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*\.json(\.gz)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file of `REPOSITORY`. `sha256` is 64 hex digits, None where nobody said what it must be."""

    name: str
    revision: str
    sha256: str | None


def published_file(name: str, revision: str, sha256: str | None) -> PublishedFile | None:
    """The published file that `name` means; None where it can only be a path.

    A name that is not one of `SHA256` is taken for a published file only where its digest is given: a path with a
    slip of the pen must not become a request to the hub. `sha256` wins over the digest known for `REVISION`.
    """
    if name not in SHA256 and not (sha256 and _NAME.fullmatch(name)):
        return None
    known = SHA256.get(name) if revision == REVISION else None
    return PublishedFile(name, revision, sha256.lower() if sha256 else known)


def fetch(file: PublishedFile, folder: Path, http: Http, endpoint: str = ENDPOINT) -> Path:
    """Download into `folder`, going on where an earlier try stopped. Raises `DatasetError` where that does not work."""
    target = folder / file.name
    url = f"{endpoint.rstrip('/')}/datasets/{REPOSITORY}/resolve/{quote(file.revision, safe='')}/{file.name}"
    try:
        download(http, url, target, sha256=file.sha256, max_bytes=MAX_BYTES, deadline_s=DEADLINE_S)
    except TransferError as error:
        raise DatasetError(
            f"could not be downloaded: {error.reason}",
            where=f"{file.name} of {REPOSITORY} at {file.revision}",
            hint="run the job again, or commit the file and name its path",
        ) from error
    return target
