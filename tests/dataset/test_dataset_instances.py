"""Whole files: what an instance holds, and what is known of the file after it."""

import dataclasses
import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.dataset import DatasetReader
from retrieval_eval.dataset.instance import distinct_ids
from retrieval_eval.model import Exclusion, GoldSource, Instance


def read(path) -> list[Instance]:
    return list(DatasetReader(path).instances())


def test_an_instance_holds_the_pair_and_its_haystack_in_the_order_of_the_file(write, question) -> None:
    (instance,) = read(write([question()]))
    assert instance.pair.question_id == "q_lamp"
    assert instance.pair.category == "multi-session"
    assert instance.pair.question == "Which bulb fits the hall lamp?"
    assert instance.pair.question_date == "2023/06/01 (Thu) 08:00"
    assert instance.pair.gold == ("answer_bulb",)
    assert instance.exclusion is None
    assert [session.session_id for session in instance.sessions] == ["walk", "answer_bulb", "bread"]
    assert instance.sessions[0].text == "user: A walk by the canal?\nassistant: Take the towpath."
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.exclusion = Exclusion.NO_GOLD


def test_bom_line_ends_and_gzip_under_any_name_read_alike(write, question) -> None:
    text = json.dumps([question("q1"), question("q2")], indent=1).encode()
    plain = read(write(text))
    assert len(plain) == 2
    crlf = text.replace(b"\n", b"\r\n")
    two_members = gzip.compress(text[:300]) + gzip.compress(text[300:])
    for name, content in {
        "bom.json": b"\xef\xbb\xbf" + text,
        "crlf.json": crlf,
        "data.json.gz": gzip.compress(text),
        "named.json": gzip.compress(b"\xef\xbb\xbf" + crlf),
        "members.gz": two_members,
        "padded.gz": gzip.compress(text) + b"\x00" * 512,
    }.items():
        assert read(write(content, name)) == plain, name


def test_digest_and_size_are_those_of_the_bytes_on_disk(write, question) -> None:
    text = json.dumps([question(f"q{n}") for n in range(300)]).encode() + b"\n\n"
    for content in (text, gzip.compress(text)):
        reader = DatasetReader(write(content))
        list(reader.instances())
        assert reader.digest == hashlib.sha256(content).hexdigest()
        assert reader.size_bytes == reader.position_bytes == len(content)


def test_the_digest_is_refused_before_the_end_and_the_position_grows(write, question) -> None:
    reader = DatasetReader(write([question(f"q{n}") for n in range(300)]))
    positions = []
    for _ in reader.instances():
        positions.append(reader.position_bytes)
        with pytest.raises(RuntimeError, match="digest"):
            _ = reader.digest
    assert positions == sorted(positions)
    assert 0 < positions[0] < positions[-1] <= reader.size_bytes
    assert len(reader.digest) == 64


def test_reading_twice_gives_the_same(write, question) -> None:
    reader = DatasetReader(write([question("q1"), question("q2", haystack_dates=[])]))
    once, notes, digest = list(reader.instances()), reader.notes, reader.digest
    assert list(reader.instances()) == once
    assert (reader.notes, reader.digest) == (notes, digest)


@pytest.mark.parametrize("answer", [3, None, ["a"], {"a": 1}, 12345678901234567890123, 1.5, ...])
def test_the_answer_may_be_of_any_kind_and_is_never_read(write, question, answer: object) -> None:
    assert read(write([question(answer=answer)])) == read(write([question()]))


def test_a_number_beyond_any_float_stops_nothing(write, question) -> None:
    body = json.dumps([question(answer="NUMBER")]).replace('"NUMBER"', "1e999").encode()
    assert len(read(write(body))) == 1


@pytest.mark.parametrize(
    ("value", "category"),
    [(None, "unknown"), (..., "unknown"), (" ", "unknown"), ("my-own-type", "my-own-type"), ("knowledge-update",) * 2],
)
def test_category_is_kept_or_unknown(write, question, value: object, category: str) -> None:
    assert read(write([question(question_type=value)]))[0].pair.category == category


@pytest.mark.parametrize("date", [None, ..., 20230601])
def test_a_question_date_that_is_no_string_is_empty(write, question, date: object) -> None:
    assert read(write([question(question_date=date)]))[0].pair.question_date == ""


def test_labels_and_unknown_fields_change_nothing_but_the_gold_rule(write, question) -> None:
    plain = question()
    labelled = question(answer="another", extra_field={"gold_rank": 1})
    for turn in labelled["haystack_sessions"][2]:
        turn.update(has_answer=True, note="gold")
    assert read(write([labelled])) == read(write([plain]))


