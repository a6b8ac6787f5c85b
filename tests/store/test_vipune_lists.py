"""The store gives the lists that the real crate gave, and those of rank-bm25 for the other leg: all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.errors import RetrieverError
from retrieval_eval.store.database import Database, Hit, MemoryStore
from retrieval_eval.terms import Vocabulary

LIMITS = (1, 5, 10, 20)


def _positions(hits: list[Hit], row_ids: list[str]) -> list[int]:
    position = {row_id: number for number, row_id in enumerate(row_ids)}
    return [position[row_id] for row_id, _ in hits]


def _fts5_differences(instance: Any, golden: Any, file: Path) -> list[str]:
    ids, lists, found = instance.row_ids, instance.lists, {}
    with closing(Database(file, 384)) as database:
        for row_id, session in zip(ids, instance.sessions, strict=True):
            database.insert(row_id, golden.texts[session], golden.vectors[session])
        found["semantic"] = _positions(database.search(instance.vector, 10_000), ids)
        bm25 = database.search_bm25(instance.question, 100)
        found["bm25"] = _positions(bm25, ids)
        store = MemoryStore(database, lambda _: instance.vector)
        fused = {limit: store.search_hybrid(instance.question, limit).fused[:limit] for limit in LIMITS}
        found["hybrid"] = {str(limit): _positions(hits, ids) for limit, hits in fused.items()}
        found["hybrid_10_scores"] = [score for _, score in fused[10]]
    if [score for _, score in bm25] != pytest.approx(lists["bm25_scores"], rel=1e-12):
        return ["bm25_scores"]
    return [name for name, value in found.items() if value != lists[name]]


@pytest.mark.parametrize("size", [48, pytest.param(300, marks=pytest.mark.slow)])
def test_fts5_store_reproduces_every_list_of_the_real_crate(golden: Any, tmp_path: Path, size: int) -> None:
    instances = golden.instances[size]
    differing = {}
    for number, instance in enumerate(instances):
        file = tmp_path / f"{number}.sqlite"
        differing[instance.question_id] = _fts5_differences(instance, golden, file)
        file.unlink()
    assert len(differing) == 122
    assert {question: names for question, names in differing.items() if names} == {}


@pytest.mark.parametrize("size", [48, 300])
def test_okapi_store_reproduces_every_list_of_rank_bm25(golden: Any, tmp_path: Path, size: int) -> None:
    vocabulary = Vocabulary()
    counts = {session: vocabulary.count(text) for session, text in golden.texts.items()}
    differing = []
    for number, instance in enumerate(golden.instances[size]):
        ids, want = instance.row_ids, instance.okapi
        with closing(Database(tmp_path / f"{number}.sqlite", 384, vocabulary)) as database:
            for row_id, session in zip(ids, instance.sessions, strict=True):
                database.insert(row_id, counts[session], golden.vectors[session])
            found = MemoryStore(database, lambda _, query=instance.vector: query).search_hybrid(instance.question, 10)
        lists = (_positions(found.bm25, ids), _positions(found.fused[:10], ids), _positions(found.semantic, ids))
        if lists != (want["okapi"], want["hybrid_okapi"], instance.lists["semantic"][:100]):
            differing.append(instance.question_id)
    assert differing == []


def test_fts5_answers_the_awkward_queries_as_the_real_crate_does(shared: Path, new_store: Callable[..., Any]) -> None:
    awkward = json.loads((shared / "golden" / "fts_queries.json").read_text(encoding="utf-8"))
    store = new_store("fts5", {str(number): text for number, text in enumerate(awkward["docs"])})
    differing = []
    for case in awkward["queries"]:
        try:
            hits = [(int(row_id), score) for row_id, score in store.database.search_bm25(case["query"], 100)]
        except RetrieverError:
            is_same = case["error"] is not None
        else:
            rows = [tuple(row) for row in case["rows"] or []]
            scores = pytest.approx([score for _, score in rows], rel=1e-12)
            same_rows = [row for row, _ in hits] == [row for row, _ in rows]
            is_same = case["error"] is None and same_rows and [score for _, score in hits] == scores
        if not is_same:
            differing.append(case["query"])
    assert len(awkward["queries"]) == 97
    assert differing == []
