"""prep and run: the only places where the stages meet. Effects (progress, clock, loading a model) are handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from retrieval_eval.bench import Bench
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.part import Part, adopt
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.cache.records import StoredPair
from retrieval_eval.cache.sharding import Shard, ShardNote
from retrieval_eval.cache.writer import CacheWriter
from retrieval_eval.census import Census
from retrieval_eval.compare import BASE_NOTE, with_comparison
from retrieval_eval.dataset import DatasetReader
from retrieval_eval.embedding.embedder import Embedded, Embedder, ModelIdentity
from retrieval_eval.errors import DatasetError, ReportError, RetrieverError
from retrieval_eval.figures import counted
from retrieval_eval.lanes import Outcome
from retrieval_eval.measure import Measured
from retrieval_eval.model import DEFAULT_KS, Instance, Lane
from retrieval_eval.progress import Progress, Stage
from retrieval_eval.retriever.spec import RetrieverSpec
from retrieval_eval.trec import of_sessions

COMMIT_TEXTS = 64
"""Vectors are committed this many at a time: a few seconds of work at the most is ever lost."""

KILOBYTE = 1000
"""How finely reading is counted: how many questions a file holds is not known before its end, its size is."""

GIVEN = "given list"
"""The path of a lane whose lists some other program made."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What reaches outside: where progress goes, and a clock in seconds that only grows."""

    progress: Progress
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is found, and loaded only when it is needed. `source` and `revision` find it again."""

    source: str
    revision: str | None
    identity: ModelIdentity
    load: Callable[[], Embedder]


Seed = Callable[[], AbstractContextManager[Path]]
"""Opens a folder that holds a finished cache of the same model, for as long as the context lasts."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a prep did: distinct texts, sessions and questions, found in the cache and embedded anew."""

    pairs: int
    reused: int
    embedded: int


