from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.archive import ArchiveError, Caps, create, extract
from retrieval_eval.compression import compress

PATH = ".embcache"
SMALL = Caps(max_content_bytes=1024 * 1024, max_members=20)
Build = Callable[[tarfile.TarFile], None]


def tar_of(build: Build) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        build(tar)
    return raw.getvalue()


def add(tar: tarfile.TarFile, name: str, data: bytes = b"x", **fields: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    tar.addfile(info, io.BytesIO(data))


def sound(tar: tarfile.TarFile) -> None:
    add(tar, ".embcache/a", b"new" * 1000)
    add(tar, ".embcache/b", b"more")


def link(kind: bytes, to: str) -> Build:
    def build(tar: tarfile.TarFile) -> None:
        add(tar, ".embcache/a")
        add(tar, ".embcache/l", b"", type=kind, linkname=to)

    return build


def files(*names: str) -> Build:
    def build(tar: tarfile.TarFile) -> None:
        for name in names:
            add(tar, name)

    return build


def through_a_link(tar: tarfile.TarFile) -> None:
    add(tar, ".embcache/l", b"", type=tarfile.SYMTYPE, linkname="/")
    add(tar, ".embcache/l/planted")


HOSTILE: dict[str, Build] = {
    "traversal": lambda tar: add(tar, ".embcache/../../planted"),
    "absolute": lambda tar: add(tar, "/planted"),
    "other top folder": lambda tar: add(tar, "src/planted"),
    "name that only begins alike": lambda tar: add(tar, ".embcache2/planted"),
    "nothing": lambda tar: None,
    "symlink": link(tarfile.SYMTYPE, "/etc/passwd"),
    "symlink as the path itself": lambda tar: add(tar, PATH, b"", type=tarfile.SYMTYPE, linkname="/"),
    "file through a symlink": through_a_link,
    "hardlink": link(tarfile.LNKTYPE, "../planted"),
    "fifo": link(tarfile.FIFOTYPE, ""),
    "character device": link(tarfile.CHRTYPE, ""),
    "block device": link(tarfile.BLKTYPE, ""),
    "contiguous file": link(tarfile.CONTTYPE, ""),
    "too many members": files(*(f".embcache/{n}" for n in range(21))),
    "too large": lambda tar: add(tar, ".embcache/a", bytes(2_000_000)),
    "the same file twice": files(".embcache/a", ".embcache/a"),
    "file and folder of one name": files(".embcache/a", ".embcache/a/b"),
    "null in a name": lambda tar: add(tar, "x", pax_headers={"path": ".embcache/a\0b"}),
    "huge header": lambda tar: add(tar, ".embcache/a", pax_headers={"comment": "x" * 100_000}),
    "negative size": lambda tar: add(tar, ".embcache/a", pax_headers={"size": "-512"}),
    "size beyond the end": lambda tar: add(tar, ".embcache/a", pax_headers={"size": "900000"}),
    "sparse": lambda tar: add(tar, ".embcache/a", pax_headers={"GNU.sparse.size": "9", "GNU.sparse.map": "0,1"}),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace one folder deep, whose cache holds something already."""
    folder = tmp_path / "outer" / "workspace"
    (folder / PATH).mkdir(parents=True)
    (folder / PATH / "old").write_bytes(b"old")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(workspace: Path, packed: bytes, limits: Caps = SMALL) -> str:
    """The reason for which `packed` is refused, once it is sure that nothing changed."""
    before = everything(workspace.parent)
    archive = workspace.parent.parent / "cache.tzst"
    archive.write_bytes(packed)
    with pytest.raises((ArchiveError, OSError)) as caught:
        extract(archive, workspace, PATH, limits)
    assert everything(workspace.parent) == before
    assert [path.name for path in workspace.iterdir()] == [PATH]
    return str(caught.value)


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archive_changes_nothing(workspace: Path, case: str) -> None:
    assert refused(workspace, compress(tar_of(HOSTILE[case])))


def test_zip_bomb_is_stopped_early(workspace: Path) -> None:
    bomb = compress(tar_of(lambda tar: add(tar, ".embcache/a", bytes(200_000_000))))
    assert len(bomb) < 20_000
    assert "more than is allowed" in refused(workspace, bomb)


def test_bomb_behind_the_end_is_stopped_too(workspace: Path) -> None:
    assert "more than is allowed" in refused(workspace, compress(tar_of(sound) + bytes(200_000_000)))


def test_zeros_behind_the_end_are_padding(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(compress(tar_of(sound) + bytes(100_000)))
    extract(tmp_path / "c", workspace, PATH, SMALL)
    assert (workspace / PATH / "b").read_bytes() == b"more"


def test_garbage_behind_the_tar(workspace: Path) -> None:
    assert "after its end" in refused(workspace, compress(tar_of(sound) + bytes(50_000) + b"garbage"))


def test_garbage_behind_the_frame(workspace: Path) -> None:
    assert refused(workspace, compress(tar_of(sound)) + b"garbage")


def test_garbage_instead_of_an_archive(workspace: Path) -> None:
    for packed in (b"", b"garbage", compress(b""), compress(b"garbage"), compress(b"garbage" * 1000)):
        assert refused(workspace, packed)


def test_cut_archive_at_every_tenth_byte(workspace: Path) -> None:
    packed = compress(tar_of(sound))
    for size in range(1, len(packed), 10):
        refused(workspace, packed[:size])
    refused(workspace, packed[:-1])


def test_cut_tar_in_a_whole_frame(workspace: Path) -> None:
    whole = tar_of(sound)
    end = len(whole.rstrip(b"\0")) + 512
    for size in range(0, end - end % 512, 512):
        refused(workspace, compress(whole[:size]))


def test_flipped_bit_never_yields_other_content(tmp_path: Path) -> None:
    packed = bytearray(compress(tar_of(sound)))
    for place in range(len(packed)):
        packed[place] ^= 0x10
        (tmp_path / "c").write_bytes(packed)
        packed[place] ^= 0x10
        workspace = tmp_path / str(place)
        workspace.mkdir()
        try:
            extract(tmp_path / "c", workspace, PATH, SMALL)
        except ArchiveError:
            assert list(workspace.iterdir()) == []
        else:  # zstd has a bit or two without a meaning
            assert everything(workspace) == {".embcache/a": b"new" * 1000, ".embcache/b": b"more"}


def test_damaged_header_in_the_middle_is_no_end(workspace: Path) -> None:
    whole = bytearray(tar_of(sound))
    second = whole.index(b".embcache/b")
    whole[second] ^= 1
    assert "header" in refused(workspace, compress(bytes(whole)))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2047), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_tar_headers_raise_nothing_else(changes: list[tuple[int, int]]) -> None:
    whole = bytearray(tar_of(lambda tar: add(tar, ".embcache/a", b"x", pax_headers={"comment": "y"})))
    for place, value in changes:
        whole[place] = value
    with TemporaryDirectory() as folder:
        Path(folder, "w").mkdir()
        Path(folder, "c").write_bytes(compress(bytes(whole)))
        try:
            extract(Path(folder, "c"), Path(folder, "w"), PATH, SMALL)
        except (ArchiveError, OSError):
            assert list(Path(folder, "w").iterdir()) == []
        assert {path.name for path in Path(folder).iterdir()} == {"w", "c"}


def test_link_in_place_of_the_cache_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / PATH).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "c").write_bytes(compress(tar_of(sound)))
    with pytest.raises(ArchiveError, match="symbolic link"):
        extract(tmp_path / "c", tmp_path / "w", PATH, SMALL)
    with pytest.raises(ArchiveError, match="symbolic link"):
        create(tmp_path / "w", PATH, tmp_path / "d", SMALL)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_was_there_is_replaced_as_a_whole(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(compress(tar_of(sound)))
    extract(tmp_path / "c", workspace, PATH, SMALL)
    assert everything(workspace) == {".embcache/a": b"new" * 1000, ".embcache/b": b"more"}


def test_modes_of_the_archive_are_ignored(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(compress(tar_of(lambda tar: add(tar, ".embcache/a", mode=0o6777))))
    extract(tmp_path / "c", workspace, PATH, SMALL)
    assert (workspace / PATH / "a").stat().st_mode & 0o7111 == 0


def test_several_frames_are_one_archive(workspace: Path, tmp_path: Path) -> None:
    whole = tar_of(sound)
    (tmp_path / "c").write_bytes(compress(whole[:700]) + compress(whole[700:]))
    extract(tmp_path / "c", workspace, PATH, SMALL)
    assert (workspace / PATH / "a").read_bytes() == b"new" * 1000


def test_saving_refuses_what_restoring_would(tmp_path: Path) -> None:
    folder = tmp_path / PATH
    folder.mkdir()
    for number in range(25):
        (folder / str(number)).touch()
    with pytest.raises(ArchiveError, match="more than an archive may"):
        create(tmp_path, PATH, tmp_path / "c", SMALL)
    os.mkfifo(folder / "0pipe")
    with pytest.raises(ArchiveError, match="neither a file nor a folder"):
        create(tmp_path, PATH, tmp_path / "c", SMALL)
    with pytest.raises(ArchiveError, match="nothing at"):
        create(tmp_path, "missing", tmp_path / "c", SMALL)


NAME = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) <= 200
)
FOLDERS = st.deferred(lambda: st.dictionaries(NAME, st.binary(max_size=3000) | FOLDERS, max_size=3))
Tree = dict[str, "bytes | Tree"]


def plant(tree: Tree, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, node in tree.items():
        if isinstance(node, bytes):
            (folder / name).write_bytes(node)
        else:
            plant(node, folder / name)


def grown(folder: Path) -> Tree:
    return {path.name: grown(path) if path.is_dir() else path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=60, deadline=None)
@given(FOLDERS, st.sampled_from([PATH, "deep/er/cache", "./a/"]))
def test_any_tree_comes_back_as_it_was(tree: Tree, path: str) -> None:
    with TemporaryDirectory() as name:
        first, second, archive = Path(name, "1"), Path(name, "2"), Path(name, "c")
        plant(tree, first / path)
        second.mkdir()
        create(first, path, archive, Caps())
        extract(archive, second, path, Caps())
        assert grown(second / path) == tree


def test_failed_move_puts_back_what_was_there(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c").write_bytes(compress(tar_of(sound)))
    rename = Path.rename

    def fails_for_the_new(self: Path, to: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fails_for_the_new)
    with pytest.raises(OSError, match="No space"):
        extract(tmp_path / "c", workspace, PATH, SMALL)
    assert everything(workspace) == {".embcache/old": b"old"}


def test_chain_of_headers_is_refused(workspace: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1
    packed = compress((info.tobuf(tarfile.GNU_FORMAT) + b"a" + bytes(511)) * 2000)
    assert refused(workspace, packed, Caps())
