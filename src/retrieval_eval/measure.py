"""Every pair of a cache through one retriever, in as many processes as there are cores.

Owns the loop and its spreading; what is asked is `lanes.py`, what comes of it is the caller's. Results are in the
order of the pairs and do not depend on how many processes worked.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path as FilePath

from retrieval_eval.cache.reader import CacheReader, StoredRow
from retrieval_eval.cache.records import StoredPair
from retrieval_eval.cores import available_cores
from retrieval_eval.errors import RetrieverError
from retrieval_eval.lanes import Asked, Outcome, ask, lane_paths, queries
from retrieval_eval.model import Lane
from retrieval_eval.progress import Stage
from retrieval_eval.retriever.builtin import BuiltinRetriever
from retrieval_eval.retriever.process import ExternalRetriever, child_environment
from retrieval_eval.retriever.protocol import Path, Retriever, Vector
from retrieval_eval.retriever.spec import RetrieverSpec

ROWS_FOR_PROCESSES = 10_000
"""Below this many rows in all, starting processes takes longer than it saves."""

CHUNK_PAIRS = 8

_Question = tuple[Asked, list[StoredRow]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask of which retriever. `fresh` holds the vectors made in this run, by question id."""

    cache: FilePath
    spec: RetrieverSpec
    lanes: tuple[Lane, ...]
    limit: int
    fresh: Mapping[str, Vector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a retriever said of itself, its outcomes in the order of the pairs, and what a reader must know of them."""

    name: str
    paths: Mapping[Lane, str]
    facts: Mapping[str, str | int]
    outcomes: tuple[Outcome, ...]
    remarks: tuple[str, ...] = ()


@contextmanager
def opened(spec: RetrieverSpec, cache: CacheReader) -> Iterator[Retriever]:
    """The retriever that the spec names, for personas of this cache. Raises `RetrieverError` where it cannot start."""
    if spec.builtin is not None:
        yield BuiltinRetriever(spec.builtin, cache.vocabulary(), cache.identity.dims)
    else:
        with ExternalRetriever(spec.command, env=child_environment(os.environ)) as retriever:
            yield retriever


def measure(plan: Plan, stage: Stage, processes: int | None = None) -> Measured:
    """Ask everything that the plan says, in `processes` processes (None: as many as pay; a program stays in this one).

    Raises `CacheError`, and `RetrieverError` where a program does not start or can run none of the lanes.
    """
    with CacheReader(plan.cache, is_checked=True) as cache, opened(plan.spec, cache) as retriever:
        paths = lane_paths(plan.lanes, retriever.paths)
        if not paths:
            raise RetrieverError(
                "has no path for the lanes that were asked for",
                where=f"retriever {retriever.name!r}",
                got=", ".join(retriever.paths),
                expected=f"one that can run: {', '.join(plan.lanes)}",
            )
        if processes is None:
            rows = sum(len(pair.session_ids) for pair in cache.pairs)
            processes = available_cores() if rows >= ROWS_FOR_PROCESSES else 1
        if plan.spec.builtin is None or processes == 1:
            outcomes = list(_counted(_ask_all(plan, cache, retriever, range(len(cache.pairs))), stage))
        else:
            outcomes = list(_counted(_in_processes(plan, len(cache.pairs), processes), stage))
        return Measured(retriever.name, paths, retriever.facts(plan.limit), tuple(outcomes), retriever.remarks())


def _counted(outcomes: Iterator[Outcome], stage: Stage) -> Iterator[Outcome]:
    for outcome in outcomes:
        stage.advance()
        yield outcome


def _ask_all(plan: Plan, cache: CacheReader, retriever: Retriever, numbers: Sequence[int]) -> Iterator[Outcome]:
    paths = lane_paths(plan.lanes, retriever.paths)
    questions = (_asked(plan, cache, cache.pairs[number]) for number in numbers)
    if isinstance(retriever, ExternalRetriever):
        yield from _ask_ahead(retriever, questions, paths)
        return
    for asked, rows in questions:
        yield ask(retriever, asked, rows, paths)


def _asked(plan: Plan, cache: CacheReader, stored: StoredPair) -> _Question:
    question = stored.pair.question_id
    vectors = {Lane.MODEL_FREE: cache.vector(stored.question_text)}
    if question in plan.fresh:
        vectors[Lane.MODEL_DEPENDENT] = plan.fresh[question]
    return Asked(question, stored.pair.question, vectors, plan.limit), cache.rows(stored)


def _ask_ahead(
    program: ExternalRetriever, questions: Iterator[_Question], paths: Mapping[Lane, Path]
) -> Iterator[Outcome]:
    """Keep the program busy: the next personas are sent before the answers about this one are awaited."""
    waiting: deque[_Question] = deque()
    while True:
        for asked, rows in islice(questions, max(0, program.at_once - len(waiting))):
            waiting.append((asked, rows))
            if program.at_once > 1:
                program.send_ahead(asked.question_id, rows, queries(asked, paths).values())
        if not waiting:
            return
        asked, rows = waiting.popleft()
        had_several = program.at_once > 1
        outcome = ask(program, asked, rows, paths)
        if outcome.failed is not None and had_several and program.at_once == 1:
            outcome = ask(program, asked, rows, paths)  # it may have been another one's fault, so once more, alone
        yield outcome


def _in_processes(plan: Plan, pairs: int, processes: int) -> Iterator[Outcome]:
    chunks = [range(start, min(start + CHUNK_PAIRS, pairs)) for start in range(0, pairs, CHUNK_PAIRS)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _Worker.start, (plan,)) as pool:
        for outcomes in pool.map(_Worker.work, chunks):
            yield from outcomes


class _Worker:
    """What each process keeps open between chunks."""

    plan: Plan
    held: ExitStack
    cache: CacheReader
    retriever: Retriever

    @classmethod
    def start(cls, plan: Plan) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the first one ends the others
        cls.plan, cls.held = plan, ExitStack()
        cls.cache = cls.held.enter_context(CacheReader(plan.cache, is_checked=True))
        cls.retriever = cls.held.enter_context(opened(plan.spec, cls.cache))

    @classmethod
    def work(cls, numbers: Sequence[int]) -> list[Outcome]:
        return list(_ask_all(cls.plan, cls.cache, cls.retriever, numbers))
