"""Each distinct text is embedded once, whatever comes after; what is reused gives the same report."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import fake_model
import numpy as np
import pytest

from retrieval_eval import pipeline
from retrieval_eval.cache.reader import CacheReader
from retrieval_eval.model import Lane


def test_each_distinct_text_is_embedded_once(cache: Any, data: Path) -> None:
    done = cache.prep(data)
    assert (done.pairs, done.reused, done.embedded) == (6, 0, 25)
    assert len(cache.embedder.embedded) == len(set(cache.embedder.embedded)) == 25


def test_progress_moves_with_each_text_and_not_with_each_commit(cache: Any, data: Path) -> None:
    told: list[int] = []

    def embedding(step: str, count: int) -> None:
        if step == "embed":
            told.append(count)

    model = fake_model.model(cache.embedder)
    pipeline.prep(data, cache.folder, model, fake_model.effects(embedding))
    assert told == list(range(1, 26))


def test_a_second_prep_embeds_nothing_and_loads_no_model(finished: Any, data: Path) -> None:
    before, report = finished.content(), finished.report()

    def no_model(step: str, count: int) -> None:
        raise AssertionError("the model was loaded")

    prepared = fake_model.prep(data, finished.folder, fake_model.model(finished.embedder, no_model))
    assert (prepared.reused, prepared.embedded) == (25, 0)
    assert finished.content() == before
    assert finished.report() == report


def test_a_new_file_with_one_more_session_embeds_one(finished: Any, tmp_path: Path) -> None:
    records = fake_model.instances(6)
    records[3]["haystack_sessions"].append([{"role": "user", "content": "A heron stood on the weir."}])
    records[3]["haystack_session_ids"].append("heron")
    records[3]["haystack_dates"].append("2023/05/01 (Mon) 08:00")
    finished.embedder.embedded.clear()
    done = finished.prep(fake_model.write(tmp_path / "more.json", records))
    assert (done.reused, done.embedded) == (25, 1)
    assert finished.embedder.embedded == ["user: A heron stood on the weir."]


def test_one_word_changed_under_the_same_name_embeds_one_and_equals_a_fresh_cache(
    finished: Any, data: Path, tmp_path: Path
) -> None:
    data.write_text(data.read_text().replace("my locker is number2", "my bucket is number2"))
    done = finished.prep(data)
    assert (done.reused, done.embedded) == (24, 1)
    fresh = type(finished)(tmp_path / "fresh")
    fresh.prep(data)
    assert finished.report() == fresh.report()


def test_fewer_questions_leave_their_texts_for_the_next_file(finished: Any, data: Path, tmp_path: Path) -> None:
    first = finished.report()
    assert finished.prep(fake_model.write(tmp_path / "few.json", fake_model.instances(2))).embedded == 0
    assert [question["question_id"] for question in finished.report()["questions"]] == ["q0", "q1"]
    assert finished.prep(data).embedded == 0
    assert finished.report() == first


def test_the_same_text_as_question_and_session_has_a_vector_for_each_role(cache: Any, tmp_path: Path) -> None:
    record = fake_model.instance(0)
    record["question"] = "user: the tap in the kitchen drips"
    assert cache.prep(fake_model.write(tmp_path / "data.json", [record])).embedded == 5
    with CacheReader(cache.folder) as reader:
        stored = reader.pairs[0]
        session = reader.vector(stored.session_texts[0])
        assert reader.text(stored.question_text) == reader.text(stored.session_texts[0])
        assert not np.array_equal(reader.vector(stored.question_text), session)


def test_one_session_id_with_two_texts_keeps_both(cache: Any, tmp_path: Path) -> None:
    records = fake_model.instances(2)
    for record in records:
        record["haystack_session_ids"][1] = "shared"
        record["answer_session_ids"] = ["shared"]
    cache.prep(fake_model.write(tmp_path / "data.json", records))
    with CacheReader(cache.folder) as reader:
        rows = [reader.rows(stored)[1] for stored in reader.pairs]
        assert [row.session_id for row in rows] == ["shared", "shared"]
        assert rows[0].row_id != rows[1].row_id
        assert [row.text.endswith(f"number{number}") for number, row in enumerate(rows)] == [True, True]


def test_the_order_of_the_questions_does_not_change_their_lists(cache: Any, tmp_path: Path) -> None:
    records = fake_model.instances(4)
    cache.prep(fake_model.write(tmp_path / "data.json", records))
    forward = {question["question_id"]: question for question in cache.report()["questions"]}
    cache.prep(fake_model.write(tmp_path / "data.json", records[::-1]))
    assert {question["question_id"]: question for question in cache.report()["questions"]} == forward


def test_labels_and_answers_reach_neither_texts_nor_lists(cache: Any, tmp_path: Path) -> None:
    plain = fake_model.instances(3)
    labelled = copy.deepcopy(plain)
    for record in labelled:
        record["answer"] = "zanzibar"
        record["note"] = "zanzibar"
        record["haystack_sessions"][1][0] |= {"has_answer": True, "evidence": "zanzibar"}
    cache.prep(fake_model.write(tmp_path / "plain.json", plain))
    questions = cache.report()["questions"]
    assert cache.prep(fake_model.write(tmp_path / "labelled.json", labelled)).embedded == 0
    assert cache.report()["questions"] == questions
    with CacheReader(cache.folder) as reader:
        texts = [reader.text(number) for stored in reader.pairs for number in stored.session_texts]
    assert not [text for text in texts if "zanzibar" in text or "answer_" in text or "has_answer" in text]


def test_empty_texts_are_zeros_and_never_nan(cache: Any, tmp_path: Path) -> None:
    record = fake_model.instance(0)
    record["haystack_sessions"][2] = []
    cache.prep(fake_model.write(tmp_path / "data.json", [record]))
    with CacheReader(cache.folder) as reader:
        assert reader.text(reader.pairs[0].session_texts[2]) == ""
    assert cache.report()["lanes"]["model-free"]["overall"]["n"] == 1


def test_a_haystack_without_sessions_is_stored_and_counts_as_a_miss(cache: Any, tmp_path: Path) -> None:
    records = fake_model.instances(2)
    for name in ("haystack_sessions", "haystack_session_ids", "haystack_dates"):
        records[1][name] = []
    cache.prep(fake_model.write(tmp_path / "data.json", records))
    report = cache.report()
    assert report["lanes"]["model-dependent"]["overall"]["n"] == 2
    assert report["questions"][1]["lanes"]["model-free"] == {"ranked": [], "first_gold_rank": None}


@pytest.mark.parametrize("text", ["\ud83d", "a\x00b", "नमस्ते", "e\u0301", "\u2028\u202e", "x" * 300_000])
def test_awkward_texts_come_back_as_they_went_in(cache: Any, tmp_path: Path, text: str) -> None:
    record = fake_model.instance(0)
    record["haystack_sessions"][2] = [{"role": "user", "content": text}]
    cache.prep(fake_model.write(tmp_path / "data.json", [record]))
    with CacheReader(cache.folder) as reader:
        stored = reader.text(reader.pairs[0].session_texts[2])
    assert stored == f"user: {text}".replace("\ud83d", "?")  # a lone surrogate is no text: the reader replaces it
    assert cache.report()["questions"][0]["lanes"]["model-free"]["ranked"]


def test_the_model_free_lane_asks_for_no_model(finished: Any) -> None:
    finished.embedder.embedded.clear()
    report = finished.report(Lane.MODEL_FREE)
    assert list(report["lanes"]) == ["model-free"]
    assert finished.embedder.embedded == []
