from __future__ import annotations

import contextlib
import io
import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.compression import CompressionError, FrameReader, FrameWriter, compress, decompress


@given(st.binary(max_size=5000))
def test_blob_comes_back(data: bytes) -> None:
    assert decompress(compress(data), len(data)) == data


def test_same_bytes_give_the_same_blob() -> None:
    assert compress(b"text" * 100) == compress(b"text" * 100)


def test_blob_of_more_than_was_allowed() -> None:
    with pytest.raises(CompressionError, match="states 10 bytes of content, expected 0 to 9"):
        decompress(compress(b"0123456789"), 9)


def test_blob_that_does_not_state_its_size() -> None:
    writer = zstandard.ZstdCompressor(write_content_size=False)
    with pytest.raises(CompressionError, match="states -1 bytes"):
        decompress(writer.compress(b"text"), 100)


@pytest.mark.parametrize(
    "change", [lambda blob: blob[:-1], lambda blob: blob + b"x", lambda blob: b"", lambda blob: b"x"]
)
def test_blob_that_is_cut_or_followed_or_none(change: object) -> None:
    assert callable(change)
    with pytest.raises(CompressionError):
        decompress(change(compress(b"text" * 100)), 1000)


def test_flipped_bit_never_yields_other_text() -> None:
    blob = bytearray(compress(b"some text " * 20))
    for place in range(len(blob)):
        blob[place] ^= 0x08
        with contextlib.suppress(CompressionError):
            assert decompress(bytes(blob), 10_000) == b"some text " * 20
        blob[place] ^= 0x08


@given(st.lists(st.binary(max_size=500), max_size=5), st.integers(1, 700))
def test_stream_of_frames_comes_back(parts: list[bytes], size: int) -> None:
    raw = io.BytesIO()
    for part in parts:
        frame = FrameWriter(raw)
        frame.write(part)
        frame.close()
    reader, found = FrameReader(io.BytesIO(raw.getvalue())), bytearray()
    while piece := reader.read(size):
        found += piece
    assert bytes(found) == b"".join(parts)


@pytest.mark.parametrize("cut", [1, 4, 5, 1000])
def test_cut_stream(cut: int) -> None:
    raw = compress(os.urandom(5000))[:-cut]
    with pytest.raises(CompressionError, match="it was cut"):
        FrameReader(io.BytesIO(raw)).read(10_000)


def test_stream_followed_by_garbage() -> None:
    with pytest.raises(CompressionError, match="damaged"):
        FrameReader(io.BytesIO(compress(b"text") + b"garbage")).read(10_000)