def test_the_same_session_id_in_two_instances_keeps_both_texts(write, question) -> None:
    other = [[{"role": "user", "content": text}] for text in ("one", "two", "three")]
    first, second = read(write([question("q1"), question("q2", haystack_sessions=other)]))
    assert first.sessions[1].session_id == second.sessions[1].session_id
    assert (first.sessions[1].text, second.sessions[1].text) == (
        "user: The hall lamp takes a small bayonet bulb.",
        "user: two",
    )


@pytest.mark.parametrize(
    ("named", "distinct"),
    [
        (["a", "b"], ("a", "b")),
        (["a", "b", "a", "a"], ("a", "b", "a#2", "a#3")),
        (["a", "a", "a#2"], ("a", "a#3", "a#2")),
        (["a", "a#2", "a", "a"], ("a", "a#2", "a#3", "a#4")),
        (["a#2", "a#2", "a", "a"], ("a#2", "a#2#2", "a", "a#3")),
        ([], ()),
    ],
)
def test_repeated_session_ids_get_a_suffix_that_no_other_session_has(
    named: list[str], distinct: tuple[str, ...]
) -> None:
    assert distinct_ids(named) == distinct


@given(st.lists(st.sampled_from(["a", "a#2", "a#2#2", "a#3", "b"])))
def test_made_ids_are_distinct_and_every_first_occurrence_keeps_its_own(named: list[str]) -> None:
    made = distinct_ids(named)
    assert len(set(made)) == len(named)
    assert all(made[named.index(name)] == name for name in named)


def test_a_repeated_session_id_keeps_both_sessions_and_gold_means_the_first(write, question) -> None:
    (instance,) = read(write([question(haystack_session_ids=["walk", "answer_bulb", "answer_bulb"])]))
    assert [session.session_id for session in instance.sessions] == ["walk", "answer_bulb", "answer_bulb#2"]
    assert instance.sessions[2].text == "assistant: Let the dough rest."
    assert instance.pair.gold == ("answer_bulb",)


def test_gold_is_sorted_and_free_of_repeats(write, question) -> None:
    (instance,) = read(write([question(answer_session_ids=["walk", "bread", "walk"])]))
    assert instance.pair.gold == ("bread", "walk")
    assert instance.pair.gold_source is GoldSource.ANSWER_SESSION_IDS


@pytest.mark.parametrize("value", [..., None])
def test_without_gold_ids_the_labelled_sessions_are_gold(write, question, value: object) -> None:
    (instance,) = read(write([question(answer_session_ids=value)]))
    assert instance.pair.gold == ("answer_bulb",)
    assert instance.pair.gold_source is GoldSource.HAS_ANSWER
    assert instance.exclusion is None


def test_a_label_on_an_assistant_turn_counts_and_only_true_is_a_label(write, question) -> None:
    sessions = [
        [{"role": "user", "content": "x", "has_answer": "true"}],
        [{"role": "user", "content": "x", "has_answer": False}],
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "has_answer": True}],
    ]
    (instance,) = read(write([question(answer_session_ids=None, haystack_sessions=sessions)]))
    assert instance.pair.gold == ("bread",)


def test_gold_ids_are_taken_as_they_are_though_no_turn_is_labelled(write, question) -> None:
    (instance,) = read(write([question(answer_session_ids=["answer_bulb", "bread"])]))
    assert instance.pair.gold == ("answer_bulb", "bread")


@pytest.mark.parametrize("value", [[], None, ...])
def test_no_gold_at_all_is_excluded_with_the_reason(write, question, value: object) -> None:
    unlabelled = [[{"role": "user", "content": text}] for text in ("one", "two", "three")]
    (instance,) = read(write([question(answer_session_ids=value, haystack_sessions=unlabelled)]))
    assert instance.pair.gold == ()
    assert instance.exclusion is Exclusion.NO_GOLD


def test_an_empty_gold_list_is_a_statement_that_labels_do_not_overrule(write, question) -> None:
    (instance,) = read(write([question(answer_session_ids=[])]))
    assert instance.exclusion is Exclusion.NO_GOLD


@pytest.mark.parametrize(
    ("question_id", "exclusion"),
    [("q1_abs", Exclusion.ABSTENTION), ("q_abs_1", None), ("_abstract", None), ("q1_ABS", None), ("q_absent", None)],
)
def test_abstention_is_a_suffix_only(write, question, question_id: str, exclusion: Exclusion | None) -> None:
    assert read(write([question(question_id)]))[0].exclusion is exclusion


def test_an_abstention_question_without_gold_is_excluded_as_abstention(write, question) -> None:
    assert read(write([question("q1_abs", answer_session_ids=[])]))[0].exclusion is Exclusion.ABSTENTION
