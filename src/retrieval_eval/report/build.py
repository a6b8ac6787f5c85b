"""From scores to the report JSON. Scores nothing, formats nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval_eval import __version__
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.cache.records import StoredPair
from retrieval_eval.evaluation import Controls, Evaluation, Ranks
from retrieval_eval.lanes import Outcome
from retrieval_eval.measure import Measured
from retrieval_eval.model import RENDERING_VERSION, GroupScore, Scores
from retrieval_eval.report.schema import SCHEMA_VERSION
from retrieval_eval.scoring.interval import METHOD

PREFERRED_HEADLINE_K = 5


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that one report is about."""

    cache: CacheReader
    measured: Measured
    evaluation: Evaluation
    ks: tuple[int, ...]
    timings: Mapping[str, float]
    drift: Mapping[str, Any] | None
    warnings: Sequence[str]


def build(run: Run) -> dict[str, Any]:
    """The report JSON of one run, as `report.schema.json` describes it, without a comparison."""
    cache, measured, evaluation = run.cache, run.measured, run.evaluation
    facts = {name: value for name, value in cache.dataset.items() if name != "warnings"}
    warnings = [*cache.dataset["warnings"], *run.warnings]
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "retrieval-eval", "version": __version__},
        "k": list(run.ks),
        "headline": {
            "lane": next(iter(measured.paths)).value,
            "k": PREFERRED_HEADLINE_K if PREFERRED_HEADLINE_K in run.ks else max(run.ks),
        },
        "lanes": {
            lane.value: {"path": str(path), **_scores(evaluation.lanes[lane])} for lane, path in measured.paths.items()
        },
        "legs": {leg.value: {**_scores(found.scores), "empty": found.empty} for leg, found in evaluation.legs.items()},
        "controls": _controls(evaluation.controls),
        "card": card(run),
        "dataset": {**facts, "truncated_sessions": cache.truncated_sessions()},
        "cache": {"reused": cache.manifest.reused, "embedded": cache.manifest.embedded},
        "timings": {name: round(seconds, 3) for name, seconds in run.timings.items()},
        "questions": [
            _question(stored, outcome, ranks)
            for stored, outcome, ranks in zip(cache.pairs, measured.outcomes, evaluation.ranks, strict=True)
        ],
        "warnings": warnings,
    }
    return document if run.drift is None else {**document, "drift": dict(run.drift)}


def card(run: Run) -> dict[str, str | int]:
    """The definition card: what a reader must know to judge the number, in print order."""
    dataset, identity, limit = run.cache.dataset, run.cache.identity, max(run.ks)
    return {
        "dataset": dataset["file"],
        "dataset_sha256": dataset["sha256"],
        "pairs": dataset["pairs"],
        "excluded": _listed(dataset["dropped"]) or "none",
        "gold_source": _listed(dataset["gold_sources"]),
        "session_text": f"role: content of every turn, joined by newlines (rendering {RENDERING_VERSION})",
        "model": identity.name,
        "model_revision": identity.content,
        "pooling": f"{identity.pooling}, {identity.normalisation}",
        "max_tokens": identity.max_tokens,
        "query_prefix": identity.query_prefix,
        "passage_prefix": identity.passage_prefix,
        "retriever": run.measured.name,
        **{f"path_{lane.value.replace('-', '_')}": str(path) for lane, path in run.measured.paths.items()},
        **run.measured.facts,
        "limit": limit,
        "k": ",".join(map(str, run.ks)),
        "metric": "fraction of gold sessions in the top k, mean over pairs",
        "interval": METHOD,
    }


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _scores(scores: Scores) -> dict[str, Any]:
    categories = {name: _group(group) for name, group in scores.categories.items()}
    return {"overall": _group(scores.overall), "categories": categories}


def _group(group: GroupScore) -> dict[str, Any]:
    return {
        "n": group.n,
        "recall": {
            str(k): {
                "fraction": recall.fraction,
                "any": recall.any,
                "all": recall.all,
                "ci95": list(recall.ci95),
                "ceiling": recall.ceiling,
            }
            for k, recall in group.recall.items()
        },
    }


def _controls(controls: Controls) -> dict[str, Any]:
    ties = None
    if controls.ties:
        ties = {
            "lowest": {str(k): low for k, (low, _) in controls.ties.items()},
            "highest": {str(k): high for k, (_, high) in controls.ties.items()},
        }
    return {
        "random": {str(k): value for k, value in controls.random.items()},
        "bm25": {str(k): value for k, value in controls.bm25.items()},
        "ties": ties,
        "k_not_below_haystack": {str(k): count for k, count in controls.k_not_below_haystack.items()},
    }


def _question(stored: StoredPair, outcome: Outcome, ranks: Ranks) -> dict[str, Any]:
    pair = stored.pair
    question: dict[str, Any] = {
        "question_id": pair.question_id,
        "category": pair.category,
        "question": pair.question,
        "gold": list(pair.gold),
        "lanes": {
            lane.value: {"ranked": list(ranked), "first_gold_rank": ranks.lanes[lane]}
            for lane, ranked in outcome.ranked.items()
        },
    }
    if ranks.legs:
        question["legs"] = {leg.value: {"first_gold_rank": rank} for leg, rank in ranks.legs.items()}
    return question if outcome.failed is None else {**question, "failed": outcome.failed}
