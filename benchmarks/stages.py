"""What the benchmarks run in processes of their own: prep and run with the stand-in model, and the plain way."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
from benchmarks import stand_in

from retrieval_eval.model import Lane
from retrieval_eval.pipeline import Effects, RunRequest
from retrieval_eval.pipeline import prep as do_prep
from retrieval_eval.pipeline import run as do_run
from retrieval_eval.progress import Lines
from retrieval_eval.retriever.spec import parse_spec


def _effects() -> Effects:
    return Effects(Lines(sys.stderr, time.monotonic), time.monotonic)


def prep(arguments: argparse.Namespace) -> None:
    """The real prep, with the stand-in for a model."""
    do_prep(arguments.data, arguments.cache, stand_in.model(), _effects())


def run(arguments: argparse.Namespace) -> None:
    """The real run, both lanes, okapi leg, report to a file."""
    request = RunRequest(arguments.cache, parse_spec("builtin:hybrid"), lanes=tuple(Lane))
    document = do_run(request, lambda _: stand_in.model(), _effects())
    arguments.json.write_text(json.dumps(document), encoding="utf-8")


def plain(arguments: argparse.Namespace) -> None:
    """What one would write in an afternoon: json.load, then per question BM25Okapi over the words, and a cosine.

    The vectors are random and made beforehand, one a row: looking them up costs nothing here.
    """
    from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]  # noqa: PLC0415 - the peer alone needs it; untyped

    with arguments.data.open(encoding="utf-8") as file:
        instances = json.load(file)
    most = max(len(instance["haystack_sessions"]) for instance in instances)
    vectors = np.random.default_rng(0).standard_normal((most, stand_in.DIMS), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = 0
    for instance in instances:
        sessions = ["\n".join(f"{t['role']}: {t['content']}" for t in turns) for turns in instance["haystack_sessions"]]
        bm25 = BM25Okapi([re.findall(r"\w+", session.lower()) for session in sessions])
        scores = bm25.get_scores(re.findall(r"\w+", instance["question"].lower()))
        cosines = vectors[: len(sessions)] @ vectors[0]
        for ranked in (np.argsort(-scores, kind="stable")[:100], np.argsort(-cosines, kind="stable")[:100]):
            found += len(ranked)
    print(f"plain way: {len(instances)} questions, {found} results")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    stages = parser.add_subparsers(required=True, metavar="STAGE")
    for function, names in ((prep, ("data", "cache")), (run, ("cache", "json")), (plain, ("data",))):
        stage = stages.add_parser(function.__name__, help=(function.__doc__ or "").splitlines()[0])
        stage.set_defaults(function=function)
        for name in names:
            stage.add_argument(name, type=Path)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
