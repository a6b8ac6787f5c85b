"""prep and run: the only places where the stages meet. Effects (progress, clock, loading a model) are handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.part import Part, adopt
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.cache.records import StoredPair
from retrieval_eval.cache.sharding import Shard, ShardNote
from retrieval_eval.cache.writer import CacheWriter
from retrieval_eval.census import Census
from retrieval_eval.compare import with_comparison
from retrieval_eval.dataset import DatasetReader
from retrieval_eval.embedding.embedder import Embedder, ModelIdentity, Role
from retrieval_eval.errors import CacheError, DatasetError, ReportError
from retrieval_eval.evaluation import evaluate
from retrieval_eval.lanes import Outcome
from retrieval_eval.measure import Measured, Plan, measure
from retrieval_eval.model import DEFAULT_KS, Instance, Lane
from retrieval_eval.progress import Progress, Stage
from retrieval_eval.report.build import Run, build
from retrieval_eval.retriever.builtin import Builtin
from retrieval_eval.retriever.protocol import Leg, Vector
from retrieval_eval.retriever.spec import RetrieverSpec
from retrieval_eval.trec import of_sessions

COMMIT_TEXTS = 64
"""Vectors are committed this many at a time: a few seconds of work at the most is ever lost."""

BM25_ALONE = RetrieverSpec("builtin:bm25", builtin=Builtin.BM25)
"""The control that needs no vectors."""


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
        with effects.progress.stage("read", None, "questions") as stage:
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
    for instance in census.counted(reader.instances()):
        stage.advance()
        yield instance
    if not census.pairs:
        reasons = ", ".join(f"{count} {reason}" for reason, count in census.dropped().items() if count)
        raise DatasetError("nothing to score", where=str(data), got=reasons, expected="at least one pair with gold")


def _adopt(cache: CacheWriter, missing: list[int], seed: Seed, effects: Effects) -> None:
    with seed() as folder, Part(folder) as part, effects.progress.stage("copy", len(missing), "vectors") as stage:
        for copied in adopt(cache, part, missing):
            stage.advance(copied)


def _embed(cache: CacheWriter, missing: list[int], embedder: Embedder, effects: Effects) -> None:
    with effects.progress.stage(f"embed ({embedder.backend})", len(missing), "texts") as stage:
        for role, numbers in cache.roles(missing).items():
            made = zip(numbers, embedder.embed(map(cache.text, numbers), role), strict=True)
            while batch := list(islice(made, COMMIT_TEXTS)):
                cache.store(batch)
                stage.advance(len(batch))


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
    needs none. Raises `CacheError`, `ModelError`, and `RetrieverError` where a retriever does not start.
    """
    with CacheReader(request.cache) as cache:
        started_s = effects.clock()
        fresh: dict[str, Vector] = {}
        if Lane.MODEL_DEPENDENT in request.lanes:
            fresh = _embed_questions(cache, find_model(cache.manifest), effects)
        bench = _Bench(cache, request, fresh, effects)
        bench.embed_s = effects.clock() - started_s
        head = bench.report(request.spec, "run")
        if request.base is None:
            return head
        base = bench.report(request.base, "run the base")
        names = base["card"]["retriever"], head["card"]["retriever"]
        return with_comparison(head, base, names[0] if names[0] != names[1] else request.base.text)


class _Bench:
    """One cache with the fresh vectors of its questions: what every retriever of a run is measured on."""

    def __init__(self, cache: CacheReader, request: RunRequest, fresh: dict[str, Vector], effects: Effects) -> None:
        self.cache, self.request, self.fresh, self.effects = cache, request, fresh, effects
        self.embed_s = 0.0
        self._bm25_alone: tuple[Outcome, ...] | None = None

    def report(self, spec: RetrieverSpec, name: str) -> dict[str, Any]:
        """Measure one retriever and score it."""
        started_s = self.effects.clock()
        measured = self._measure(spec, self.request.lanes, name)
        if spec.builtin is Builtin.HYBRID:
            self._bm25_alone = _bm25_leg(measured, max(self.request.ks))
        warnings = [*_lanes_left_out(self.request, measured), *measured.remarks]
        return self.scored(measured, warnings, self.effects.clock() - started_s)

    def scored(self, measured: Measured, warnings: list[str], search_s: float) -> dict[str, Any]:
        """The report of what was measured; `search_s` is how long that took."""
        if self._bm25_alone is None:
            self._bm25_alone = self._measure(BM25_ALONE, (Lane.MODEL_DEPENDENT,), "run BM25 alone").outcomes
        started_s = self.effects.clock()
        evaluation = evaluate(self.cache.pairs, measured, self.request.ks, self._bm25_alone)
        score_s = self.effects.clock() - started_s
        return build(
            Run(
                cache=self.cache,
                measured=measured,
                evaluation=evaluation,
                ks=self.request.ks,
                timings={"embed_questions_s": self.embed_s, "search_s": search_s, "score_s": score_s},
                drift=_drift(self.cache, self.fresh, measured, max(self.request.ks)),
                warnings=warnings,
            )
        )

    def _measure(self, spec: RetrieverSpec, lanes: tuple[Lane, ...], name: str) -> Measured:
        plan = Plan(self.request.cache, spec, lanes, max(self.request.ks), self.fresh)
        with self.effects.progress.stage(name, len(self.cache.pairs), "questions") as stage:
            return measure(plan, stage)


