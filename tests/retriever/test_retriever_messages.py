"""The wire format: what a request line may hold, and how rows are cut into batches."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever import messages


@given(hnp.arrays(np.float32, st.integers(0, 20)))
def test_a_vector_is_little_endian_float32_in_base64_bit_for_bit(vector):
    data = base64.b64decode(messages.encode_vector(vector), validate=True)
    assert data == b"".join(struct.pack("<f", number) for number in vector)


def test_a_big_endian_vector_travels_as_little_endian():
    assert messages.encode_vector(np.array([1.5], ">f4")) == base64.b64encode(struct.pack("<f", 1.5)).decode()


@given(st.text(st.characters(exclude_categories=[])))
def test_every_text_becomes_one_ascii_line_that_strict_readers_take(text):
    line = messages.request_line("search", 1, {"text": messages.clean_text(text)})
    assert line.isascii()
    assert line.find(b"\n") == len(line) - 1
    assert line.decode().splitlines() == [line[:-1].decode()]
    json.loads(line)["text"].encode("utf-8")


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert messages.clean_text("a\ud800b🙂") == "a\ufffdb🙂"


def test_batches_hold_at_most_64_rows_in_order(make_rows):
    rows = make_rows(130)
    found = list(messages.batches(rows, with_vectors=False))
    assert [batch.count for batch in found] == [64, 64, 2]
    sent = [row for batch in found for row in json.loads(f"[{batch.rows}]")]
    assert [row["id"] for row in sent] == [row.row_id for row in rows]
    assert [row["created_at"] for row in sent] == sorted({row["created_at"] for row in sent})
    assert sent[129]["created_at"] == "2024-01-01T00:02:09Z"


def test_batches_hold_at_most_4_mib_unless_one_row_is_longer(make_rows):
    rows = [*make_rows(3, text="x" * 1_500_000), *make_rows(1, text="é" * 1_000_000), *make_rows(1)]
    found = list(messages.batches(rows, with_vectors=True))
    assert [batch.count for batch in found] == [2, 1, 1, 1]
    sizes = [len(batch.rows) for batch in found]
    assert max(sizes[0], sizes[1], sizes[3]) <= 4 * 2**20 < sizes[2]


def test_no_rows_make_no_batch():
    assert list(messages.batches([], with_vectors=True)) == []


def test_the_rows_of_a_batch_are_a_field_of_the_message(make_rows):
    [batch] = messages.batches(make_rows(2), with_vectors=True)
    message = json.loads(messages.request_line("insert", 3, {"persona": "p"}, batch.rows))
    assert list(message) == ["type", "seq", "persona", "rows"]
    assert [len(row["vector"]) for row in message["rows"]] == [16, 16]


@pytest.mark.parametrize("seq", [4, True, "3", None])
def test_an_answer_needs_the_seq_of_its_request(seq):
    line = json.dumps({"type": "search", "seq": seq}).encode()
    with pytest.raises(RetrieverError, match='expected type "search" or "error", seq 3'):
        messages.read_reply(line, "search", 3, "here")


def test_deep_nesting_is_refused_not_fatal():
    with pytest.raises(RetrieverError, match="not a JSON object"):
        messages.read_reply(b'{"a":' * 200_000, "search", 3, "here")


def test_unknown_fields_and_paths_of_hello_are_ignored():
    reply = {"version": 1, "name": "n", "paths": {"search": {"needs": ["vector"], "x": 1}, "search_graph": 7}, "y": []}
    hello = messages.read_hello(reply, "here")
    assert list(hello.paths) == ["search"]
    assert (hello.personas, hello.row_vectors, hello.query_vectors) == (1, "given", "given")


def test_what_a_message_shows_of_a_long_line_is_short_and_printable():
    text = messages.shown(b"\x00\x1b" + b"y" * 10_000)
    assert text.startswith(r"\x00\x1byyy")
    assert text.endswith("… (10,008 characters)")
    assert len(text) < 600
