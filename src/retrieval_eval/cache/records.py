"""What the cache's blobs hold, both ways. Every reading is checked; damage is a ValueError."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from retrieval_eval.compression import compress, decompress
from retrieval_eval.model import GoldSource, Pair
from retrieval_eval.terms import TermCounts

MAX_BLOB_BYTES = 256 * 1024 * 1024


def pack_text(text: str) -> bytes:
    """A text as one zstd frame."""
    return compress(text.encode("utf-8"))


def unpack_text(blob: bytes) -> str:
    """The inverse of `pack_text`."""
    return decompress(blob, MAX_BLOB_BYTES).decode("utf-8")


def pack_json(value: object) -> bytes:
    """A JSON value as one zstd frame, keys sorted."""
    return pack_text(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def unpack_json(blob: bytes) -> Any:
    """The inverse of `pack_json`."""
    return json.loads(unpack_text(blob))


def pack_terms(counts: TermCounts) -> bytes:
    """Term counts as one zstd frame."""
    return compress(counts.to_bytes())


def unpack_terms(blob: bytes) -> TermCounts:
    """The inverse of `pack_terms`."""
    return TermCounts.from_bytes(decompress(blob, MAX_BLOB_BYTES))


def pack_vector(vector: npt.NDArray[np.float32]) -> bytes:
    """Little-endian float32, then their CRC-32."""
    data = vector.astype("<f4", copy=False).tobytes()
    return data + zlib.crc32(data).to_bytes(4, "little")


def unpack_vector(blob: bytes, dims: int) -> npt.NDArray[np.float32]:
    """The inverse of `pack_vector`: float32 (dims,)."""
    if len(blob) != 4 * dims + 4:
        raise ValueError(f"vector of {len(blob)} bytes, expected {4 * dims + 4}")
    if zlib.crc32(memoryview(blob)[:-4]) != int.from_bytes(blob[-4:], "little"):
        raise ValueError("vector does not match its checksum")
    return np.frombuffer(blob, dtype="<f4", count=dims).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True)
class StoredPair:
    """A pair with its haystack: session ids in the file's order, beside the ids of the texts that hold them."""

    pair: Pair
    question_text: int
    session_ids: tuple[str, ...]
    session_texts: tuple[int, ...]

    def to_blob(self) -> bytes:
        """One zstd frame of JSON."""
        return pack_json(asdict(self))

    @staticmethod
    def from_blob(blob: bytes) -> StoredPair:
        """The inverse of `to_blob`."""
        facts = unpack_json(blob)
        pair = facts["pair"]
        pair["gold"], pair["gold_source"] = tuple(pair["gold"]), GoldSource(pair["gold_source"])
        return StoredPair(
            Pair(**pair), facts["question_text"], tuple(facts["session_ids"]), tuple(facts["session_texts"])
        )


def pack_vocabulary(terms: Sequence[str]) -> bytes:
    """Terms in the order of their numbers; a term is a run of word characters, so a newline can part them."""
    return pack_text("\n".join(terms))


def unpack_vocabulary(blob: bytes) -> list[str]:
    """The inverse of `pack_vocabulary`."""
    return unpack_text(blob).split("\n")
