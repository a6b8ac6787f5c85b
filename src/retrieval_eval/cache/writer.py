"""Writing the embedding cache: what prep does to it, each step whole or not at all.

A data file enters in one transaction, vectors in small ones as they are made; whatever stops prep, at any moment, the
next one goes on from the last of them.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from retrieval_eval.cache import manifest, records, schema
from retrieval_eval.cache.connection import CacheFile
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.records import StoredPair
from retrieval_eval.cache.sharding import Shard, ShardNote
from retrieval_eval.embedding.embedder import Embedded, ModelIdentity, Role
from retrieval_eval.errors import CacheError
from retrieval_eval.model import Instance
from retrieval_eval.terms import Vocabulary

_LOG = logging.getLogger(__name__)


class CacheWriter(CacheFile):
    """The cache of one folder, open for one prep.

    Raises `CacheError` where the folder holds something else, or vectors of another model; nothing is changed then.
    """

    def __init__(self, folder: Path, identity: ModelIdentity) -> None:
        super().__init__(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.is_new = not self.file.exists()
            if self.is_new:
                self._create(identity)
            else:
                self._check_files()
        except OSError as error:
            raise self._unusable(error) from error
        self._connection = self._connect(self.file)
        try:
            self._check_tables()
            self.check_identity(identity)
        except BaseException:
            self._connection.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; a new cache that took in nothing leaves no file."""
        super().__exit__(kind, error, trace)
        if self.is_new:
            self.file.unlink(missing_ok=True)

    def _unusable(self, error: OSError) -> CacheError:
        return CacheError(
            "cannot be used",
            where=f"embedding cache {self.folder}",
            got=error.strerror or str(error),
            hint="check that it is a folder that can be written",
        )

    def _connect(self, file: Path) -> sqlite3.Connection:
        with self.explained():
            connection = sqlite3.connect(file, timeout=schema.BUSY_TIMEOUT_S, isolation_level=None)
            connection.execute("PRAGMA synchronous = NORMAL")
            return connection

    def _create(self, identity: ModelIdentity) -> None:
        """Lay out the tables under another name, so that the file is ours and whole from its first moment."""
        partial = self.file.with_name(self.file.name + ".partial")
        for rest in (partial, partial.with_name(partial.name + "-journal")):
            rest.unlink(missing_ok=True)
        self._connection = self._connect(partial)
        try:
            with self.explained(), self._transaction():
                schema.create(self._connection)
                self._put("identity", asdict(identity))
                self._put("dataset", None)
            self._connection.close()
            partial.replace(self.file)
        except BaseException:
            self._connection.close()
            partial.unlink(missing_ok=True)
            raise

    def _check_files(self) -> None:
        """Raises `CacheError` where the file is not one of ours, or not as a finished prep left it."""
        schema.check_file(self.file)
        if schema.has_journal(self.file):
            self._undo()
        if not manifest.is_there(self.folder):
            return
        try:
            found = Manifest.read(self.folder)
        except CacheError as error:
            _LOG.warning("%s; prep goes on without it", error)
        else:
            found.check_database(self.folder)

    def _undo(self) -> None:
        """Let SQLite undo a transaction that was cut short."""
        connection = self._connect(self.file)
        try:
            with self.explained():
                connection.execute("SELECT 1 FROM meta").fetchone()
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _put(self, key: str, value: object) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, records.pack_json(value)))

    def take_in(self, instances: Iterable[Instance]) -> None:
        """Replace the pairs by the scored ones of `instances`, adding the texts that are new. Then `describe` them.

        One transaction: where the data file turns out to be wrong, the cache stays as it was.
        """
        with self.explained(), self._transaction():
            intake = _Intake(self._connection, self.vocabulary())
            self._connection.execute("DELETE FROM pair")
            for instance in instances:
                if instance.exclusion is None:
                    intake.add(instance)
            intake.finish()
            self._put("dataset", None)
            self._unfinish()
        self.is_new = False

    def _unfinish(self) -> None:
        try:
            manifest.remove(self.folder)
        except OSError as error:
            raise self._unusable(error) from error

    def describe(self, dataset: Mapping[str, Any], note: ShardNote | None = None) -> None:
        """Keep the facts about the data file that reports show and, where only a shard is embedded, its note."""
        with self.explained(), self._transaction():
            self._put("dataset", dict(dataset))
            self._connection.execute("DELETE FROM meta WHERE key = 'shard'")
            if note is not None:
                self._put("shard", asdict(note))

    def needed(self, shard: Shard | None = None) -> list[int]:
        """Numbers of the distinct texts, questions and sessions, of the current pairs or of one shard, ascending."""
        pairs = self.stored_pairs()
        numbers = sorted({pair.question_text for pair in pairs}.union(*(pair.session_texts for pair in pairs)))
        if shard is None:
            return numbers
        digests = self.digests()
        return [number for number in numbers if shard.holds(digests[number][1])]

    def missing(self, needed: Iterable[int]) -> list[int]:
        """Those of `needed` that have no vector yet, in their order."""
        done = self.with_vector()
        return [number for number in needed if number not in done]

    def roles(self, numbers: Iterable[int]) -> dict[Role, list[int]]:
        """These texts by role, in their order."""
        by_role: dict[Role, list[int]] = {role: [] for role in Role}
        with self.decoded():
            for number in numbers:
                by_role[Role(self.value("SELECT role FROM text WHERE id = ?", number))].append(number)
        return by_role

    def store(self, vectors: Iterable[tuple[int, Embedded]]) -> None:
        """Commit these vectors."""
        with self.explained(), self._transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?)",
                ((number, made.is_truncated, records.pack_vector(made.vector)) for number, made in vectors),
            )


class _Intake:
    """Puts instances into the tables, each distinct text once."""

    def __init__(self, connection: sqlite3.Connection, vocabulary: Vocabulary) -> None:
        self._connection, self._vocabulary = connection, vocabulary
        self._known = {
            (role, digest): number for number, role, digest in connection.execute("SELECT id, role, digest FROM text")
        }
        self._first_new_term = len(self._vocabulary)

    def add(self, instance: Instance) -> None:
        question = self._text_id(Role.QUERY, instance.pair.question)
        sessions = tuple(self._text_id(Role.PASSAGE, session.text) for session in instance.sessions)
        stored = StoredPair(instance.pair, question, tuple(s.session_id for s in instance.sessions), sessions)
        self._connection.execute("INSERT INTO pair(record) VALUES (?)", (stored.to_blob(),))

    def _text_id(self, role: Role, text: str) -> int:
        digest = hashlib.sha256(text.encode()).digest()
        number = self._known.get((role, digest))
        if number is None:
            number = self._known[role, digest] = len(self._known) + 1
            terms = records.pack_terms(self._vocabulary.count(text))
            self._connection.execute(
                "INSERT INTO text VALUES (?, ?, ?, ?, ?)", (number, role.value, digest, terms, records.pack_text(text))
            )
        return number

    def finish(self) -> None:
        terms = self._vocabulary.terms_from(self._first_new_term)
        if terms:
            self._connection.execute(
                "INSERT INTO vocabulary VALUES (?, ?)", (self._first_new_term, records.pack_vocabulary(terms))
            )