def prep(
    data: Path, folder: Path, model: Model, effects: Effects, *, shard: Shard | None = None, seed: Seed | None = None
) -> Prepared:
    """Read `data` into the cache at `folder` and embed what it lacks; goes on where an earlier prep stopped.

    With a `shard`, only its texts are embedded, and the cache is a part for `merge` to unite: run refuses it. A `seed`
    is opened where vectors are missing, and gives those that it has.

    Raises `DatasetError`, `CacheError` or `ModelError`; a data file that is wrong leaves the cache as it was.
    """
    reader, census = DatasetReader(data), Census()
    with CacheWriter(folder, model.identity) as cache:
        # A model that does not load leaves no half-filled cache; with a seed it may not be needed at all.
        embedder = model.load() if cache.is_new and seed is None else None
        with effects.progress.stage("read", reader.size_bytes // KILOBYTE, "kB") as stage:
            cache.take_in(_scorable(reader, census, data, stage))
        needed = cache.needed(shard)
        missing = cache.missing(needed)
        if missing and seed is not None:
            _adopt(cache, missing, seed, effects)
            missing = cache.missing(needed)
        manifest = Manifest(
            fingerprint=model.identity.fingerprint,
            model_source=model.source,
            model_revision=model.revision,
            dataset_sha256=reader.digest,
            pairs=census.pairs,
            reused=len(needed) - len(missing),
            embedded=len(missing),
        )
        note = None if shard is None else ShardNote(shard, manifest)
        cache.describe(census.facts(reader, data.name), note)
        if missing:
            _embed(cache, missing, embedder or model.load(), effects)
    if shard is None:
        manifest.write(folder)
    return Prepared(manifest.pairs, manifest.reused, manifest.embedded)


def _scorable(reader: DatasetReader, census: Census, data: Path, stage: Stage) -> Iterator[Instance]:
    """The instances, counted; ends with a `DatasetError` where none of them can be scored."""
    told_kb = 0
    for instance in census.counted(reader.instances()):
        read_kb = reader.position_bytes // KILOBYTE
        stage.advance(read_kb - told_kb)
        told_kb = read_kb
        yield instance
    stage.advance(reader.position_bytes // KILOBYTE - told_kb)
    if not census.pairs:
        got = ", ".join(f"{reason}: {counted(n, 'question')}" for reason, n in census.dropped().items() if n)
        raise DatasetError("nothing to score", where=str(data), got=got, expected="at least one pair with gold")


def _adopt(cache: CacheWriter, missing: list[int], seed: Seed, effects: Effects) -> None:
    with seed() as folder, Part(folder) as part, effects.progress.stage("copy", len(missing), "vectors") as stage:
        for copied in adopt(cache, part, missing):
            stage.advance(copied)


def _embed(cache: CacheWriter, missing: list[int], embedder: Embedder, effects: Effects) -> None:
    with effects.progress.stage(f"embed ({embedder.backend})", len(missing), "texts") as stage:
        for role, numbers in cache.roles(missing).items():
            made = zip(numbers, embedder.embed(map(cache.text, numbers), role), strict=True)
            told = _each_told(made, stage)
            while batch := list(islice(told, COMMIT_TEXTS)):
                cache.store(batch)


def _each_told(items: Iterator[tuple[int, Embedded]], stage: Stage) -> Iterator[tuple[int, Embedded]]:
    """Count each item as it is made: 64 texts, a commit, can take half a minute."""
    for item in items:
        stage.advance()
        yield item


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run: on which cache, in which lanes, at which k; `base` is a second retriever to compare with."""

    cache: Path
    spec: RetrieverSpec
    base: RetrieverSpec | None = None
    lanes: tuple[Lane, ...] = tuple(Lane)
    ks: tuple[int, ...] = DEFAULT_KS


def run(request: RunRequest, find_model: Callable[[Manifest], Model], effects: Effects) -> dict[str, Any]:
    """Measure the retriever on a finished cache: the report JSON, with a comparison where there is a base.

    `find_model` is asked for the model that the manifest names, for the model-dependent lane only; the model-free lane
    needs none. A base that does not start is a warning in the report. Raises `CacheError`, `ModelError`, and
    `RetrieverError` where the retriever does not start.
    """
    with CacheReader(request.cache) as cache:
        request.spec.check_program()
        bench = Bench(cache, request.lanes, request.ks, effects.progress, effects.clock)
        if Lane.MODEL_DEPENDENT in request.lanes:
            model = find_model(cache.manifest)
            cache.check_identity(model.identity)
            bench.embed_questions(model.load)
        head = bench.report(request.spec, "run")
        if request.base is None:
            return head
        try:
            base = bench.report(request.base, "run the base")
        except RetrieverError as error:
            note = f"{BASE_NOTE}could not be measured, so it is NOT COMPARED: {error}"
            return {**head, "warnings": [note, *head["warnings"]]}
        names = base["card"]["retriever"], head["card"]["retriever"]
        return with_comparison(head, base, names[0] if names[0] != names[1] else request.base.text)


def score(
    folder: Path, lists: Mapping[str, tuple[str, ...]], name: str, ks: tuple[int, ...], effects: Effects
) -> dict[str, Any]:
    """Score ranked lists of another program, by question id as `trec.read_ranked` returns them: the report JSON.

    Questions without a list count as misses, in the open; sessions that are not in the haystack keep their ranks.
    Raises `CacheError`, and `ReportError` where no question of the cache has a list.
    """
    with CacheReader(folder) as cache:
        outcomes = [_given(stored, lists, max(ks)) for stored in cache.pairs]
        missing = sum(outcome.failed is not None for outcome in outcomes)
        if missing == len(outcomes):
            raise ReportError(
                "has no list for any question of the cache",
                where=name,
                got=f"{len(lists)} lists",
                hint="same data file?",
            )
        strangers = len(lists) - (len(outcomes) - missing)
        warnings = [f"lists of questions that the cache does not score: {strangers}"] if strangers else []
        bench = Bench(cache, (Lane.MODEL_DEPENDENT,), ks, effects.progress, effects.clock)
        measured = Measured(name, {Lane.MODEL_DEPENDENT: GIVEN}, {}, tuple(outcomes))
        return bench.scored(measured, warnings, 0.0)


def _given(stored: StoredPair, lists: Mapping[str, tuple[str, ...]], limit: int) -> Outcome:
    """The given list as a retriever would have answered: each session once, `limit` of them."""
    question = stored.pair.question_id
    ranked = tuple(dict.fromkeys(of_sessions(lists, question, stored.session_ids)))[:limit]
    failed = None if ranked else "the file has no list for this question"
    return Outcome(question, {Lane.MODEL_DEPENDENT: ranked}, failed=failed)
