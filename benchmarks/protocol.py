"""What the retriever protocol costs: the same store behind it and called directly, in turn, at the size of S.

Behind the protocol stands the whole of it: reading the cache, starting the program, JSON, pipes, checks. The built-in
store is called directly in this process, on the same cache. vipune is called directly by a program that replays the
recorded requests, decoded beforehand; its time begins with loading the model and holds no reading of the cache.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import vipune
from benchmarks.golden import golden_cache
from benchmarks.measuring import ROOT, header, median, seconds, table
from benchmarks.store_program import TextRow

from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.lanes import Asked, Outcome, ask, lane_paths
from retrieval_eval.measure import Plan, measure
from retrieval_eval.model import Lane
from retrieval_eval.progress import Lines
from retrieval_eval.retriever.builtin import Builtin, BuiltinRetriever
from retrieval_eval.retriever.protocol import Vector
from retrieval_eval.retriever.spec import RetrieverSpec
from retrieval_eval.terms import Vocabulary

LIMIT = 10


@dataclass(frozen=True, slots=True)
class Contest:
    """One store, called in two ways that return seconds."""

    name: str
    goal: float
    direct_s: Callable[[], float]
    behind_s: Callable[[], float]


def _fresh(cache: Path) -> dict[str, Vector]:
    with CacheReader(cache) as reader:
        return {stored.pair.question_id: reader.vector(stored.question_text) for stored in reader.pairs}


def _behind(cache: Path, command: tuple[str, ...]) -> tuple[float, list[Outcome]]:
    plan = Plan(cache, RetrieverSpec(" ".join(command), command=command), tuple(Lane), LIMIT, _fresh(cache))
    started_s = time.perf_counter()
    with Lines(sys.stderr, time.monotonic).stage("protocol", None, "questions") as stage:
        measured = measure(plan, stage)
    took_s = time.perf_counter() - started_s
    failed = [outcome.failed for outcome in measured.outcomes if outcome.failed]
    if failed or measured.remarks:
        sys.exit("\n".join([*failed, *measured.remarks]))
    return took_s, list(measured.outcomes)


def _direct(cache: Path, builtin: Builtin) -> tuple[float, list[Outcome]]:
    fresh, outcomes = _fresh(cache), []
    started_s = time.perf_counter()
    with CacheReader(cache) as reader:
        vocabulary = Vocabulary()
        store = BuiltinRetriever(builtin, vocabulary, reader.identity.dims)
        paths = lane_paths(tuple(Lane), store.paths)
        for stored in reader.pairs:
            question = stored.pair.question_id
            vectors = {
                Lane.MODEL_FREE: reader.vector(stored.question_text),
                Lane.MODEL_DEPENDENT: fresh[question],
            }
            rows = [
                SessionRow(row.row_id, row.text, row.vector, vocabulary, row.session_id) for row in reader.rows(stored)
            ]
            outcomes.append(ask(store, Asked(question, stored.pair.question, vectors, LIMIT), rows, paths))
    return time.perf_counter() - started_s, outcomes


@dataclass(frozen=True, slots=True)
class SessionRow(TextRow):
    """A row that the lanes can name again."""

    session_id: str


def _builtin(cache: Path, builtin: Builtin) -> Contest:
    command = (sys.executable, str(ROOT / "benchmarks" / "store_program.py"), builtin.value)
    if _ranked(_behind(cache, command)[1]) != _ranked(_direct(cache, builtin)[1]):
        sys.exit(f"builtin:{builtin.value} answers otherwise behind the protocol")
    return Contest(
        name=f"`builtin:{builtin.value}` behind a Python program",
        goal=1.25,
        direct_s=lambda: _direct(cache, builtin)[0],
        behind_s=lambda: _behind(cache, command)[0],
    )


def _ranked(outcomes: list[Outcome]) -> list[object]:
    return [(outcome.question_id, outcome.ranked, outcome.legs) for outcome in outcomes]


def _vipune(cache: Path, folder: Path) -> Contest:
    crate, record = vipune.build(folder / "hub"), folder / "requests.jsonl"
    _behind(cache, crate.command(record))
    return Contest(
        name="the crate vipune behind `examples/retrievers/vipune`",
        goal=1.5,
        direct_s=lambda: crate.direct_s(record),
        behind_s=lambda: _behind(cache, crate.command())[0],
    )


def _row(contest: Contest, rounds: int) -> tuple[str, ...]:
    direct, behind = [], []
    for _ in range(rounds):
        direct.append(contest.direct_s())
        behind.append(contest.behind_s())
    ratios = [b / d for b, d in zip(behind, direct, strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    times = seconds(median(direct)), seconds(median(behind))
    return contest.name, *times, f"{median(ratios):.2f}", spread, f"< {contest.goal}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="each way once a round, in turn (default: 6)")
    parser.add_argument("--without-vipune", action="store_true", help="where there is no cargo")
    arguments = parser.parse_args()
    header("Retriever protocol, 122 questions of 48 sessions, both lanes")
    with tempfile.TemporaryDirectory(prefix="retrieval-eval-bench-") as name:
        cache = golden_cache(Path(name))
        contests = [_builtin(cache, builtin) for builtin in (Builtin.HYBRID_FTS5, Builtin.HYBRID)]
        if not arguments.without_vipune:
            contests.append(_vipune(cache, Path(name)))
        columns = ("store", "called directly", "behind the protocol", "ratio", "ratios of the rounds", "goal")
        table(columns, [_row(contest, arguments.rounds) for contest in contests])


if __name__ == "__main__":
    main()
