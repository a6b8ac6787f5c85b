"""One finished cache and the fresh vectors of its questions: what every retriever of a run is measured on.

Owns how a retriever becomes a report: measured, with BM25 alone beside it, scored, built. It reads no options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.embedding.embedder import Embedder, Role
from retrieval_eval.evaluation import evaluate
from retrieval_eval.lanes import Outcome
from retrieval_eval.measure import Measured, Plan, measure
from retrieval_eval.model import Lane
from retrieval_eval.progress import Progress
from retrieval_eval.report.build import Run, build
from retrieval_eval.retriever.builtin import Builtin
from retrieval_eval.retriever.protocol import Leg, Vector
from retrieval_eval.retriever.spec import RetrieverSpec

BM25_ALONE = RetrieverSpec("builtin:bm25", builtin=Builtin.BM25)
"""The control that needs no vectors."""


class Bench:
    """Measures retrievers in `lanes` at `ks`; `clock` gives seconds that only grow."""

    def __init__(
        self,
        cache: CacheReader,
        lanes: tuple[Lane, ...],
        ks: tuple[int, ...],
        progress: Progress,
        clock: Callable[[], float],
    ) -> None:
        self._cache, self._lanes, self._ks = cache, lanes, ks
        self._progress, self._clock = progress, clock
        self._fresh: dict[str, Vector] = {}
        self._embed_s = 0.0
        self._bm25_alone: tuple[Outcome, ...] | None = None

    def embed_questions(self, load: Callable[[], Embedder]) -> None:
        """Make the fresh vectors that the model-dependent lane searches with. Raises `ModelError`."""
        started_s = self._clock()
        pairs = [stored.pair for stored in self._cache.pairs]
        with self._progress.stage("embed questions", len(pairs), "questions") as stage:
            embedded = load().embed((pair.question for pair in pairs), Role.QUERY)
            for pair, made in zip(pairs, embedded, strict=True):
                self._fresh[pair.question_id] = made.vector
                stage.advance()
        self._embed_s = self._clock() - started_s

    def report(self, spec: RetrieverSpec, name: str) -> dict[str, Any]:
        """Measure one retriever and score it; `name` is what progress calls that. Raises `RetrieverError`."""
        started_s = self._clock()
        measured = self._measure(spec, self._lanes, name)
        if spec.builtin is Builtin.HYBRID:
            self._bm25_alone = _bm25_leg(measured, max(self._ks))
        warnings = [
            f"the {lane.value} lane did not run: the retriever {measured.name} has no path for it"
            for lane in self._lanes
            if lane not in measured.paths
        ]
        return self.scored(measured, [*warnings, *measured.remarks], self._clock() - started_s)

    def scored(self, measured: Measured, warnings: Sequence[str], search_s: float) -> dict[str, Any]:
        """The report of what was measured; `search_s` is how long that took."""
        if self._bm25_alone is None:
            self._bm25_alone = self._measure(BM25_ALONE, (Lane.MODEL_DEPENDENT,), "run BM25 alone").outcomes
        started_s = self._clock()
        evaluation = evaluate(self._cache.pairs, measured, self._ks, self._bm25_alone)
        score_s = self._clock() - started_s
        return build(
            Run(
                cache=self._cache,
                measured=measured,
                evaluation=evaluation,
                ks=self._ks,
                timings={"embed_questions_s": self._embed_s, "search_s": search_s, "score_s": score_s},
                drift=self._drift(measured),
                warnings=warnings,
            )
        )

    def _measure(self, spec: RetrieverSpec, lanes: tuple[Lane, ...], name: str) -> Measured:
        plan = Plan(self._cache.folder, spec, lanes, max(self._ks), self._fresh)
        with self._progress.stage(name, len(self._cache.pairs), "questions") as stage:
            return measure(plan, stage)

    def _drift(self, measured: Measured) -> dict[str, Any] | None:
        """How far fresh and cached query vectors lie apart, and how many semantic lists that changed.

        None where a lane is missing or the retriever shows no semantic leg.
        """
        comparable = [outcome for outcome in measured.outcomes if Leg.SEMANTIC in outcome.legs]
        if not self._fresh or Lane.MODEL_FREE not in measured.paths or not comparable:
            return None
        differences = (
            np.abs(self._fresh[stored.pair.question_id] - self._cache.vector(stored.question_text)).max()
            for stored in self._cache.pairs
        )
        limit = max(self._ks)
        changed = sum(o.legs[Leg.SEMANTIC][:limit] != o.ranked[Lane.MODEL_FREE] for o in comparable)
        return {"max_difference": float(max(differences)), "lists_changed": changed, "questions": len(comparable)}


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
