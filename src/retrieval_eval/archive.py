"""Archives as `actions/cache` makes them: a PAX tar of one path below the workspace, in zstd frames.

Owns packing, and unpacking of what a stranger may have made: nothing outside the path, no links, no devices, capped in
size and number, and in place only as a whole. It must not know any service.
"""

from __future__ import annotations

import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self, cast

from retrieval_eval.compression import CompressionError, FrameReader, FrameWriter

MIB = 1024 * 1024
GIB = 1024 * MIB
_MAX_HEADER_BYTES = 64 * 1024
_META_TYPES = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}


@dataclass(frozen=True, slots=True)
class Caps:
    """What an archive may hold at most."""

    max_content_bytes: int = 16 * GIB
    """Unpacked, tar headers included: what stops a zip bomb."""
    max_members: int = 10_000
    """Files and folders."""


class ArchiveError(Exception):
    """The archive, or what should become one, is not what may be cached; `reason` is one sentence."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def create(workspace: Path, path: str, archive: Path, caps: Caps) -> None:
    """Pack `workspace / path` into `archive`: folders and regular files by name, owned by nobody, no links followed.

    What `extract` would refuse is refused here. Raises `ArchiveError`, and `OSError` where a file cannot be read.
    """
    source = place_of(workspace, path)
    if not source.exists():
        raise ArchiveError(f"there is nothing at {path!a}")
    total = 0
    with archive.open("wb") as raw:
        frame = FrameWriter(raw)  # tarfile's stream modes call nothing but write, or read: hence the casts
        with tarfile.open(fileobj=cast("IO[bytes]", frame), mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for count, item in enumerate(_tree(source), 1):
                info = _info(item, PurePosixPath(path) / item.relative_to(source).as_posix())
                total += info.size
                if count > caps.max_members or total > caps.max_content_bytes:
                    raise ArchiveError(f"{path!a} holds more than an archive may: {_allowed(caps)}")
                if info.isdir():
                    tar.addfile(info)
                else:
                    with item.open("rb") as file:
                        tar.addfile(info, file)
        frame.close()


def extract(archive: Path, workspace: Path, path: str, caps: Caps) -> None:
    """Unpack `archive` and put it at `workspace / path`, in place of what was there.

    It is unpacked beside the target first and moved there once it has been read to its end and found sound; otherwise
    nothing changes. Owners, modes and times of the archive are ignored. Raises `ArchiveError`, and `OSError` where
    writing fails.
    """
    target = place_of(workspace, path)
    near = next(folder for folder in target.parents if folder.is_dir())
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=near, ignore_cleanup_errors=True) as scratch:
        staged = Path(scratch, "new")
        try:
            with archive.open("rb") as raw:
                _unpack(_Capped(FrameReader(raw), caps), PurePosixPath(path), staged, caps)
        except CompressionError as error:
            raise ArchiveError(str(error)) from error
        except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
            raise ArchiveError(f"the archive is damaged ({type(error).__name__})") from error
        if not staged.exists():
            raise ArchiveError(f"the archive holds nothing under {path!a}")
        target.parent.mkdir(parents=True, exist_ok=True)
        _swap(staged, target, Path(scratch, "old"))


def place_of(workspace: Path, path: str) -> Path:
    """`workspace / path`. Raises `ArchiveError` where a link on the way could lead out of the workspace."""
    place = workspace
    for part in PurePosixPath(path).parts:
        place = place / part
        if place.is_symlink():
            raise ArchiveError(f"{path!a} is, or lies behind, a symbolic link")
    return place


def _tree(source: Path) -> Iterator[Path]:
    yield source
    if source.is_dir():
        yield from sorted(source.rglob("*"))


def _info(item: Path, name: PurePosixPath) -> tarfile.TarInfo:
    found = item.lstat()
    info = tarfile.TarInfo(str(name))
    info.mtime = int(found.st_mtime)
    if stat.S_ISDIR(found.st_mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISREG(found.st_mode):
        info.size = found.st_size
    else:
        raise ArchiveError(f"{str(name)!a} is neither a file nor a folder")
    return info


class _StrictInfo(tarfile.TarInfo):
    """Reads headers without mercy: `tarfile` takes a damaged header after the first for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            info = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise  # the end mark
            raise ArchiveError("the archive is damaged or was cut: a header is not readable") from error
        if info.type in _META_TYPES and not 0 <= info.size <= _MAX_HEADER_BYTES:
            raise ArchiveError(f"the archive has a header of {info.size} bytes")
        return info


class _Capped:
    """Content of the frames, refused past `max_content_bytes`."""

    def __init__(self, frames: FrameReader, caps: Caps) -> None:
        self._frames, self._caps, self._left = frames, caps, caps.max_content_bytes

    def read(self, size: int) -> bytes:
        data = self._frames.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError(f"the archive holds more than is allowed: {_allowed(self._caps)}")
        return data


def _unpack(content: _Capped, root: PurePosixPath, staged: Path, caps: Caps) -> None:
    with tarfile.open(fileobj=cast("IO[bytes]", content), mode="r|", tarinfo=_StrictInfo) as tar:
        for count, member in enumerate(tar, 1):
            if count > caps.max_members:
                raise ArchiveError(f"the archive holds more than is allowed: {_allowed(caps)}")
            _place(tar, member, _inside(member.name, root, staged))
    while rest := content.read(MIB):
        if any(rest):
            raise ArchiveError("the archive goes on after its end")


def _inside(name: str, root: PurePosixPath, staged: Path) -> Path:
    """Where a member belongs in the staging folder, which stands for `root`."""
    parts, top = PurePosixPath(name).parts, root.parts
    if name.startswith("/") or ".." in parts or "\0" in name or parts[: len(top)] != top:
        raise ArchiveError(f"the archive holds {name[:80]!a}, which is not under {str(root)!a}")
    return staged.joinpath(*parts[len(top) :])


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    if member.type not in {tarfile.REGTYPE, tarfile.AREGTYPE} or member.issparse():
        raise ArchiveError(f"the archive holds {member.name[:80]!a}, which is neither a file nor a folder")
    source = tar.extractfile(member)
    if source is None or place.exists():
        raise ArchiveError(f"the archive holds {member.name[:80]!a} twice")
    place.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with place.open("xb") as file:
        while data := source.read(MIB):
            written += file.write(data)
    if written != member.size:
        raise ArchiveError(f"the archive was cut within {member.name[:80]!a}")


def _swap(staged: Path, target: Path, old: Path) -> None:
    """Move `staged` to `target`; what was there goes to `old`, and back where the move fails."""
    if not target.exists():
        staged.rename(target)
        return
    target.rename(old)
    try:
        staged.rename(target)
    except OSError:
        old.rename(target)
        raise


def _allowed(caps: Caps) -> str:
    return f"{caps.max_members} files and folders, {caps.max_content_bytes} bytes"
