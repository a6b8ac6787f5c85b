"""Oddities that do not stop a file are counted, and said in one sentence each with the first place."""

from retrieval_eval.dataset import DatasetReader
from retrieval_eval.dataset.notes import DatasetNotes


def notes_of(path) -> DatasetNotes:
    reader = DatasetReader(path)
    for _ in reader.instances():
        pass
    return reader.notes


def test_a_clean_file_has_nothing_to_say(write, question) -> None:
    assert notes_of(write([question()])) == DatasetNotes(0, 0, 0, 0, 0, 0, ())


def test_dates_that_are_too_few_are_named_with_all_lengths_once(write, question) -> None:
    few = ["2023/05/01", "2023/05/02"]
    notes = notes_of(write([question("q1"), question("q2", haystack_dates=few), question("q3", haystack_dates=None)]))
    assert notes.dates_mismatched == 2
    (warning,) = notes.warnings
    assert "(3/3/2)" in warning
    assert "instance 1 (question 'q2')" in warning
    assert ": 2, first" in warning


def test_repeated_session_ids_are_counted_from_the_second_on(write, question) -> None:
    notes = notes_of(write([question(haystack_session_ids=["answer_bulb"] * 3)]))
    assert notes.duplicate_session_ids == 2
    assert "'answer_bulb'" in notes.warnings[0]


def test_gold_outside_the_haystack_is_counted_and_stays_gold(write, question) -> None:
    path = write([question(answer_session_ids=["answer_bulb", "answer_lost"])])
    assert notes_of(path).gold_not_in_haystack == 1
    assert next(DatasetReader(path).instances()).pair.gold == ("answer_bulb", "answer_lost")


def test_sessions_without_text_are_counted_gold_ones_once_more(write, question) -> None:
    sessions = [[], [{"role": "user", "content": " "}], [{"role": "user", "content": "words"}]]
    notes = notes_of(write([question(haystack_sessions=sessions)]))
    assert (notes.empty_sessions, notes.empty_gold_sessions) == (2, 1)
    assert len(notes.warnings) == 2


def test_an_empty_haystack_is_allowed_and_counted(write, question) -> None:
    path = write([question(haystack_session_ids=[], haystack_sessions=[], haystack_dates=[])])
    notes = notes_of(path)
    assert (notes.empty_haystacks, notes.gold_not_in_haystack, notes.dates_mismatched) == (1, 1, 0)
    assert next(DatasetReader(path).instances()).exclusion is None


def test_what_is_not_scored_is_not_counted(write, question) -> None:
    odd = {"haystack_session_ids": ["a", "a", "a"], "haystack_dates": [], "haystack_sessions": [[], [], []]}
    path = write([question("q1_abs", **odd), question("q2", answer_session_ids=[], **odd)])
    assert notes_of(path) == DatasetNotes(0, 0, 0, 0, 0, 0, ())
