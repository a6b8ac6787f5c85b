"""Rows and questions that programs stumble over, for the conformance points.

Owns the texts and the vectors that go with them. It asks nothing and judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_eval.retriever.protocol import Vector

_DIMS = 384

AWKWARD_TEXTS = {
    "empty": "",
    "blank": " \t\n ",
    "NUL": "before\0after",
    "emoji": "🙂 👩‍👩‍👧 🇫🇮",
    "right to left": "שלום עולם, مرحبا بالعالم",
    "combining marks": "e\u0301 and \u00e9, \ufb01 and fi",
    "quotes": '"double" \'single\' `back` \\ backslash \\" both',
    "line ends": "one\ntwo\r\nthree\rfour\u2028five\u2029six",
    "query syntax": 'AND OR NOT NEAR(a b) "a" a* ^a col:a -a (a',
    "statement": "'); DROP TABLE memories; --",
    "message": '{"type":"bye"}',
    "200 kB": "a very long memory " * 10_500,
    "first of two equal ones": "the same words twice",
    "second of two equal ones": "the same words twice",
}
"""By name; each is stored as a row and asked as a question."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row that is stored in a trial."""

    row_id: str
    text: str
    vector: Vector


def trial_rows(texts: Sequence[str], prefix: str = "00a") -> list[TrialRow]:
    """Rows with random unit vectors; equal texts get equal ones, a blank text gets zeros, as in a real run.

    `prefix` is three hex digits that begin the 32 of every id.
    """
    rows = []
    for number, text in enumerate(texts):
        seed = int.from_bytes(text.encode("utf-8")[:512], "big")
        vector = np.random.default_rng(seed).standard_normal(_DIMS)
        unit = (vector / np.linalg.norm(vector)).astype(np.float32)
        rows.append(TrialRow(f"{prefix}{number:029x}", text, unit if text.strip() else np.zeros(_DIMS, np.float32)))
    return rows
