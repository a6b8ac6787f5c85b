"""What each lane calls, and what one persona answers in them. Scores nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from retrieval_eval.errors import RetrieverError
from retrieval_eval.model import Lane
from retrieval_eval.retriever.protocol import Answer, Leg, Need, Path, Query, Retriever, Row, Vector

_PREFERENCE = {
    Lane.MODEL_DEPENDENT: (Path.SEARCH_HYBRID, Path.SEARCH, Path.SEARCH_BM25),
    Lane.MODEL_FREE: (Path.SEARCH,),
}
_HANDED_OVER = {
    Lane.MODEL_DEPENDENT: frozenset(Need),
    Lane.MODEL_FREE: frozenset({Need.VECTOR}),
}


def lane_paths(lanes: Sequence[Lane], answered: Mapping[Path, frozenset[Need]]) -> dict[Lane, Path]:
    """The path of each lane that a retriever with these paths and needs can run, in the order of `lanes`.

    The model-dependent lane takes what a user calls: the hybrid path where there is one. The model-free lane has a
    vector and nothing else, so it is a `search` that needs no text, or not there at all.
    """
    paths: dict[Lane, Path] = {}
    for lane in lanes:
        able = [path for path in _PREFERENCE[lane] if path in answered and answered[path] <= _HANDED_OVER[lane]]
        if able:
            paths[lane] = able[0]
    return paths


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a retriever answered for one pair, in session ids.

    `ranked` per lane is best first, at most the limit long; empty where the retriever failed, and `failed` says why.
    `legs` are the fused lists of the headline lane. `tied` per lane is the scored list in runs of equal score, whole up
    to the run that crosses the limit; absent where the retriever shows no scores.
    """

    question_id: str
    ranked: Mapping[Lane, tuple[str, ...]]
    legs: Mapping[Leg, tuple[str, ...]] = field(default_factory=dict)
    tied: Mapping[Lane, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    failed: str | None = None


class SessionRow(Row, Protocol):
    """A row that knows which session it is."""

    @property
    def session_id(self) -> str:
        """The session's id in the data file."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as the lanes hand it over: its text, the vector of each lane, and how many results are wanted."""

    question_id: str
    text: str
    vectors: Mapping[Lane, Vector]
    limit: int


def queries(asked: Asked, paths: Mapping[Lane, Path]) -> dict[Lane, Query]:
    """What each lane asks: the model-free one has no text."""
    return {
        lane: Query(
            question_id=asked.question_id,
            path=path,
            limit=asked.limit,
            text=asked.text if lane is Lane.MODEL_DEPENDENT else None,
            vector=asked.vectors.get(lane),
        )
        for lane, path in paths.items()
    }


def ask(retriever: Retriever, asked: Asked, rows: Sequence[SessionRow], paths: Mapping[Lane, Path]) -> Outcome:
    """Open the persona and search it once per lane. A retriever that fails is an outcome, not an exception."""
    sessions = {row.row_id: row.session_id for row in rows}
    try:
        with retriever.open(asked.question_id, rows) as persona:
            answers = {lane: persona.search(query) for lane, query in queries(asked, paths).items()}
    except RetrieverError as error:
        return Outcome(asked.question_id, dict.fromkeys(paths, ()), failed=str(error))
    legs = next((answer.legs for answer in answers.values() if answer.legs), {})
    return Outcome(
        asked.question_id,
        {lane: _sessions(answer.ranked, sessions) for lane, answer in answers.items()},
        {leg: _sessions(ranked, sessions) for leg, ranked in legs.items()},
        {lane: _tied(answer, asked.limit, sessions) for lane, answer in answers.items() if answer.scored},
    )


def _sessions(row_ids: Sequence[str], sessions: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sessions[row_id] for row_id in row_ids)


def _tied(answer: Answer, limit: int, sessions: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """The scored list in runs of equal score, ending with the run that reaches the limit."""
    runs: list[list[str]] = []
    last: float | None = None
    for position, (row_id, score) in enumerate(answer.scored):
        if score != last:
            if position >= limit:
                break
            runs.append([])
        runs[-1].append(sessions[row_id])
        last = score
    return tuple(tuple(run) for run in runs)
