"""The digest by which files are told apart. Owns that question only."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256_of(file: Path) -> str:
    """SHA-256 of the file's bytes, 64 lower-case hex digits, read piece by piece. Raises `OSError`."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
