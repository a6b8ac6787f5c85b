"""What each lane hands to a retriever, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from retrieval_eval.errors import RetrieverError
from retrieval_eval.lanes import Asked, Outcome, ask, lane_paths
from retrieval_eval.model import Lane
from retrieval_eval.retriever.builtin import Builtin, BuiltinRetriever
from retrieval_eval.retriever.protocol import Answer, Leg, Need, Path, Query, Row
from retrieval_eval.terms import TermCounts, Vocabulary

CACHED, FRESH = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
BOTH = {Lane.MODEL_DEPENDENT: Path.SEARCH_HYBRID, Lane.MODEL_FREE: Path.SEARCH}


@dataclass
class FakeRow:
    session_id: str
    text: str = ""
    vector: np.ndarray = field(default_factory=lambda: CACHED)
    terms: TermCounts = field(default_factory=lambda: Vocabulary().count(""))

    @property
    def row_id(self) -> str:
        return f"row of {self.session_id}"


@dataclass
class FakeRetriever:
    """Answers from a table; an error in it is raised."""

    answers: dict[Path, Answer | RetrieverError]
    name: str = "fake"
    seen: list[Query] = field(default_factory=list)
    stored: dict[str, list[str]] = field(default_factory=dict)
    closed: int = 0

    @property
    def paths(self) -> dict[Path, frozenset[Need]]:
        return dict.fromkeys(self.answers, frozenset())

    def facts(self, limit: int) -> dict[str, str | int]:
        return {}

    @contextmanager
    def open(self, persona_id: str, rows: Iterable[Row]) -> Iterator[FakeRetriever]:
        self.stored[persona_id] = [row.row_id for row in rows]
        try:
            yield self
        finally:
            self.closed += 1

    def search(self, query: Query) -> Answer:
        self.seen.append(query)
        answer = self.answers[query.path]
        if isinstance(answer, RetrieverError):
            raise answer
        return answer


def asking(retriever: object, paths: dict[Lane, Path] = BOTH, limit: int = 2) -> Outcome:
    asked = Asked("q1", "Which?", {Lane.MODEL_FREE: CACHED, Lane.MODEL_DEPENDENT: FRESH}, limit)
    return ask(retriever, asked, [FakeRow(name) for name in "abcd"], paths)  # type: ignore[arg-type]  # a fake


def rows(*names: str) -> tuple[str, ...]:
    return tuple(f"row of {name}" for name in names)


VECTOR, TEXT, BOTH_NEEDS = frozenset({Need.VECTOR}), frozenset({Need.TEXT}), frozenset(Need)
ALL_PATHS = {Path.SEARCH_HYBRID: BOTH_NEEDS, Path.SEARCH: VECTOR, Path.SEARCH_BM25: TEXT}


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (ALL_PATHS, BOTH),
        ({Path.SEARCH: VECTOR, Path.SEARCH_BM25: TEXT}, dict.fromkeys(Lane, Path.SEARCH)),
        ({Path.SEARCH: VECTOR}, dict.fromkeys(Lane, Path.SEARCH)),
        ({Path.SEARCH_BM25: TEXT}, {Lane.MODEL_DEPENDENT: Path.SEARCH_BM25}),
        ({Path.SEARCH_HYBRID: BOTH_NEEDS}, {Lane.MODEL_DEPENDENT: Path.SEARCH_HYBRID}),
        ({Path.SEARCH_HYBRID: TEXT, Path.SEARCH: TEXT}, {Lane.MODEL_DEPENDENT: Path.SEARCH_HYBRID}),
        ({Path.SEARCH: BOTH_NEEDS}, {Lane.MODEL_DEPENDENT: Path.SEARCH}),
        ({}, {}),
    ],
)
def test_each_lane_takes_the_best_path_that_it_can_ask(
    answered: dict[Path, frozenset[Need]], expected: dict[Lane, Path]
) -> None:
    assert lane_paths(tuple(Lane), answered) == expected


def test_lanes_keep_the_order_in_which_they_were_asked_for() -> None:
    wanted = (Lane.MODEL_FREE, Lane.MODEL_DEPENDENT)
    assert tuple(lane_paths(wanted, ALL_PATHS)) == wanted


def test_the_model_dependent_lane_hands_over_text_and_fresh_vector_the_other_the_cached_vector_alone() -> None:
    retriever = FakeRetriever(dict.fromkeys(Path, Answer(())))
    asking(retriever)
    hybrid, search = retriever.seen
    assert (hybrid.path, hybrid.text, hybrid.limit) == (Path.SEARCH_HYBRID, "Which?", 2)
    assert (search.path, search.text, search.limit) == (Path.SEARCH, None, 2)
    assert hybrid.vector is FRESH
    assert search.vector is CACHED


def test_a_persona_is_stored_in_order_and_closed_after_its_lanes() -> None:
    retriever = FakeRetriever(dict.fromkeys(Path, Answer(())))
    asking(retriever)
    assert retriever.stored == {"q1": list(rows(*"abcd"))}
    assert retriever.closed == 1


def test_row_ids_of_answers_become_session_ids() -> None:
    legs = {Leg.SEMANTIC: rows("c", "b"), Leg.BM25: ()}
    retriever = FakeRetriever({Path.SEARCH_HYBRID: Answer(rows("b", "a"), legs), Path.SEARCH: Answer(rows("d"))})
    outcome = asking(retriever)
    assert outcome.ranked == {Lane.MODEL_DEPENDENT: ("b", "a"), Lane.MODEL_FREE: ("d",)}
    assert outcome.legs == {Leg.SEMANTIC: ("c", "b"), Leg.BM25: ()}
    assert (outcome.tied, outcome.failed) == ({}, None)


@pytest.mark.parametrize("broken", [Path.SEARCH_HYBRID, Path.SEARCH])
def test_a_retriever_that_fails_in_one_lane_has_found_nothing_in_any(broken: Path) -> None:
    answers = {path: Answer(rows("a")) for path in Path} | {broken: RetrieverError("went away", where="fake")}
    outcome = asking(FakeRetriever(answers))
    assert outcome == Outcome("q1", {Lane.MODEL_DEPENDENT: (), Lane.MODEL_FREE: ()}, failed="fake: went away")


def test_other_exceptions_are_not_swallowed() -> None:
    with pytest.raises(KeyError):
        asking(FakeRetriever({Path.SEARCH: Answer(("row of nobody",))}, seen=[]), {Lane.MODEL_FREE: Path.SEARCH})


@pytest.mark.parametrize(
    ("scores", "runs"),
    [
        ((3, 2, 1, 0), (("a",), ("b",))),
        ((3, 2, 2, 0), (("a",), ("b", "c"))),
        ((3, 2, 2, 2), (("a",), ("b", "c", "d"))),
        ((3, 3, 2, 2), (("a", "b"),)),
        ((3, 3, 3, 3), (("a", "b", "c", "d"),)),
        ((3,), (("a",),)),
    ],
)
def test_runs_of_equal_score_end_with_the_one_that_reaches_the_limit(
    scores: tuple[float, ...], runs: tuple[tuple[str, ...], ...]
) -> None:
    scored = tuple(zip(rows(*"abcd"), scores, strict=False))
    outcome = asking(FakeRetriever({Path.SEARCH: Answer(rows("a"), {}, scored)}), {Lane.MODEL_FREE: Path.SEARCH})
    assert outcome.tied == {Lane.MODEL_FREE: runs}


def builtin_rows(vocabulary: Vocabulary) -> list[FakeRow]:
    texts = {"a": "river boat", "b": "sea", "c": "hill", "d": "river", "e": "moor"}
    return [FakeRow(name, text, CACHED, vocabulary.count(text)) for name, text in texts.items()]


def search(builtin: Builtin, query: Query) -> Answer:
    vocabulary = Vocabulary()
    with BuiltinRetriever(builtin, vocabulary, 2).open("q1", builtin_rows(vocabulary)) as persona:
        return persona.search(query)


@pytest.mark.parametrize("builtin", [Builtin.HYBRID, Builtin.HYBRID_FTS5])
def test_the_builtin_hybrid_shows_its_legs_and_all_scores(builtin: Builtin) -> None:
    answer = search(builtin, Query("q1", Path.SEARCH_HYBRID, 1, "river", CACHED))
    assert answer.legs == {Leg.SEMANTIC: rows(*"edcba"), Leg.BM25: rows("d", "a")}
    assert len(answer.ranked) == 1
    assert {row for row, _ in answer.scored} == set(rows(*"abcde"))
    assert answer.scored[0] == (rows("d")[0], 1 / 27 + 1 / 26)


@pytest.mark.parametrize("limit", [0, 10_001])
@pytest.mark.parametrize("path", list(Path))
def test_a_limit_out_of_bounds_is_refused_on_every_path(path: Path, limit: int) -> None:
    with pytest.raises(RetrieverError, match="limit of a search"):
        search(Builtin.HYBRID, Query("q1", path, limit, "river", CACHED))


@pytest.mark.parametrize(
    ("path", "text", "vector", "problem"),
    [
        (Path.SEARCH_HYBRID, None, CACHED, "needs the question's text"),
        (Path.SEARCH_HYBRID, "river", None, "needs a query vector"),
        (Path.SEARCH, "river", None, "needs a query vector"),
        (Path.SEARCH_BM25, None, CACHED, "needs the question's text"),
    ],
)
def test_a_path_without_what_it_needs_says_so(
    path: Path, text: str | None, vector: np.ndarray | None, problem: str
) -> None:
    with pytest.raises(RetrieverError, match=problem):
        search(Builtin.HYBRID, Query("q1", path, 5, text, vector))


def test_two_personas_of_one_retriever_do_not_see_each_other() -> None:
    vocabulary = Vocabulary()
    retriever = BuiltinRetriever(Builtin.HYBRID, vocabulary, 2)
    one = [FakeRow("shared", "river", CACHED, vocabulary.count("river"))]
    two = [FakeRow("shared", "sea", FRESH, vocabulary.count("sea"))]
    query = Query("q", Path.SEARCH_HYBRID, 5, "river", CACHED)
    with retriever.open("one", one) as first, retriever.open("two", two) as second:
        assert first.search(query).legs[Leg.BM25] == rows("shared")
        assert second.search(query).legs[Leg.BM25] == ()
        assert first.search(query).scored != second.search(query).scored


@pytest.mark.parametrize("builtin", list(Builtin))
def test_what_a_builtin_says_of_itself_fits_its_paths(builtin: Builtin) -> None:
    retriever = BuiltinRetriever(builtin, Vocabulary(), 2)
    facts = retriever.facts(10)
    assert retriever.name == f"builtin:{builtin.value}"
    assert ("lexical_leg" in facts) == (Path.SEARCH_BM25 in retriever.paths)
    assert ("fusion" in facts) == (Path.SEARCH_HYBRID in retriever.paths)
    assert facts.get("lexical_leg") == {"hybrid-fts5": "fts5", "semantic": None}.get(builtin.value, "okapi")
