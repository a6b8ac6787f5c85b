"""The `fts5` leg: vipune's full-text table and query, word for word in SQL."""

from __future__ import annotations

import sqlite3

from retrieval_eval.errors import RetrieverError
from retrieval_eval.store.limits import RUST_WHITESPACE

SCHEMA = """
CREATE VIRTUAL TABLE memories_fts USING fts5(
    content, content=memories, content_rowid=rowid, tokenize='porter unicode61');
CREATE TRIGGER memories_insert AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts(rowid, content) VALUES (new.rowid, new.content);
END;
"""

SEARCH = """
SELECT m.id, bm25(memories_fts) FROM memories_fts JOIN memories m ON m.rowid = memories_fts.rowid
WHERE memories_fts MATCH ? ORDER BY bm25(memories_fts) LIMIT ?
"""


def match_expression(query: str) -> str:
    """Each word in quotes, joined by a space: FTS5's implicit AND. Empty where the query has no word."""
    words = [word for word in _split(query) if word]
    return " ".join('"' + word.replace("\\", "\\\\").replace('"', '""') + '"' for word in words)


def _split(query: str) -> list[str]:
    for space in RUST_WHITESPACE:
        query = query.replace(space, " ")
    return query.split(" ")


def search(connection: sqlite3.Connection, query: str, limit: int) -> list[tuple[str, float]]:
    """Row ids and SQLite's bm25 scores (negative, lower is better): best first, equal scores oldest first.

    Raises `RetrieverError` where FTS5 refuses the query (a NUL in it), as vipune does.
    """
    expression = match_expression(query)
    if not expression:
        return []
    try:
        return connection.execute(SEARCH, (expression, limit)).fetchall()
    except (sqlite3.Error, UnicodeError) as error:
        raise RetrieverError("full-text search refused the query", got=str(error)) from error
