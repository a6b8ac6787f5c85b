"""The okapi leg against rank-bm25's own BM25Okapi."""

from __future__ import annotations

import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from retrieval_eval.store.database import Database, Hit
from retrieval_eval.terms import TermCounts, Vocabulary, words

WORDS = ("ash", "birch", "cedar", "elm", "fir", "oak", "yew", "the")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=12)
QUERIES = st.lists(st.sampled_from((*WORDS, "absent")), max_size=6).map(" ".join)


def okapi(texts: list[str], query: str, limit: int = 10_000) -> list[Hit]:
    vocabulary = Vocabulary()
    with tempfile.TemporaryDirectory() as folder, closing(Database(Path(folder) / "s", 1, vocabulary)) as database:
        for number, text in enumerate(texts):
            database.insert(str(number), vocabulary.count(text), np.ones(1, np.float32))
        return database.search_bm25(query, limit)


def rank_bm25(texts: list[str], query: str) -> list[Hit]:
    """Rows that share a word with the query; best first, equal scores oldest first."""
    tokens = [words(text) for text in texts]
    scores = BM25Okapi(tokens).get_scores(words(query))
    sharing = [row for row, found in enumerate(tokens) if set(found) & set(words(query))]
    return [(str(row), float(scores[row])) for row in sorted(sharing, key=lambda row: (-scores[row], row))]


@settings(max_examples=300, deadline=None)
@given(TEXTS.filter(any), QUERIES)
@example(["oak", "elm oak"], "oak oak")
@example(["the", "the", "the oak"], "the")
def test_scores_and_order_are_those_of_rank_bm25(texts: list[str], query: str) -> None:
    found, want = okapi(texts, query), rank_bm25(texts, query)
    assert dict(found) == pytest.approx(dict(want), abs=1e-9, rel=1e-9)
    # A last bit may part what is equal in exact numbers; rows whose scores differ by more must not change places.
    scores = [dict(want)[row] for row, _ in found]
    assert all(better >= worse - 1e-9 for better, worse in pairwise(scores))
    for (row, score), (after, other) in pairwise(found):
        assert score > other or (score == other and int(row) < int(after))


@given(TEXTS, QUERIES, st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_a_limit_takes_the_start_of_the_list(texts: list[str], query: str, limit: int) -> None:
    assert okapi(texts, query, limit) == okapi(texts, query)[:limit]


@given(TEXTS, QUERIES)
@settings(max_examples=50, deadline=None)
def test_terms_that_other_personas_use_change_nothing(texts: list[str], query: str) -> None:
    vocabulary = Vocabulary(["zelkova", "yew", "unused"])
    counts = [vocabulary.count(text) for text in texts]
    with tempfile.TemporaryDirectory() as folder, closing(Database(Path(folder) / "s", 1, vocabulary)) as database:
        for number, counted in enumerate(counts):
            database.insert(str(number), counted, np.ones(1, np.float32))
        found = database.search_bm25(query, 100)
    assert [row for row, _ in found] == [row for row, _ in okapi(texts, query, 100)]


@pytest.mark.parametrize("texts", [[], [""], ["", "?!"]])
def test_a_corpus_without_words_finds_nothing(texts: list[str]) -> None:
    assert okapi(texts, "oak") == []


def test_a_query_of_unknown_words_finds_nothing() -> None:
    assert okapi(["oak", "elm"], "absent ? 9") == []


@given(st.text(max_size=200))
def test_term_counts_survive_packing(text: str) -> None:
    vocabulary = Vocabulary()
    counted = vocabulary.count(text)
    back = TermCounts.from_bytes(counted.to_bytes())
    assert (back.ids.tolist(), back.counts.tolist()) == (counted.ids.tolist(), counted.counts.tolist())
    assert counted.counts.sum() == len(words(text))
    assert sorted(set(vocabulary.look_up(text))) == counted.ids.tolist()


def test_term_counts_of_an_impossible_length_are_refused() -> None:
    with pytest.raises(ValueError, match="12 bytes, expected a multiple of 8"):
        TermCounts.from_bytes(bytes(12))


def test_words_are_lower_cased_runs_of_word_characters() -> None:
    assert words("Don't PANIC_42, naïve—日本!") == ["don", "t", "panic_42", "naïve", "日本"]


def test_composed_and_decomposed_text_have_the_same_words() -> None:
    assert words("Cafe\u0301 Arago\u0301n") == words("Caf\u00e9 Arag\u00f3n") == ["café", "aragón"]


def test_a_vocabulary_numbers_terms_as_they_come_and_goes_on_where_it_stopped() -> None:
    first = Vocabulary()
    first.count("b a b")
    second = Vocabulary(first.terms_from(0))
    assert second.count("c a").ids.tolist() == [1, 2]
    assert (first.terms_from(0), second.terms_from(2), len(second)) == (["b", "a"], ["c"], 3)
