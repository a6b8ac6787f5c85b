"""The frozen values that the stages hand on. No logic, no files, no third-party types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

CATEGORIES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)
"""LongMemEval's six `question_type` values, in the order in which reports list them."""

DEFAULT_KS = (1, 5, 10)

RENDERING_VERSION = 1
"""Rises whenever a session's turns would render to another `Session.text`; vectors of another rendering never fit."""


class Lane(StrEnum):
    """Where the query vector comes from and which path is called."""

    MODEL_DEPENDENT = "model-dependent"
    MODEL_FREE = "model-free"


class GoldSource(StrEnum):
    """Which field of the file named the gold sessions of a pair."""

    ANSWER_SESSION_IDS = "answer_session_ids"
    HAS_ANSWER = "has_answer"


class Exclusion(StrEnum):
    """Why an instance of the file is not scored."""

    ABSTENTION = "abstention"
    NO_GOLD = "no gold"


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a haystack: the unit that is stored, retrieved and scored.

    `text` is every turn's `role: content` joined by newlines; empty when no turn has any text. It never holds the id.
    """

    session_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """One question and its gold sessions.

    `gold` is sorted and free of repeats; it may name sessions that the haystack lacks (they count as misses).
    """

    question_id: str
    category: str
    question: str
    question_date: str
    gold: tuple[str, ...]
    gold_source: GoldSource


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of the data file: the pair and its haystack in the file's order.

    `exclusion` is None where the pair is scored; only then is `pair.gold` sure not to be empty.
    """

    pair: Pair
    sessions: tuple[Session, ...]
    exclusion: Exclusion | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A ranked list beside what it should have found: all that scoring needs of a question.

    `ranked` is best first; `gold` is never empty. Repeats in either are allowed and counted once.
    """

    question_id: str
    category: str
    gold: tuple[str, ...]
    ranked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """The three readings of recall at one k, each in [0, 1]."""

    fraction: float
    any: float
    all: float


@dataclass(frozen=True, slots=True)
class MeanRecall:
    """`Recall` averaged over the pairs of a group.

    `ci95` is the 95 % bootstrap interval of `fraction`; `ceiling` the best `fraction` that any ranking could reach.
    """

    fraction: float
    any: float
    all: float
    ci95: tuple[float, float]
    ceiling: float


@dataclass(frozen=True, slots=True)
class GroupScore:
    """Scores of one group of pairs; `recall` is keyed by k, ascending, and empty when n is 0."""

    n: int
    recall: Mapping[int, MeanRecall]


@dataclass(frozen=True, slots=True)
class Scores:
    """Overall (mean over pairs, never of category means) and per category, in report order."""

    overall: GroupScore
    categories: Mapping[str, GroupScore]
