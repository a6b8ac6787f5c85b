"""The JSON of the retriever protocol, version 1: how requests are written and answers are read.

Owns the wire format and every check of an answer's content. It starts no process and reads no stream. The text that
authors implement from is `docs/retriever-protocol.md`; the two change together.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever.protocol import Answer, Leg, Need, Path, Vector

PROTOCOL_VERSION = 1
GREETING: Mapping[str, object] = {"versions": [PROTOCOL_VERSION], "harness": "retrieval-eval"}
"""The fields of `hello`."""
MAX_BATCH_ROWS = 64
MAX_BATCH_BYTES = 4 * 2**20
MAX_ANSWER_BYTES = 16 * 2**20

_FIRST_ROW = datetime(2024, 1, 1, tzinfo=UTC)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_SURROGATE = re.compile("[\ud800-\udfff]")

Reply = dict[str, Any]
"""One answer, already known to be a JSON object with the right `type` and `seq`."""


class Source(StrEnum):
    """Whose vectors are searched: the harness's, or the retriever's own."""

    GIVEN = "given"
    OWN = "own"


class SentRow(Protocol):
    """What of a `Row` travels; see there."""

    @property
    def row_id(self) -> str: ...  # noqa: D102 (see the class)
    @property
    def text(self) -> str: ...  # noqa: D102 (see the class)
    @property
    def vector(self) -> Vector: ...  # noqa: D102 (see the class)


@dataclass(frozen=True, slots=True)
class PathSupport:
    """What a retriever says of one path: which parts of a query it needs, and whether a list shorter than
    min(limit, rows) is meant.
    """

    needs: frozenset[Need]
    may_return_fewer: bool


@dataclass(frozen=True, slots=True)
class Hello:
    """How a retriever names itself and what it says it can do."""

    name: str
    version: int
    paths: Mapping[Path, PathSupport]
    row_vectors: Source
    query_vectors: Source
    personas: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one insert message, already JSON, and their number."""

    rows: str
    count: int


def encode_vector(vector: Vector) -> str:
    """Base64 (RFC 4648, padded) of the components as little-endian float32, in order; exact."""
    return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode("ascii")


def clean_text(text: str) -> str:
    """Lone surrogates, which UTF-8 cannot hold and strict JSON readers refuse, become U+FFFD; the rest stays."""
    return text if text.isascii() else _SURROGATE.sub("�", text)


def created_at(position: int) -> str:
    """RFC 3339 in UTC: one second later per row, so that "newest first" is the reverse of the order of insertion."""
    return (_FIRST_ROW + timedelta(seconds=position)).strftime("%Y-%m-%dT%H:%M:%SZ")


def request_line(kind: str, seq: int, fields: Mapping[str, object], rows: str | None = None) -> bytes:
    """One request, ASCII only, with its line end. `rows` is the JSON of a `Batch`."""
    head = _dumps({"type": kind, "seq": seq, **fields})
    body = head if rows is None else f'{head[:-1]},"rows":[{rows}]}}'
    return body.encode("ascii") + b"\n"


def batches(rows: Iterable[SentRow], *, with_vectors: bool) -> Iterator[Batch]:
    """Rows in order, at most `MAX_BATCH_ROWS` and `MAX_BATCH_BYTES` of JSON a batch; one larger row goes alone."""
    held: list[str] = []
    size = 0
    for position, row in enumerate(rows):
        fields = {"id": row.row_id, "text": clean_text(row.text), "created_at": created_at(position)}
        encoded = _dumps({**fields, "vector": encode_vector(row.vector)} if with_vectors else fields)
        if held and (len(held) == MAX_BATCH_ROWS or size + len(encoded) > MAX_BATCH_BYTES):
            yield Batch(",".join(held), len(held))
            held, size = [], 0
        held.append(encoded)
        size += len(encoded) + 1
    if held:
        yield Batch(",".join(held), len(held))


def read_reply(line: bytes, kind: str, seq: int, where: str) -> Reply:
    """The answer to request `seq` of type `kind`: of the same type, or of type "error".

    Raises `RetrieverError` for anything else; the stream is then out of step and cannot be used any further.
    """
    try:
        reply = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reply, reason = None, f" ({error})"
    else:
        reason = ""
    if not isinstance(reply, dict):
        raise RetrieverError(
            f"a line on stdout is not a JSON object{reason}",
            where=where,
            got=shown(line),
            expected=f"the answer to {kind!r}, one JSON object a line",
            hint="stdout is for answers only; write logs to stderr",
        )
    if reply.get("seq") != seq or isinstance(reply.get("seq"), bool) or reply.get("type") not in (kind, "error"):
        raise RetrieverError(
            "an answer is out of turn",
            where=where,
            got=f"type {shown(reply.get('type'))}, seq {shown(reply.get('seq'))}",
            expected=f'type "{kind}" or "error", seq {seq}',
        )
    return reply


