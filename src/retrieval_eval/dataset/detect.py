"""What the data file is, from its name, its size and its first bytes. Owns every refusal that needs no parsing."""

from __future__ import annotations

import json
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path

from retrieval_eval.dataset.fields import kind, quote
from retrieval_eval.dataset.source import UTF8_BOM
from retrieval_eval.dataset.stream import top_level_fields
from retrieval_eval.errors import DatasetError

HEAD_BYTES = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"

_OTHER_BENCHMARK = re.compile(r"longmemeval[-_ ]?v2", re.IGNORECASE)
_DOWNLOAD = "LongMemEval files are in xiaowu0162/longmemeval-cleaned on Hugging Face"
_EXPECTED = "a JSON array of LongMemEval instances, plain or gzip"

_FORMATS = (
    (b"\xff\xfe\x00\x00", "UTF-32 text", "save it as UTF-8"),
    (b"\x00\x00\xfe\xff", "UTF-32 text", "save it as UTF-8"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"version https://git-lfs", "a Git LFS pointer, not the data", "git lfs pull, or lfs: true in actions/checkout"),
    (b"PK\x03\x04", "a zip archive", "unpack it"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it"),
    (b"\xfd7zXZ", "xz data", "unpack it"),
    (b"BZh", "bzip2 data", "unpack it"),
    (b"PAR1", "a Parquet file", _DOWNLOAD),
    (GZIP_MAGIC, "gzip data inside gzip data", "unpack it once"),
    (b"<", "an HTML or XML page", "the download failed and an error page was saved; " + _DOWNLOAD),
)
"""First bytes, what has them, and the next step; the first row that fits decides."""

_INSTANCE_FIELDS = {"question_id", "question", "haystack_sessions", "haystack_session_ids"}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that begins as LongMemEval does. `size_bytes` is on disk."""

    path: Path
    size_bytes: int
    is_gzip: bool


def inspect(path: Path) -> DataFile:
    """Look at name, size and first 64 KiB. Raises `DatasetError` saying what the file is instead."""
    if _OTHER_BENCHMARK.search(str(path)):
        raise DatasetError(
            "longmemeval-v2 is a different benchmark (agent trajectories, other files)",
            where=str(path),
            expected="a LongMemEval file",
            hint="the data live in xiaowu0162/longmemeval-cleaned",
        )
    size_bytes, raw = _size_and_head(path)
    is_gzip = raw.startswith(GZIP_MAGIC)
    head = _unpacked(path, raw) if is_gzip else raw
    _refuse_other_formats(path, head, is_whole=len(raw) == size_bytes and len(head) < HEAD_BYTES)
    return DataFile(path, size_bytes, is_gzip)


def _size_and_head(path: Path) -> tuple[int, bytes]:
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size:
            with path.open("rb") as file:
                return status.st_size, file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise DatasetError("no such file", where=str(path), expected=_EXPECTED, hint=_DOWNLOAD) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise DatasetError(f"cannot be read ({reason})", where=str(path), expected=_EXPECTED) from error
    if stat.S_ISDIR(status.st_mode):
        hint = "name the file inside it"
        raise DatasetError("is a folder", where=str(path), expected=_EXPECTED, hint=hint)
    problem = "is empty (0 bytes)" if stat.S_ISREG(status.st_mode) else "is not a regular file"
    raise DatasetError(problem, where=str(path), expected=_EXPECTED)


def _unpacked(path: Path, raw: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(raw, HEAD_BYTES)
    except zlib.error as error:
        hint = "download the file again"
        raise DatasetError("the gzip data are damaged", where=str(path), expected=_EXPECTED, hint=hint) from error


def _refuse_other_formats(path: Path, head: bytes, *, is_whole: bool) -> None:
    text = head.removeprefix(UTF8_BOM).lstrip()
    for first_bytes, name, hint in _FORMATS:
        if head.startswith(first_bytes) or text.startswith(first_bytes):
            raise DatasetError("not LongMemEval data", where=str(path), got=name, expected=_EXPECTED, hint=hint)
    if b"\x00" in head[:4]:
        got = "UTF-16 or UTF-32 text, or no text"
        raise DatasetError(
            "not LongMemEval data", where=str(path), got=got, expected=_EXPECTED, hint="save it as UTF-8"
        )
    if text.startswith(b"["):
        return
    if text.startswith(b"{"):
        raise _object_error(path, text)
    raise DatasetError("not a JSON array", where=str(path), got=_scalar_or_other(text, is_whole), expected=_EXPECTED)


def _object_error(path: Path, text: bytes) -> DatasetError:
    fields = top_level_fields(text)
    names = ", ".join(quote(name) for name in fields[:8]) + (", ..." if len(fields) > 8 else "")
    if _INSTANCE_FIELDS.intersection(fields):
        return DatasetError(
            "is JSON Lines, or a single instance outside a list",
            where=str(path),
            got=f"an object with the fields {names}",
            expected=_EXPECTED,
            hint="jq -s . FILE makes the array",
        )
    return DatasetError(
        "the top level is an object",
        where=str(path),
        got=f"the keys {names}" if names else "no keys",
        expected=_EXPECTED,
        hint="hand over the list of instances inside it",
    )


def _scalar_or_other(text: bytes, is_whole: bool) -> str:
    if not text:
        return "white space only"
    try:
        return kind(json.loads(text)) if is_whole else "text or data that is not JSON"
    except (ValueError, RecursionError):
        return "text or data that is not JSON"