def _bm25_leg(hybrid: Measured, limit: int) -> tuple[Outcome, ...] | None:
    """What `builtin:bm25` would answer, read off the BM25 leg of `builtin:hybrid`, whose rows and scores are the same.

    None where a pair has no such leg: it failed, or the lane did not run.
    """
    if any(Leg.BM25 not in outcome.legs for outcome in hybrid.outcomes):
        return None
    return tuple(
        Outcome(outcome.question_id, {Lane.MODEL_DEPENDENT: outcome.legs[Leg.BM25][:limit]})
        for outcome in hybrid.outcomes
    )


def _lanes_left_out(request: RunRequest, measured: Measured) -> list[str]:
    return [
        f"the {lane.value} lane did not run: the retriever {measured.name} has no path for it"
        for lane in request.lanes
        if lane not in measured.paths
    ]


def _embed_questions(cache: CacheReader, model: Model, effects: Effects) -> dict[str, Vector]:
    """A fresh vector for every question, by its id. Raises `CacheError` where the model is not the cache's."""
    if model.identity.fingerprint != cache.identity.fingerprint:
        raise CacheError(
            "holds vectors of another model",
            where=f"embedding cache {cache.folder}",
            got=f"{cache.identity.name} {cache.identity.content[:24]}",
            expected=f"{model.identity.name} {model.identity.content[:24]}",
            hint="give --model the one that prep used, or run prep with this one into another folder",
        )
    questions = [stored.pair for stored in cache.pairs]
    with effects.progress.stage("embed questions", len(questions), "questions") as stage:
        embedded = model.load().embed((pair.question for pair in questions), Role.QUERY)
        vectors = {}
        for pair, made in zip(questions, embedded, strict=True):
            vectors[pair.question_id] = made.vector
            stage.advance()
    return vectors


def _drift(cache: CacheReader, fresh: dict[str, Vector], measured: Measured, limit: int) -> dict[str, Any] | None:
    """How far fresh and cached query vectors lie apart, and how many semantic lists that changed.

    None where a lane is missing or the retriever shows no semantic leg.
    """
    comparable = [outcome for outcome in measured.outcomes if Leg.SEMANTIC in outcome.legs]
    if not fresh or Lane.MODEL_FREE not in measured.paths or not comparable:
        return None
    differences = (
        np.abs(fresh[stored.pair.question_id] - cache.vector(stored.question_text)).max() for stored in cache.pairs
    )
    changed = sum(not _same_start(outcome, limit) for outcome in comparable)
    return {"max_difference": float(max(differences)), "lists_changed": changed, "questions": len(comparable)}


def _same_start(outcome: Outcome, limit: int) -> bool:
    return outcome.legs[Leg.SEMANTIC][:limit] == outcome.ranked[Lane.MODEL_FREE]


GIVEN = "given list"
"""The path of a lane whose lists some other program made."""


def score(
    folder: Path, lists: Mapping[str, tuple[str, ...]], name: str, ks: tuple[int, ...], effects: Effects
) -> dict[str, Any]:
    """Score ranked lists of another program, by question id as `trec.read_ranked` returns them: the report JSON.

    Questions without a list count as misses, in the open; sessions that are not in the haystack keep their ranks.
    Raises `CacheError`, and `ReportError` where no question of the cache has a list.
    """
    with CacheReader(folder) as cache:
        outcomes = [_given(stored, lists) for stored in cache.pairs]
        missing = sum(outcome.failed is not None for outcome in outcomes)
        if missing == len(outcomes):
            raise ReportError(
                "has no list for any question of the cache",
                where=name,
                got=f"{len(lists)} lists",
                hint="same data file?",
            )
        strangers = len(lists) - (len(outcomes) - missing)
        warnings = [f"{strangers} lists are of questions that the cache does not score"] if strangers else []
        request = RunRequest(cache=folder, spec=BM25_ALONE, ks=ks)
        bench = _Bench(cache, request, {}, effects)
        measured = Measured(name, {Lane.MODEL_DEPENDENT: GIVEN}, {}, tuple(outcomes))
        return bench.scored(measured, warnings, 0.0)


def _given(stored: StoredPair, lists: Mapping[str, tuple[str, ...]]) -> Outcome:
    question = stored.pair.question_id
    ranked = of_sessions(lists, question, stored.session_ids)
    failed = None if ranked else "the file has no list for this question"
    return Outcome(question, {Lane.MODEL_DEPENDENT: ranked}, failed=failed)
