"""Questions and corpora that broke other stores: query syntax, tiny corpora, accents, long texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

LEGS = ("fts5", "okapi")
AWKWARD = [
    "Where did I leave the zibeline coat, and why?",
    "What's the zibeline's colour?",
    'Is it "zibeline" or "sable"?',
    "zibeline AND NOT (coat OR hat) NEAR/3 shop",
    "content: zibeline*",
    "zibeline - {coat} [shop] ^hat + 5%",
    "zibeline\\coat/shop;--",
    "zibeline'); DROP TABLE memories; --",
    "¿zibeline? – “coat” … £5",  # noqa: RUF001 - on purpose
    "zibeline\tcoat\nshop",
]
TEXTS = {"filler1": "we talked about rain", "gold": "the zibeline coat is in the shop", "filler2": "a new hat"}


@pytest.mark.parametrize("leg", LEGS)
@pytest.mark.parametrize("query", AWKWARD)
def test_query_syntax_in_a_question_is_plain_text(new_store: Callable[..., Any], leg: str, query: str) -> None:
    store = new_store(leg, TEXTS)
    schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
    before = store.database._connection.execute(schema).fetchall()
    found = store.bm25(query)
    if leg == "okapi":
        assert found[0] == "gold"
    assert store.database._connection.execute(schema).fetchall() == before
    assert store.bm25("zibeline") == ["gold"]


def test_two_rows_and_a_word_in_one_of_them_give_it_an_idf_of_zero_and_keep_it(new_store: Callable[..., Any]) -> None:
    store = new_store("okapi", {"filler": "rain all week", "gold": "a warbler nests"})
    assert store.database.search_bm25("warbler", 10) == [("gold", 0.0)]


@pytest.mark.parametrize("leg", LEGS)
def test_a_word_in_every_row_drops_none_and_favours_the_row_that_says_it_most(
    new_store: Callable[..., Any], leg: str
) -> None:
    store = new_store(
        leg, {"long": "warbler and a long tale of drains and gutters", "short": "warbler warbler warbler"}
    )
    assert sorted(store.bm25("warbler")) == ["long", "short"]
    assert all(score == score for _, score in store.database.search_bm25("warbler", 10))  # noqa: PLR0124 - NaN is not


def test_fts5_ranks_the_row_first_that_says_a_common_word_most(new_store: Callable[..., Any]) -> None:
    store = new_store("fts5", {"long": "warbler and a long tale of drains", "short": "warbler warbler warbler"})
    assert store.bm25("warbler") == ["short", "long"]


@pytest.mark.parametrize("leg", LEGS)
def test_rows_without_words_neither_match_nor_break_the_average(new_store: Callable[..., Any], leg: str) -> None:
    empty = new_store(leg, {"a": "", "b": ""})
    assert (empty.bm25("warbler"), empty.semantic((1, 0, 0, 0))) == ([], ["b", "a"])
    assert new_store(leg, {"a": "", "b": "warbler", "c": "rain"}).bm25("warbler") == ["b"]


@pytest.mark.parametrize("leg", LEGS)
@pytest.mark.parametrize("query", ["caf\u00e9 Arag\u00f3n", "cafe\u0301 Arago\u0301n", "CAFÉ ARAGÓN"])
def test_composed_and_decomposed_accents_match_each_other(new_store: Callable[..., Any], leg: str, query: str) -> None:
    texts = {"other": "a cafeteria in town", "gold": "The cafe\u0301 in Arago\u0301n", "filler": "leeks and barley"}
    assert new_store(leg, texts).bm25(query) == ["gold"]


@pytest.mark.parametrize("leg", LEGS)
def test_a_word_after_120000_characters_is_found(new_store: Callable[..., Any], leg: str) -> None:
    long = "the weir holds " * 8_000 + "Ottoline"
    assert new_store(leg, {"filler": "weir", "gold": long, "other": "holds"}).bm25("ottoline") == ["gold"]


@pytest.mark.parametrize("leg", LEGS)
def test_a_question_that_no_row_shares_a_word_with_finds_nothing(new_store: Callable[..., Any], leg: str) -> None:
    assert new_store(leg, TEXTS).bm25("xylograph-77 zephyrine") == []


@pytest.mark.parametrize("leg", LEGS)
def test_row_ids_are_not_searched(new_store: Callable[..., Any], leg: str) -> None:
    assert new_store(leg, {"answer_1": "we talked about rain", "b": "hills", "c": "hats"}).bm25("answer_1 answer") == []
