from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.cache import part
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.cache.writer import CacheWriter
from retrieval_eval.errors import CacheError
from retrieval_eval.sharing.merging import merge

Rows = Callable[[Path], dict[str, list[Any]]]


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "embeddings.sqlite")) as database, database:
        assert database.execute(statement).rowcount > 0


@pytest.mark.parametrize("count", [1, 3, 8])
def test_merged_shards_equal_a_whole_prep_row_for_row(count: int, lab: Any, tmp_path: Path) -> None:
    merge(tmp_path / "merged", lab.shards(lab.data(), count), lab.quiet)
    lab.prepare(lab.data(), tmp_path / "whole")
    assert lab.rows(tmp_path / "merged") == lab.rows(tmp_path / "whole")
    assert lab.manifest_of(tmp_path / "merged") == lab.manifest_of(tmp_path / "whole")
    with CacheReader(tmp_path / "merged") as cache:
        assert len(cache.pairs) == 12


def test_order_of_the_parts_makes_no_difference(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 3)
    merge(tmp_path / "one", parts, lab.quiet)
    merge(tmp_path / "other", parts[::-1], lab.quiet)
    assert lab.rows(tmp_path / "one") == lab.rows(tmp_path / "other")


def test_grown_shards_merge_into_what_a_fresh_prep_of_the_grown_file_gives(lab: Any, tmp_path: Path) -> None:
    lab.shards(lab.data(12, 9), 3)
    merge(tmp_path / "merged", lab.shards(lab.data(20, 7), 3), lab.quiet)
    lab.prepare(lab.data(20, 7), tmp_path / "whole")
    assert lab.rows(tmp_path / "merged") == lab.rows(tmp_path / "whole")


def test_merging_again_after_growth_equals_a_whole_prep_that_grew(lab: Any, tmp_path: Path) -> None:
    for file in (lab.data(12, 9), lab.data(20, 9)):
        merge(tmp_path / "merged", lab.shards(file, 3), lab.quiet)
        lab.prepare(file, tmp_path / "whole")
    assert lab.rows(tmp_path / "merged") == lab.rows(tmp_path / "whole")


def test_shards_that_number_their_texts_differently_fit_together(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(5, 3), tmp_path / "one", "1/2")
    lab.prepare(lab.data(12), tmp_path / "one", "1/2")
    lab.prepare(lab.data(12), tmp_path / "two", "2/2")
    lab.prepare(lab.data(12), tmp_path / "whole")
    merge(tmp_path / "merged", [tmp_path / "one", tmp_path / "two"], lab.quiet)
    assert lab.rows(tmp_path / "merged") == lab.rows(tmp_path / "whole")


def test_parts_of_another_count_unite_as_long_as_nothing_is_missing(lab: Any, tmp_path: Path) -> None:
    merge(tmp_path / "merged", [*lab.shards(lab.data(), 2), *lab.shards(lab.data(), 3)[:1]], lab.quiet)
    lab.prepare(lab.data(), tmp_path / "whole")
    assert lab.rows(tmp_path / "merged") == lab.rows(tmp_path / "whole")


def test_missing_shard_is_named_and_merge_goes_on_when_it_is_there(lab: Any, tmp_path: Path) -> None:
    parts, out = lab.shards(lab.data(), 8), tmp_path / "merged"
    with pytest.raises(
        CacheError, match=r"is incomplete.* of shard 3/8 \(not given\), \d+ of shard 6/8 \(not given\) "
    ):
        merge(out, [part for number, part in enumerate(parts, 1) if number not in {3, 6}], lab.quiet)
    with pytest.raises(CacheError, match="is incomplete"):
        CacheReader(out)
    merge(out, parts, lab.quiet)
    lab.prepare(lab.data(), tmp_path / "whole")
    assert lab.rows(out) == lab.rows(tmp_path / "whole")


def test_shard_that_was_not_finished_is_named_with_its_folder(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 3)
    change(parts[1], "DELETE FROM vector WHERE text = (SELECT max(text) FROM vector)")
    with pytest.raises(CacheError, match=rf"1 of shard 2/3 \(not finished in {parts[1]}\)"):
        merge(tmp_path / "merged", parts, lab.quiet)


def test_part_of_another_data_file_is_named_with_the_line_that_differs(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(12), tmp_path / "one", "1/2")
    lab.prepare(lab.data(13), tmp_path / "two", "2/2")
    with pytest.raises(CacheError, match=rf"{tmp_path}/two: does not fit {tmp_path}/one: dataset sha256 differs"):
        merge(tmp_path / "merged", [tmp_path / "one", tmp_path / "two"], lab.quiet)
    assert not (tmp_path / "merged").exists()


def test_part_of_another_model_is_named_with_the_line_that_differs(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "one", "1/2")
    lab.prepare(lab.data(), tmp_path / "two", "2/2", model=lab.model("commit-b"))
    with pytest.raises(CacheError, match=r"two: does not fit .*: content differs: got commit-b, expected commit-a"):
        merge(tmp_path / "merged", [tmp_path / "one", tmp_path / "two"], lab.quiet)


