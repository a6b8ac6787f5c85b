"""Which texts a shard embeds, and what a shard's cache remembers of it. Knows no files and no tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retrieval_eval.cache.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `count`, counted from 1.

    A text belongs to the shard that its SHA-256 names, whatever stands around it: a file that grows moves no text to
    another shard, and equal counts give shards of about equal size.
    """

    index: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """From `I/N`, such as 2/8. Raises ValueError saying what was expected."""
        found = re.fullmatch(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", text)
        if found is None or int(found[1]) > int(found[2]):
            raise ValueError(f"got {text!r}, expected I/N with I from 1 to N, such as 2/8")
        return Shard(int(found[1]), int(found[2]))

    @staticmethod
    def of(digest: bytes, count: int) -> Shard:
        """The shard of the text with this SHA-256."""
        return Shard(int.from_bytes(digest[:8], "big") % count + 1, count)

    def holds(self, digest: bytes) -> bool:
        """Whether the text with this SHA-256 is one of the shard's."""
        return Shard.of(digest, self.count) == self

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True)
class ShardNote:
    """What a prep of one shard leaves in its cache in place of a manifest file.

    `manifest` is that of the whole, but for `reused` and `embedded`, which count the shard's texts.
    """

    shard: Shard
    manifest: Manifest

    @staticmethod
    def from_facts(facts: Mapping[str, Any]) -> ShardNote:
        """The inverse of `dataclasses.asdict`. Raises KeyError, TypeError or ValueError where that is not possible."""
        shard = Shard.parse(f"{facts['shard']['index']}/{facts['shard']['count']}")
        return ShardNote(shard, Manifest(**facts["manifest"]))
