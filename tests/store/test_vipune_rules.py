"""vipune's rules, one test each, by the numbers of the port checklist. What has no counterpart here is listed last."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_eval.errors import RetrieverError
from retrieval_eval.store.database import Database, HybridResult, MemoryStore
from retrieval_eval.store.fts import match_expression
from retrieval_eval.store.limits import candidate_pool, check_limit, check_query

NewStore = Callable[..., Any]


def hybrid(store: Any, query: str, limit: int = 10, vector: tuple[float, ...] = (1, 0, 0, 0)) -> HybridResult:
    return MemoryStore(store.database, lambda _: np.array(vector, np.float32)).search_hybrid(query, limit)


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r", "\v", "\f", "\x85", "\xa0", "\u2003", "\u2028", "\u3000"])
def test_01_query_is_trimmed_of_rust_white_space(space: str) -> None:
    assert check_query(f"{space}a b{space}") == "a b"


@pytest.mark.parametrize("control", ["\x1c", "\x1d", "\x1e", "\x1f", "\u200b", "\ufeff"])
def test_01_what_rust_does_not_take_as_white_space_stays(control: str) -> None:
    assert check_query(f"{control}a") == f"{control}a"
    assert match_expression(f"a{control}b") == f'"a{control}b"'


@pytest.mark.parametrize("query", ["", " ", "\t\n\u3000"])
def test_02_empty_or_blank_query_is_an_error(new_store: NewStore, query: str) -> None:
    with pytest.raises(RetrieverError, match="query is empty or white space"):
        hybrid(new_store("fts5", {"r": "a"}), query)


def test_03_a_query_of_100000_bytes_passes_and_one_more_does_not() -> None:
    assert check_query("x" * 100_000) == "x" * 100_000
    with pytest.raises(RetrieverError, match="got 100001 bytes, expected at most 100000"):
        check_query("x" * 100_001)


def test_03_white_space_around_the_query_does_not_count() -> None:
    assert len(check_query(" " * 9 + "x" * 100_000)) == 100_000


def test_04_length_is_counted_in_bytes() -> None:
    assert check_query("é" * 50_000)
    with pytest.raises(RetrieverError, match="got 100002 bytes"):
        check_query("é" * 50_001)


def test_05_content_is_stored_untrimmed(tmp_path: Path) -> None:
    file = tmp_path / "s.sqlite"
    database = Database(file, 1)
    database.insert("r", "  padded\n", np.ones(1, np.float32))
    rows = database._connection.execute("SELECT content FROM memories").fetchall()
    database.close()
    assert rows == [("  padded\n",)]


@pytest.mark.parametrize("limit", [0, -1, 10_001])
@pytest.mark.parametrize("call", ["semantic", "bm25", "hybrid"])
def test_06_a_limit_outside_1_to_10000_is_an_error_of_every_path(new_store: NewStore, limit: int, call: str) -> None:
    store = new_store("okapi", {"r": "a"})
    calls = {
        "semantic": lambda: store.semantic((1, 0, 0, 0), limit),
        "bm25": lambda: store.bm25("a", limit),
        "hybrid": lambda: hybrid(store, "a", limit),
    }
    with pytest.raises(RetrieverError, match=f"got {limit}, expected 1 to 10000"):
        calls[call]()


def test_06_a_limit_of_10000_is_allowed() -> None:
    check_limit(10_000)
    check_limit(1)


def test_07_hybrid_reports_the_query_before_the_limit(new_store: NewStore) -> None:
    with pytest.raises(RetrieverError, match="query"):
        hybrid(new_store("fts5"), " ", 0)


def test_07_hybrid_embeds_nothing_when_the_call_is_wrong(new_store: NewStore) -> None:
    embedded: list[str] = []
    store = MemoryStore(new_store("fts5").database, lambda text: embedded.append(text) or np.ones(4, np.float32))
    for query, limit in ((" ", 10), ("a", 0)):
        with pytest.raises(RetrieverError):
            store.search_hybrid(query, limit)
    assert embedded == []
    store.search_hybrid(" a ", 10)
    assert embedded == ["a"]


@pytest.mark.parametrize(
    ("limit", "pool"), [(1, 50), (5, 50), (6, 60), (10, 100), (999, 9990), (1000, 10_000), (10_000, 10_000)]
)
def test_09_candidate_pool(limit: int, pool: int) -> None:
    assert candidate_pool(limit) == pool


def test_09_both_legs_are_searched_as_deep_as_the_pool(new_store: NewStore) -> None:
    store = new_store("okapi", {f"{number:03}": "word" for number in range(70)})
    found = hybrid(store, "word", 1)
    assert (len(found.semantic), len(found.bm25)) == (50, 50)
    assert len(hybrid(store, "word", 7).bm25) == 70


def test_10_26_one_database_holds_one_persona_and_scores_come_from_it_alone(tmp_path: Path) -> None:
    def score(*others: str) -> float:
        with closing(Database(tmp_path / f"{len(others)}.sqlite", 1)) as database:
            for number, text in enumerate(("a river boat", "the sea", "a hill", *others)):
                database.insert(str(number), text, np.ones(1, np.float32))
            return database.search_bm25("boat", 1)[0][1]

    assert score("x", "y", "z", "another tram") < score()


def test_12_negative_cosines_are_returned_too(new_store: NewStore) -> None:
    store = new_store("fts5")
    store.add("against", vector=(-1, 0, 0, 0))
    store.add("along", vector=(1, 0, 0, 0))
    assert store.database.search(np.array([1, 0, 0, 0], np.float32), 10) == [("along", 1.0), ("against", -1.0)]


def test_13_a_zero_vector_has_cosine_zero(new_store: NewStore) -> None:
    store = new_store("fts5")
    store.add("empty", vector=(0, 0, 0, 0))
    store.add("against", vector=(-1, 0, 0, 0))
    assert store.database.search(np.array([1, 0, 0, 0], np.float32), 10) == [("empty", 0.0), ("against", -1.0)]
    assert [score for _, score in store.database.search(np.zeros(4, np.float32), 10)] == [0.0, 0.0]


@pytest.mark.parametrize("vector", [(), (1, 0, 0), (1, 0, 0, 0, 0), (np.nan, 0, 0, 0), (np.inf, 0, 0, 0)])
def test_14_wrong_query_vectors_are_errors_where_there_are_rows(new_store: NewStore, vector: tuple[float, ...]) -> None:
    assert new_store("fts5").semantic(vector) == []
    with pytest.raises(RetrieverError, match=r"query vector.*expected 4 finite numbers"):
        new_store("fts5", {"r": "a"}).semantic(vector)


@pytest.mark.parametrize("vector", [(1, 0, 0), (np.nan, 0, 0, 0), (0, -np.inf, 0, 0)])
def test_14_wrong_row_vectors_are_errors_that_store_nothing(new_store: NewStore, vector: tuple[float, ...]) -> None:
    store = new_store("okapi", {"r": "a"})
    with pytest.raises(RetrieverError, match="bad: vector of a row"):
        store.add("bad", "word", vector)
    store.add("next", "word")
    assert store.bm25("word") == ["next"]


def test_15_a_vector_is_stored_as_little_endian_float32(tmp_path: Path) -> None:
    database = Database(tmp_path / "s.sqlite", 2)
    database.insert("r", "", np.array([1.5, -2], ">f4"))
    ((blob,),) = database._connection.execute("SELECT embedding FROM memories").fetchall()
    database.close()
    assert blob == bytes.fromhex("0000c03f 000000c0")


def test_16_equal_cosines_come_newest_first(new_store: NewStore) -> None:
    assert new_store("fts5", dict.fromkeys("bca", "")).semantic((1, 0, 0, 0)) == ["a", "c", "b"]


@pytest.mark.parametrize("leg", ["fts5", "okapi"])
def test_18_equal_bm25_scores_come_oldest_first_under_a_limit_too(new_store: NewStore, leg: str) -> None:
    store = new_store(leg, {**dict.fromkeys("dbca", "river"), "x": "sea", "y": "sea", "z": "sea", "u": "sea"})
    assert store.bm25("river") == ["d", "b", "c", "a"]
    assert store.bm25("river", 2) == ["d", "b"]


def test_19_words_are_quoted_and_joined_by_a_space() -> None:
    assert match_expression('say "hi"  to\\me') == '"say" """hi""" "to\\\\me"'


def test_19_20_fts5_wants_every_word(new_store: NewStore) -> None:
    store = new_store("fts5", {"both": "rust programming", "one": "rust error handling"})
    assert store.bm25("rust programming") == ["both"]
    assert store.bm25("rust programming absent") == []


def test_21_punctuation_alone_is_ignored_and_nothing_else_finds_nothing(new_store: NewStore) -> None:
    store = new_store("fts5", {"r": "blue bicycle"})
    assert store.bm25("bicycle ? - ...") == ["r"]
    assert store.bm25("? - ...") == []


def test_22_inner_punctuation_makes_a_phrase(new_store: NewStore) -> None:
    store = new_store("fts5", {"apostrophe": "I don't mind", "plain": "dont mind", "apart": "don and t"})
    assert store.bm25("don't") == ["apostrophe"]


@pytest.mark.parametrize("query", ["AND", "OR", "NOT", "NEAR(river)", "riv*", "^river", "content:river", "(river)"])
def test_23_query_operators_are_plain_text(new_store: NewStore, query: str) -> None:
    store = new_store("fts5", {"first": "a river", "last": "the sea"})
    assert store.bm25(query) == (["first"] if query in ("^river", "(river)") else [])


def test_24_accents_case_and_endings_are_folded(new_store: NewStore) -> None:
    store = new_store("fts5", {"accent": "Café", "decomposed": "cafe\u0301", "run": "he run"})
    assert store.bm25("CAFE") == ["accent", "decomposed"]
    assert store.bm25("running") == ["run"]


def test_25_a_nul_in_a_query_is_an_error_of_fts5(new_store: NewStore) -> None:
    with pytest.raises(RetrieverError, match="full-text search refused the query"):
        new_store("fts5", {"r": "a"}).bm25("a\0b")


def test_28_29_fusion_takes_k_25_and_ranks_from_one(new_store: NewStore) -> None:
    store = new_store("fts5", {"r": "river"})
    assert hybrid(store, "river").fused == [("r", 1 / 26 + 1 / 26)]


def test_33_an_empty_bm25_leg_leaves_the_semantic_order(new_store: NewStore) -> None:
    store = new_store("fts5", dict.fromkeys("bca", "river"))
    found = hybrid(store, "absent")
    assert found.bm25 == []
    assert [row_id for row_id, _ in found.fused] == [row_id for row_id, _ in found.semantic] == ["a", "c", "b"]


def test_34_the_same_inserts_give_the_same_answers(tmp_path: Path) -> None:
    def ask(file: Path) -> HybridResult:
        rng = np.random.default_rng(5)
        with closing(Database(file, 8)) as database:
            for number in range(60):
                database.insert(f"{number * 7919 % 60:02}", f"word{number % 7}", rng.random(8, np.float32))
            return MemoryStore(database, lambda _: np.ones(8, np.float32)).search_hybrid("word3", 10)

    assert ask(tmp_path / "a.sqlite") == ask(tmp_path / "b.sqlite")


def test_35_other_row_ids_change_tied_positions_only(new_store: NewStore) -> None:
    def scores(ids: str) -> list[float]:
        store = new_store("okapi", dict(zip(ids, ["river", "river sea", "sea", "hill"], strict=True)))
        return [score for _, score in hybrid(store, "river sea").fused]

    assert scores("abcd") == scores("dbac")


@pytest.mark.parametrize("leg", ["fts5", "okapi"])
def test_a_row_id_that_is_taken_is_refused_and_changes_nothing(new_store: NewStore, leg: str) -> None:
    store = new_store(leg, {"r": "river"})
    with pytest.raises(RetrieverError, match="r: row id is taken"):
        store.add("r", "sea")
    store.add("s", "hill")
    assert (store.bm25("river"), store.bm25("sea"), store.bm25("hill")) == (["r"], [], ["s"])


@pytest.mark.parametrize("leg", ["fts5", "okapi"])
def test_a_row_inserted_after_a_search_is_found(new_store: NewStore, leg: str) -> None:
    store = new_store(leg, {"r": "river"})
    assert (store.bm25("river"), store.semantic((1, 0, 0, 0))) == (["r"], ["r"])
    store.add("s", "river")
    assert (store.bm25("river"), store.semantic((1, 0, 0, 0))) == (["r", "s"], ["s", "r"])


def test_content_of_the_other_leg_is_refused(new_store: NewStore) -> None:
    with pytest.raises(TypeError, match="str for the okapi leg"):
        new_store("okapi").database.insert("r", "text", np.ones(4, np.float32))


def test_a_closed_database_is_gone(new_store: NewStore) -> None:
    store = new_store("fts5", {"r": "river"})
    store.database.close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.semantic((1, 0, 0, 0))


# Without a counterpart here: 8 (recency is fixed at 0), 11 (no types or statuses), 27 (rows are neither changed nor
# deleted), 39 and 40 (ingest policies). 17 is `fts.SCHEMA`, held by the lists of the real crate; 30 to 32 are in
# test_fusion.py; 36 to 38 in tests/embedding.
