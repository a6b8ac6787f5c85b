from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.cache.sharding import Shard
from retrieval_eval.errors import CacheError

DIGESTS = [hashlib.sha256(str(number).encode()).digest() for number in range(8000)]


@pytest.mark.parametrize(("text", "index", "count"), [("1/1", 1, 1), ("2/8", 2, 8), ("256/256", 256, 256)])
def test_shard_is_read_as_part_of_count(text: str, index: int, count: int) -> None:
    assert Shard.parse(text) == Shard(index, count)
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "2", "0/3", "4/3", "1/0", "-1/3", "1/3/3", " 1/3", "1/3\n", "01/3", "1 / 3", "a/b", "\uff11/3", "1/10000"],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected I/N with I from 1 to N, such as 2/8"):
        Shard.parse(text)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_every_text_is_in_exactly_one_shard_and_shards_are_balanced(count: int) -> None:
    sizes = Counter([index for digest in DIGESTS for index in range(1, count + 1) if Shard(index, count).holds(digest)])
    assert sizes.total() == len(DIGESTS)
    assert len(sizes) == count
    assert max(sizes.values()) < 1.1 * min(sizes.values())


def test_shard_embeds_its_own_texts_only(lab: Any, tmp_path: Path) -> None:
    model = lab.model()
    done = lab.prepare(lab.data(), tmp_path / "part", "2/3", model=model)
    embedded = model.load().embedded
    assert 0 < len(embedded) == done.embedded
    assert all(Shard(2, 3).holds(hashlib.sha256(text.encode()).digest()) for text in embedded)


def test_shard_that_was_done_embeds_only_what_a_grown_file_adds(lab: Any, tmp_path: Path) -> None:
    first = lab.prepare(lab.data(12), tmp_path / "part", "1/2")
    again = lab.prepare(lab.data(12), tmp_path / "part", "1/2")
    grown = lab.prepare(lab.data(20), tmp_path / "part", "1/2")
    assert (again.reused, again.embedded) == (first.embedded, 0)
    assert grown.reused == first.embedded
    assert grown.embedded > 0


@pytest.mark.parametrize("shard", ["1/1", "2/3"])
def test_run_refuses_a_shard_and_says_what_to_do(shard: str, lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "part", shard)
    assert not (tmp_path / "part" / "manifest.json").exists()
    with pytest.raises(CacheError, match=rf"is incomplete: it is shard {shard} alone.*retrieval-eval merge"):
        CacheReader(tmp_path / "part")


def test_whole_prep_makes_a_shard_a_whole_cache(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(), tmp_path / "part", "2/3")
    lab.prepare(lab.data(), tmp_path / "part")
    lab.prepare(lab.data(), tmp_path / "whole")
    assert lab.rows(tmp_path / "part") == lab.rows(tmp_path / "whole")


def test_whole_cache_that_is_prepared_as_a_shard_of_more_data_is_a_part_again(lab: Any, tmp_path: Path) -> None:
    lab.prepare(lab.data(12), tmp_path / "cache")
    lab.prepare(lab.data(20), tmp_path / "cache", "1/3")
    with pytest.raises(CacheError, match="is incomplete: it is shard 1/3 alone"):
        CacheReader(tmp_path / "cache")
