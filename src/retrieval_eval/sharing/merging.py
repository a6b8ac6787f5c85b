"""merge: several caches of one data file and one model become one. Embeds nothing.

The result is what a prep of the whole file would have written, so it does not matter how the parts were made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.part import Part, adopt
from retrieval_eval.cache.sharding import Shard
from retrieval_eval.cache.writer import CacheWriter
from retrieval_eval.errors import CacheError
from retrieval_eval.model import Instance
from retrieval_eval.progress import Progress, Stage


def merge(out: Path, folders: Sequence[Path], progress: Progress) -> Manifest:
    """Unite the caches in `folders` (one or more) into the one at `out`; goes on where an earlier merge stopped.

    Where two parts have a vector of the same text, that of the first counts. Raises `CacheError` where the parts are of
    different settings or data, where a vector is in none of them, and where `out` is one of them.
    """
    with ExitStack() as stack:
        parts = [stack.enter_context(Part(folder)) for folder in folders]
        _check_apart(out, folders)
        _check_alike(parts)
        first = parts[0]
        with CacheWriter(out, first.identity) as cache:
            with progress.stage("take in", first.manifest.pairs, "questions") as stage:
                cache.take_in(_counted(first.instances(), stage))
            cache.describe(first.dataset)
            needed = cache.needed()
            with progress.stage("copy", len(cache.missing(needed)), "vectors") as stage:
                for part in parts:
                    for copied in adopt(cache, part, cache.missing(needed)):
                        stage.advance(copied)
            _check_whole(cache, needed, parts)
        embedded = min(len(needed), sum(part.manifest.embedded for part in parts))
        manifest = replace(first.manifest, reused=len(needed) - embedded, embedded=embedded)
    manifest.write(out)
    return manifest


def _counted(instances: Iterable[Instance], stage: Stage) -> Iterator[Instance]:
    for instance in instances:
        stage.advance()
        yield instance


def _check_apart(out: Path, folders: Sequence[Path]) -> None:
    if out.resolve() in {folder.resolve() for folder in folders}:
        raise CacheError("is one of the parts", where=f"merge into {out}", hint="give a folder of its own as OUT")


def _check_alike(parts: Sequence[Part]) -> None:
    """Raises `CacheError` naming the first line in which a part differs from the first one."""
    first = parts[0]
    for part in parts[1:]:
        ours, theirs = _card(first), _card(part)
        if ours["fingerprint"] == theirs["fingerprint"]:
            ours["name"] = theirs["name"]  # of a local model's folder: it says nothing about the vectors
        for line in (line for line in ours if line != "fingerprint" and ours[line] != theirs[line]):
            raise CacheError(
                f"does not fit {first.folder}: {line} differs",
                where=f"embedding cache {part.folder}",
                got=str(theirs[line]),
                expected=str(ours[line]),
                hint="prep every shard with the same model, settings and data file",
            )


def _card(part: Part) -> dict[str, object]:
    facts = {"fingerprint": part.identity.fingerprint, **asdict(part.identity)}
    return facts | {"dataset sha256": part.manifest.dataset_sha256, "pairs": part.manifest.pairs}


def _check_whole(cache: CacheWriter, needed: Sequence[int], parts: Sequence[Part]) -> None:
    """Raises `CacheError` naming the shards whose vectors no part has."""
    missing, digests = cache.missing(needed), cache.digests()
    if not missing:
        return
    got = f"{len(missing)} of {len(needed)} vectors are in none of the parts"
    given = {part.shard: part.folder for part in parts if part.shard is not None}
    counts = {shard.count for shard in given}
    if len(counts) == 1:
        lacking = Counter(Shard.of(digests[number][1], *counts) for number in missing)
        where = {shard: f"not finished in {given[shard]}" if shard in given else "not given" for shard in lacking}
        shards = sorted(lacking, key=lambda shard: shard.index)
        got += ": " + ", ".join(f"{lacking[shard]} of shard {shard} ({where[shard]})" for shard in shards)
    raise CacheError(
        "is incomplete",
        where=f"embedding cache {cache.folder}",
        got=got,
        hint="prep these shards and merge again: it goes on",
    )