def read_hello(reply: Reply, where: str) -> Hello:
    """What the retriever says of itself. Unknown fields and unknown paths are ignored."""
    version = reply.get("version")
    if version != PROTOCOL_VERSION or isinstance(version, bool):
        _wrong(where, "hello: version", version, f"{PROTOCOL_VERSION}, the only one offered")
    name = reply.get("name")
    if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= 100:
        _wrong(where, "hello: name", name, "1 to 100 printable characters")
    personas = reply.get("personas", 1)
    if not isinstance(personas, int) or isinstance(personas, bool) or personas < 1:
        _wrong(where, "hello: personas", personas, "a whole number of at least 1")
    embedding = reply.get("embedding", {})
    if not isinstance(embedding, dict):
        _wrong(where, "hello: embedding", embedding, "an object")
    return Hello(
        name=name,
        version=PROTOCOL_VERSION,
        paths=_paths(reply.get("paths"), where),
        row_vectors=_source(embedding, "rows", where),
        query_vectors=_source(embedding, "queries", where),
        personas=personas,
    )


def check_accepted(reply: Reply, kind: str, rows: int, where: str) -> None:
    """The request was carried out. Raises `RetrieverError` for type "error" and for an insert that lost rows.

    A row that is dropped unseen would be a miss that nobody can explain, so `inserted` must equal `rows`.
    """
    if reply["type"] == "error":
        raise RetrieverError(f"answered {kind!r} with an error", where=where, got=shown(reply.get("message")))
    inserted = reply.get("inserted")
    if kind == "insert" and (inserted != rows or isinstance(inserted, bool)):
        _wrong(where, "insert: inserted", inserted, f"{rows}, the rows of the message")


def read_answer(reply: Reply, limit: int, known: Collection[str], where: str) -> Answer:
    """The ranked ids, scores and legs of a search.

    Refuses doubled and unknown ids, more than `limit` of them, and scores that are not finite or that rise. Legs may
    be longer than `limit`.
    """
    ranked = _ids(reply.get("ids"), "ids", known, where)
    if len(ranked) > limit:
        _wrong(where, "search: ids", f"{len(ranked)} ids", f"at most limit = {limit}", quote=False)
    scores = reply.get("scores")
    legs = reply.get("legs")
    if legs is None:
        legs = {}
    elif not isinstance(legs, dict):
        _wrong(where, "search: legs", legs, "an object of id lists")
    return Answer(
        ranked,
        legs={leg: _ids(legs[leg], f"legs.{leg}", known, where) for leg in Leg if leg in legs},
        scored=() if scores is None else tuple(zip(ranked, _scores(scores, len(ranked), where), strict=True)),
    )


def shown(value: object) -> str:
    """A short, printable ASCII form of something that came from the program."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else json.dumps(value, ensure_ascii=True)
    safe = ascii(text)[1:-1] if isinstance(value, bytes) else text
    return safe if len(safe) <= 500 else f"{safe[:500]}… ({len(safe):,} characters)"


def _dumps(value: object) -> str:
    return _ENCODER.encode(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _wrong(where: str, what: str, got: object, expected: str, *, quote: bool = True) -> NoReturn:
    raise RetrieverError(f"{what} is wrong", where=where, got=shown(got) if quote else str(got), expected=expected)


def _source(embedding: dict[str, Any], key: str, where: str) -> Source:
    value = embedding.get(key, Source.GIVEN)
    if value not in list(Source):
        _wrong(where, f"hello: embedding.{key}", value, '"given" or "own"')
    return Source(value)


def _paths(value: object, where: str) -> Mapping[Path, PathSupport]:
    if not isinstance(value, dict):
        _wrong(where, "hello: paths", value, "an object keyed by path")
    paths = {path: _support(value[path], path, where) for path in Path if path in value}
    if not paths:
        _wrong(where, "hello: paths", value, f"at least one of {', '.join(Path)}")
    return paths


def _support(value: object, path: Path, where: str) -> PathSupport:
    needs = value.get("needs") if isinstance(value, dict) else None
    if not isinstance(needs, list) or not needs or any(part not in list(Need) for part in needs):
        _wrong(where, f"hello: paths.{path}.needs", needs, '["text"], ["vector"] or both')
    fewer = value.get("may_return_fewer", False) if isinstance(value, dict) else False
    if not isinstance(fewer, bool):
        _wrong(where, f"hello: paths.{path}.may_return_fewer", fewer, "true or false")
    return PathSupport(frozenset(map(Need, needs)), fewer)


def _ids(value: object, what: str, known: Collection[str], where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        _wrong(where, f"search: {what}", value, "an array of row ids")
    seen: set[str] = set()
    for row_id in value:
        if row_id not in known:
            _wrong(where, f"search: {what}", row_id, "ids of rows of this persona only")
        if row_id in seen:
            _wrong(where, f"search: {what}", row_id, "every id once, but it comes twice")
        seen.add(row_id)
    return tuple(value)


def _scores(value: object, count: int, where: str) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        _wrong(where, "search: scores", value, f"an array of {count} numbers, one for each id")
    scores: list[float] = []
    for score in value:
        if not isinstance(score, int | float) or isinstance(score, bool) or not abs(score) <= sys.float_info.max:
            _wrong(where, "search: scores", score, "finite numbers")
        if scores and score > scores[-1]:
            _wrong(where, "search: scores", f"{scores[-1]} before {score}", "no rise along the list", quote=False)
        scores.append(float(score))
    return scores
