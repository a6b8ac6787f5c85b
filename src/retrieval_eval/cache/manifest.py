"""The manifest beside the database: written last, so that its presence says that prep finished.

It holds the digest of the finished database, so that damage anywhere in the file is noticed, whatever it hit.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from retrieval_eval.cache import schema
from retrieval_eval.digest import sha256_of
from retrieval_eval.errors import CacheError, said

FILE_NAME = "manifest.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a finished prep says of itself.

    `model_source` and `model_revision` are for run to find the model again; `fingerprint` decides whether it fits.
    `reused` and `embedded` count the distinct texts, sessions and questions, of the last prep. `database_sha256` is
    filled in by `write`.
    """

    fingerprint: str
    model_source: str
    model_revision: str | None
    dataset_sha256: str
    pairs: int
    reused: int
    embedded: int
    database_sha256: str = ""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Raises ValueError for a value of another type: manifests come from files, and these from anywhere."""
        counts = {"pairs", "reused", "embedded", "schema_version"}
        for name, value in asdict(self).items():
            is_good = type(value) is int if name in counts else isinstance(value, str)
            if not is_good and (name, value) != ("model_revision", None):
                raise ValueError(f"{name} is {type(value).__name__}")

    def write(self, folder: Path) -> None:
        """Put the manifest in place in one step. The database must be closed. Raises `CacheError`."""
        file, partial = folder / FILE_NAME, folder / (FILE_NAME + ".partial")
        try:
            finished = replace(self, database_sha256=sha256_of(folder / schema.FILE_NAME))
            partial.write_text(json.dumps(asdict(finished), indent=2) + "\n", encoding="utf-8")
            partial.replace(file)
        except OSError as error:
            raise CacheError(
                "cannot be written",
                where=str(file),
                got=error.strerror or str(error),
                hint="free some space, check the folder's permissions and run prep again: it goes on",
            ) from error

    @staticmethod
    def read(folder: Path) -> Manifest:
        """Raises `CacheError` where there is none (prep did not finish) or it is not one of ours."""
        file = folder / FILE_NAME
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
            manifest = Manifest(**facts)
            if not manifest.database_sha256:
                raise ValueError("no database_sha256")
        except FileNotFoundError:
            raise CacheError(
                "is not finished: it has no manifest",
                where=f"embedding cache {folder}",
                hint="run prep again, it goes on",
            ) from None
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise CacheError(
                "is not a manifest of this version", where=str(file), got=said(error), hint="run prep again"
            ) from error
        if manifest.schema_version != SCHEMA_VERSION:
            raise CacheError(
                "manifest",
                where=str(file),
                got=f"schema {manifest.schema_version}",
                expected=str(SCHEMA_VERSION),
                hint="run prep again",
            )
        return manifest

    def check_database(self, folder: Path) -> None:
        """Raises `CacheError` unless the database is, byte for byte, the one that prep finished. Reads all of it.

        Not to be called while this process writes the database: closing a file drops SQLite's locks on it.
        """
        file = folder / schema.FILE_NAME
        try:
            found = sha256_of(file)
        except OSError as error:
            raise CacheError("cannot be read", where=str(file), got=error.strerror or str(error)) from error
        if found == self.database_sha256:
            return
        if schema.has_journal(file) or not is_there(folder):
            raise CacheError("is being written by another process", where=f"embedding cache {file}", hint=schema.WAIT)
        raise CacheError(
            "is damaged, or not the one that its manifest describes",
            where=f"embedding cache {file}",
            got=f"sha256 {found[:16]}…",
            expected=f"{self.database_sha256[:16]}…",
            hint=schema.CLEAR,
        )


def is_there(folder: Path) -> bool:
    """Whether the folder has a manifest, good or bad."""
    return (folder / FILE_NAME).exists()


def remove(folder: Path) -> None:
    """Say that the folder is not finished; nothing where there is no manifest."""
    (folder / FILE_NAME).unlink(missing_ok=True)
