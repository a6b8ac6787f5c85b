"""One open database of the embedding cache, and the words for whatever goes wrong with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retrieval_eval.cache import manifest, records, schema
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.sharding import ShardNote
from retrieval_eval.embedding.embedder import ModelIdentity
from retrieval_eval.errors import CacheError, said
from retrieval_eval.terms import Vocabulary


class CacheFile:
    """What reading and writing share. Use as a context manager."""

    _connection: sqlite3.Connection

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / schema.FILE_NAME

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _open_readonly(self, *, is_checked: bool = False) -> None:
        """Connect for reading alone; raises `CacheError` where there is no cache of this version, or a damaged one.

        `is_checked`: the whole file need not be held against its manifest (again).
        """
        where = f"embedding cache {self.folder}"
        try:
            if not self.file.is_file():
                hint = f"run `retrieval-eval prep DATA --cache {self.folder}` first"
                raise CacheError("is not there", where=where, hint=hint)
            schema.check_file(self.file)
        except OSError as error:
            raise CacheError("cannot be read", where=where, got=error.strerror or str(error)) from error
        if not is_checked and manifest.is_there(self.folder) and not schema.has_journal(self.file):
            Manifest.read(self.folder).check_database(self.folder)
        with self.explained():
            uri = f"{self.file.resolve().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(uri, uri=True, timeout=schema.BUSY_TIMEOUT_S, isolation_level=None)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn SQLite's errors into a `CacheError` that names the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise schema.explain(error, self.file) from error

    @contextmanager
    def decoded(self) -> Iterator[None]:
        """As `explained`, and damage found in what was read too."""
        with self.explained():
            try:
                yield
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise CacheError(
                    "is damaged", where=f"embedding cache {self.file}", got=said(error), hint=schema.CLEAR
                ) from error

    def _check_tables(self) -> None:
        """Raises `CacheError` unless the tables are ours to the letter: a stranger's file may bring triggers."""
        with self.explained():
            is_ours = schema.layout(self._connection) == schema.expected_layout()
        if not is_ours:
            raise CacheError(
                "is damaged: it has other tables than this version makes",
                where=f"embedding cache {self.file}",
                hint=schema.CLEAR,
            )

    def check_identity(self, identity: ModelIdentity) -> None:
        """Raises `CacheError`, naming what differs, unless the vectors are those of this model and these settings."""
        with self.decoded():
            theirs = ModelIdentity(**self.meta("identity"))
        if theirs.fingerprint == identity.fingerprint:
            return
        old, new = asdict(theirs), asdict(identity)
        differing = [name for name in new if old[name] != new[name]]
        raise CacheError(
            "holds vectors of another model or setting",
            where=f"embedding cache {self.folder}",
            got="; ".join(f"{name} {old[name]!r}" for name in differing),
            expected="; ".join(f"{name} {new[name]!r}" for name in differing),
            hint="use the model and settings that made it, or another --cache folder",
        )

    def value(self, statement: str, key: object) -> Any:
        """The one value that `statement` selects for `key`. Raises ValueError where there is none."""
        row = self._connection.execute(statement, (key,)).fetchone()
        if row is None:
            raise ValueError(f"no row {key}")
        return row[0]

    def meta(self, key: str) -> Any:
        """The JSON value kept under `key`."""
        return records.unpack_json(self.value("SELECT value FROM meta WHERE key = ?", key))

    def shard_note(self) -> ShardNote | None:
        """What a prep of one shard left about itself; None where the last prep was a whole one."""
        with self.decoded():
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'shard'").fetchone()
            return None if row is None else ShardNote.from_facts(records.unpack_json(row[0]))

    def digests(self) -> dict[int, tuple[str, bytes]]:
        """Role and SHA-256 of every text, by its number."""
        with self.decoded():
            rows = self._connection.execute("SELECT id, role, digest FROM text")
            return {number: (role, digest) for number, role, digest in rows}

    def text(self, number: int) -> str:
        """The text of this number."""
        with self.decoded():
            return records.unpack_text(self.value("SELECT body FROM text WHERE id = ?", number))

    def vocabulary(self) -> Vocabulary:
        """Every term that the cache has numbered. Raises `CacheError` where a part is missing."""
        terms: list[str] = []
        with self.decoded():
            for first, blob in self._connection.execute("SELECT first_id, terms FROM vocabulary ORDER BY first_id"):
                if first != len(terms):
                    raise ValueError(f"vocabulary goes on at {first}, expected {len(terms)}")
                terms += records.unpack_vocabulary(blob)
        return Vocabulary(terms)

    def with_vector(self) -> set[int]:
        """Numbers of the texts that are embedded."""
        with self.decoded():
            return {number for (number,) in self._connection.execute("SELECT text FROM vector")}

    def stored_pairs(self) -> list[records.StoredPair]:
        """The pairs in the file's order."""
        with self.decoded():
            rows = self._connection.execute("SELECT record FROM pair ORDER BY id")
            return [records.StoredPair.from_blob(record) for (record,) in rows]