def test_folder_of_another_model_is_no_place_to_merge_into(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "out", model=lab.model("commit-b"))
    before = lab.rows(tmp_path / "out")
    with pytest.raises(CacheError, match="holds vectors of another model"):
        merge(tmp_path / "out", lab.shards(lab.data(), 2), lab.quiet)
    assert lab.rows(tmp_path / "out") == before


def test_out_among_the_parts_is_refused(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 2)
    with pytest.raises(CacheError, match="is one of the parts"):
        merge(parts[0] / ".." / parts[0].name, parts, lab.quiet)


def test_part_that_is_not_there_is_named(lab: Any, tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=f"{tmp_path}/nowhere: is not there"):
        merge(tmp_path / "merged", [*lab.shards(lab.data(), 2), tmp_path / "nowhere"], lab.quiet)


def test_part_whose_prep_stopped_before_embedding_is_named(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 2)
    change(parts[1], "DELETE FROM meta WHERE key = 'shard'")
    with pytest.raises(CacheError, match=f"{parts[1]}: is not finished.*run prep again"):
        merge(tmp_path / "merged", parts, lab.quiet)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vector SET vector = zeroblob(length(vector))",
        "UPDATE vector SET vector = substr(vector, 1, 10)",
    ],
)
def test_vector_that_does_not_match_its_checksum_is_never_copied(damage: str, lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 3)
    change(parts[2], damage)
    with pytest.raises(CacheError, match=rf"{parts[2]}/embeddings.sqlite: is damaged.*vector"):
        merge(tmp_path / "merged", parts, lab.quiet)
    with pytest.raises(CacheError):
        CacheReader(tmp_path / "merged")


def test_text_that_does_not_match_its_digest_is_never_taken_in(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 2)
    change(parts[0], "UPDATE text SET body = (SELECT body FROM text WHERE id = 2) WHERE id = 3")
    with pytest.raises(CacheError, match=rf"{parts[0]}/embeddings.sqlite: is damaged: got text 3 does not match"):
        merge(tmp_path / "merged", parts, lab.quiet)


def test_database_with_a_trigger_is_not_ours(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(), 2)
    with closing(sqlite3.connect(parts[1] / "embeddings.sqlite")) as database, database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON vector BEGIN DELETE FROM pair; END")
    with pytest.raises(CacheError, match="other tables than this version makes"):
        merge(tmp_path / "merged", parts, lab.quiet)


def test_interrupted_at_every_commit_it_goes_on_and_copies_no_vector_twice(
    monkeypatch: pytest.MonkeyPatch, lab: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(part, "COMMIT_VECTORS", 5)
    stored: list[int] = []
    store = CacheWriter.store

    def store_once(self: CacheWriter, vectors: Any) -> None:
        batch = list(vectors)
        store(self, batch)
        stored.extend(number for number, _ in batch)
        raise KeyboardInterrupt

    parts, out = lab.shards(lab.data(), 3), tmp_path / "merged"
    monkeypatch.setattr(CacheWriter, "store", store_once)
    interruptions = 0
    while True:
        try:
            merge(out, parts, lab.quiet)
            break
        except KeyboardInterrupt:
            interruptions += 1
            assert not (out / "manifest.json").exists()
    monkeypatch.undo()
    lab.prepare(lab.data(), tmp_path / "whole")
    assert interruptions > 5
    assert len(stored) == len(set(stored)) == len(lab.rows(tmp_path / "whole")["vector"])
    assert lab.rows(out) == lab.rows(tmp_path / "whole")


def test_killed_at_any_moment_it_ends_as_if_undisturbed(lab: Any, tmp_path: Path) -> None:
    parts = lab.shards(lab.data(60, 20), 3)
    merge(tmp_path / "undisturbed", parts, lab.quiet)
    began = time.monotonic()
    assert lab.start("merge", tmp_path / "whole", *parts).wait() == 0
    whole_s = time.monotonic() - began
    killed = 0
    for step in range(4):
        out = tmp_path / f"out-{step}"
        process = lab.start("merge", out, *parts)
        time.sleep(whole_s * (0.5 + step / 8))
        process.kill()
        killed += process.wait() != 0
        if not (out / "manifest.json").exists():
            with pytest.raises(CacheError):
                CacheReader(out)
        assert lab.start("merge", out, *parts).wait() == 0
        assert lab.rows(out) == lab.rows(tmp_path / "undisturbed")
        shutil.rmtree(out)
    assert killed > 0


def test_manifest_is_written_last(lab: Any, tmp_path: Path) -> None:
    out = tmp_path / "merged"
    merge(out, lab.shards(lab.data(), 2), lab.quiet)
    assert json.loads((out / "manifest.json").read_text())["pairs"] == 12
    with pytest.raises(CacheError, match="is incomplete"):
        merge(out, lab.shards(lab.data(20), 2)[:1], lab.quiet)
    assert not (out / "manifest.json").exists()
