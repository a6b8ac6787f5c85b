"""One open database of the embedding cache, and the words for whatever goes wrong with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retrieval_eval.cache import records, schema
from retrieval_eval.errors import CacheError
from retrieval_eval.errors import CacheError
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

    def _open_readonly(self) -> None:
        """Connect for reading alone; raises `CacheError` where there is no cache of this version, or it is cut."""
        if not self.file.is_file():
            hint = f"run `retrieval-eval prep DATA --cache {self.folder}` first"
            raise CacheError("is not there", where=f"embedding cache {self.folder}", hint=hint)
        schema.check_file(self.file)
        with self.explained():
            uri = f"{self.file.resolve().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(uri, uri=True, timeout=schema.BUSY_TIMEOUT_S, isolation_level=None)
            schema.check_tables(self._connection)

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
            except (ValueError, KeyError, TypeError) as error:
                raise CacheError(
                    "is damaged", where=f"embedding cache {self.file}", got=str(error)[:120], hint=schema.CLEAR
                ) from error

    def value(self, statement: str, key: object) -> Any:
        """The one value that `statement` selects for `key`. Raises ValueError where there is none."""
        row = self._connection.execute(statement, (key,)).fetchone()
        if row is None:
            raise ValueError(f"no row {key}")
        return row[0]

    def meta(self, key: str) -> Any:
        """The JSON value kept under `key`."""
        return records.unpack_json(self.value("SELECT value FROM meta WHERE key = ?", key))

    def shard_note(self) -> Any:
        """What a prep of one shard left about itself (see `sharding.py`); None where the last prep was a whole one."""
        with self.explained():
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'shard'").fetchone()
            return None if row is None else records.unpack_json(row[0])

    def digests(self) -> dict[int, tuple[str, bytes]]:
        """Role and SHA-256 of every text, by its number."""
        with self.explained():
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
