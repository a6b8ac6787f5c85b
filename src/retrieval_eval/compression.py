"""Home of zstandard: small blobs for the embedding cache, streams for archives.

Owns frames and their limits. It must not know what is inside them, nor open files.
Every frame is written at level 3 with a content checksum, so that a flipped bit is an error and never other content.
"""

from __future__ import annotations

import threading
from typing import Protocol

import zstandard

LEVEL = 3
"""zstd's own default, and that of `actions/cache`."""

MAX_WINDOW_BYTES = 128 * 1024 * 1024
"""The largest window that is decoded: what `zstd` itself accepts without `--long`."""

_FEED_BYTES = 2048
"""How much goes into the decoder at once. A zstd block is 4 bytes or more and grows to 128 KiB at most, so this bounds
what one step can yield to 64 MiB, whoever made the input."""


class CompressionError(ValueError):
    """The bytes are not complete, undamaged zstd data, or hold more than was allowed."""


class Readable(Protocol):
    """A binary source, such as an open file."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; empty at the end."""
        ...


class Writable(Protocol):
    """A binary target, such as an open file."""

    def write(self, data: bytes, /) -> int:
        """Write all of `data`."""
        ...


def compress(data: bytes) -> bytes:
    """One zstd frame that states its content's size and checksum. The same bytes give the same frame."""
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)


def decompress(data: bytes, max_size: int) -> bytes:
    """The content of exactly one frame, as written by `compress`.

    The size that the frame states is held against `max_size` (bytes) before anything is allocated. Raises
    `CompressionError` where it is larger or not stated, and where the frame is damaged, cut or followed by other bytes.
    """
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= max_size:
            raise CompressionError(f"zstd blob states {size} bytes of content, expected 0 to {max_size}")
        return _decoder().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd blob of {len(data)} bytes cannot be read: {error}") from error


_PER_THREAD = threading.local()


def _decoder() -> zstandard.ZstdDecompressor:
    """This thread's decoder: making one takes longer than a small blob, and two threads must not share one."""
    if not hasattr(_PER_THREAD, "decoder"):
        _PER_THREAD.decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    decoder: zstandard.ZstdDecompressor = _PER_THREAD.decoder
    return decoder


class FrameWriter:
    """Compresses what is written into one frame in `target`; `close` ends the frame and leaves `target` open."""

    def __init__(self, target: Writable) -> None:
        self._target = target
        self._encoder = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()

    def write(self, data: bytes) -> int:
        """Compress `data`; returns its length."""
        self._target.write(self._encoder.compress(data))
        return len(data)

    def close(self) -> None:
        """Write what is still held and the checksum. Without it the frame is incomplete."""
        self._target.write(self._encoder.flush())


class FrameReader:
    """Reads the content of every frame in `source`, one after the other (`zstdmt` writes several).

    Memory is bounded by the window and 64 MiB, whatever the source holds. The end of the source inside a frame, a
    checksum that does not match and bytes that are no frame raise `CompressionError`.
    """

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = bytearray()
        self._ended = False

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes of content, fewer only at the end."""
        while len(self._ready) < size and not self._ended:
            self._feed()
        part = bytes(self._ready[:size])
        del self._ready[:size]
        return part

    def _feed(self) -> None:
        data = self._source.read(_FEED_BYTES)
        if not data:
            if self._frame is not None:
                raise CompressionError("zstd stream ends inside a frame: it was cut")
            self._ended = True
        try:
            while data:
                if self._frame is None:
                    self._frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
                self._ready += self._frame.decompress(data)
                data = self._frame.unused_data
                if self._frame.eof:
                    self._frame = None
        except zstandard.ZstdError as error:
            raise CompressionError(f"zstd stream is damaged: {error}") from error
