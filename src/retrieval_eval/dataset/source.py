"""The bytes of the data file: read once, counted and hashed on the way, unpacked where they are gzip.

Knows nothing of JSON. What the bytes are is found out before, in `detect.py`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 16
UTF8_BOM = b"\xef\xbb\xbf"


class BrokenSourceError(Exception):
    """The file cannot be read, or unpacked, to its end. `reason` is a clause about the file."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ByteSource(io.RawIOBase):
    """One pass over a file. Sizes are bytes on disk, but for `text_bytes`, which counts what `chunks` handed on."""

    def __init__(self, path: Path, *, is_gzip: bool) -> None:
        super().__init__()
        self.path, self.is_gzip = path, is_gzip
        self.position_bytes = self.text_bytes = 0
        self._sha256 = hashlib.sha256()
        self._file = path.open("rb", buffering=0)

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes as they are on disk; b"" at the end."""
        piece = self._file.read(size) or b""
        self._sha256.update(piece)
        self.position_bytes += len(piece)
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def digest(self) -> str:
        """Sha256, in hex, of the bytes read so far."""
        return self._sha256.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """The text in pieces of at most 64 KiB, without byte-order mark, to the file's last byte.

        Raises `BrokenSourceError` where the gzip data are damaged or cut, or the file cannot be read.
        """
        stream = gzip.GzipFile(fileobj=self) if self.is_gzip else self
        try:
            while chunk := stream.read(CHUNK_BYTES):
                text = chunk if self.text_bytes else chunk.removeprefix(UTF8_BOM)
                self.text_bytes += len(chunk)
                yield text
        except EOFError as error:
            raise BrokenSourceError("the gzip data are cut off") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise BrokenSourceError("the gzip data are damaged") from error
        except OSError as error:
            raise BrokenSourceError(f"cannot be read ({error.strerror})") from error
