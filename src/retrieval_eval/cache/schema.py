"""The tables of the embedding cache, and how a file is told to be one of ours, whole and usable."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from retrieval_eval.errors import CacheError

FILE_NAME = "embeddings.sqlite"
APPLICATION_ID = 0x52455643
SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 5.0

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE vocabulary(first_id INTEGER PRIMARY KEY, terms BLOB NOT NULL);
CREATE TABLE text(
    id INTEGER PRIMARY KEY, role TEXT NOT NULL, digest BLOB NOT NULL, terms BLOB NOT NULL, body BLOB NOT NULL,
    UNIQUE(role, digest));
CREATE TABLE vector(text INTEGER PRIMARY KEY REFERENCES text, is_truncated INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE TABLE pair(id INTEGER PRIMARY KEY, record BLOB NOT NULL);
"""
"""Every blob checks itself: zstd frames by their checksum, vectors by a CRC-32 at their end."""

_HEADER = b"SQLite format 3\0"
CLEAR = "if nothing else needs it, delete this file and run prep again"
WAIT = "wait for it to end, or give another --cache folder"
_STOPPED = "run prep again: it undoes the half-done step and goes on"
_REASONS = (
    (
        ("SQLITE_BUSY", "SQLITE_LOCKED"),
        "is in use by another process",
        WAIT,
    ),
    (("SQLITE_READONLY_ROLLBACK",), "is not finished: prep is writing it, or was stopped in a write", _STOPPED),
    (
        ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"),
        "cannot be opened or written",
        "check the folder's permissions",
    ),
    (
        ("SQLITE_FULL", "SQLITE_IOERR"),
        "could not be written: no space left, or the disk failed",
        "free some space and run again",
    ),
    (("SQLITE_CORRUPT", "SQLITE_NOTADB"), "is damaged", CLEAR),
)
"""By the start of SQLite's name for the error; the first that fits."""


def explain(error: sqlite3.Error, file: Path) -> CacheError:
    """The `CacheError` for what SQLite said about `file`: what is wrong with it, and what to do."""
    name = getattr(error, "sqlite_errorname", "")
    for names, problem, hint in _REASONS:
        if name.startswith(names):
            return CacheError(problem, where=f"embedding cache {file}", got=f"SQLite's {str(error)!r}", hint=hint)
    return CacheError("cannot be used", where=f"embedding cache {file}", got=f"SQLite's {str(error)!r}", hint=CLEAR)


def has_journal(file: Path) -> bool:
    """Whether a transaction on `file` is under way, or was cut short and is still to be undone."""
    return file.with_name(file.name + "-journal").exists()


def check_file(file: Path) -> None:
    """Raises `CacheError` unless `file` starts as a whole database of this schema. Reads its first page only.

    Foreign and damaged files are named and left as they are. Where a transaction was cut short the size is not held
    against the header: SQLite puts both right when it opens the file.
    """
    where = f"embedding cache {file}"
    size = file.stat().st_size
    with file.open("rb") as stream:
        header = stream.read(100)
    if size == 0:
        raise CacheError("is an empty file", where=where, hint=CLEAR)
    if len(header) < 100 or not header.startswith(_HEADER):
        raise CacheError("is not an SQLite database", where=where, got=f"{size} bytes", hint=CLEAR)
    page = int.from_bytes(header[16:18], "big")
    page_bytes, pages = 65536 if page == 1 else page, int.from_bytes(header[28:32], "big")
    application, version = int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
    if application != APPLICATION_ID:
        raise CacheError(
            "is another program's database",
            where=where,
            got=f"application id {application}, version {version}",
            hint="give another --cache folder",
        )
    if version != SCHEMA_VERSION:
        older = "an older" if version < SCHEMA_VERSION else "a newer"
        raise CacheError(
            f"was made by {older} version of retrieval-eval",
            where=where,
            got=f"schema {version}",
            expected=str(SCHEMA_VERSION),
            hint="give another --cache folder, or delete this one and run prep again",
        )
    if size < pages * page_bytes and not has_journal(file):
        raise CacheError("is cut off", where=where, got=f"{size} bytes", expected=str(pages * page_bytes), hint=CLEAR)


def layout(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Everything that the file defines: tables, indexes, triggers and views, with their SQL."""
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()


def expected_layout() -> list[tuple[Any, ...]]:
    """The `layout` of a cache of this version."""
    empty = sqlite3.connect(":memory:")
    try:
        create(empty)
        return layout(empty)
    finally:
        empty.close()


def create(connection: sqlite3.Connection) -> None:
    """Lay out an empty cache, inside the caller's transaction."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in TABLES.split(";")[:-1]:
        connection.execute(statement)
