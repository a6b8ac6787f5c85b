"""Files that are not LongMemEval: each kind is named, and nothing of its content is shown."""

import errno
import gzip
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from retrieval_eval.dataset import DatasetReader
from retrieval_eval.dataset.source import ByteSource
from retrieval_eval.errors import DatasetError


def zipped(content: bytes) -> bytes:
    """gzip without the time of day: test ids hold the bytes, and two workers must collect the same ids."""
    return gzip.compress(content, mtime=0)


def refusal(path: Path) -> str:
    """The message with which the file is refused; the path must be in it."""
    with pytest.raises(DatasetError) as caught:
        list(DatasetReader(path).instances())
    message = str(caught.value)
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid ab\n", ["Git LFS pointer", "git lfs pull", "lfs: true"]),
        (b"<!DOCTYPE html>\n<html><body>busy</body></html>", ["HTML"]),
        (b"\xef\xbb\xbf\n <HTML></HTML>", ["HTML"]),
        ("[{}]".encode("utf-16"), ["UTF-16", "UTF-8"]),
        ("[{}]".encode("utf-16-be"), ["UTF-16"]),
        ('{"data": 1}'.encode("utf-16-le"), ["UTF-16"]),
        ("[{}]".encode("utf-32"), ["UTF-32"]),
        ("[{}]".encode("utf-32-le"), ["UTF-32"]),
        (b"PK\x03\x04rest", ["zip archive"]),
        (b"\x28\xb5\x2f\xfdrest", ["zstd"]),
        (b"PAR1rest", ["Parquet", "longmemeval-cleaned"]),
        (zipped(zipped(b"[]")), ["gzip data inside gzip data"]),
        (zipped(b"<html>"), ["HTML"]),
        (b"", ["empty", "0 bytes"]),
        (b" \n\t ", ["white space only"]),
        (b"\xef\xbb\xbf", ["white space only"]),
        (zipped(b""), ["white space only"]),
        (b"[]", ["no questions"]),
        (b" [ \n ] ", ["no questions"]),
        (b"[" + b" " * 200_000 + b"]", ["no questions"]),
        (b'"longmemeval"', ["not a JSON array", "got a string"]),
        (b"17", ["got a number"]),
        (b"null", ["got null"]),
        (b"true", ["got true"]),
        (b"[[1]]", ["instance 0", "got a list of 1", "expected an object"]),
        (b'["q"]', ["instance 0", "got a string"]),
        (b"[null]", ["instance 0", "got null"]),
        (b'{"version": 2, "data": [{"question_id": "q"}]}', ["top level is an object", "'version', 'data'"]),
        (b"{}", ["top level is an object", "no keys"]),
    ],
)  # fmt: skip
def test_what_the_file_is_instead_is_named(write, content: bytes, words: list[str]) -> None:
    message = refusal(write(content))
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize(
    ("start", "words"), [(b'[{"question_id": ', "expected a string"), (b'{"version": ', "top level is an object")]
)
def test_a_number_of_ten_thousand_digits_does_not_end_the_process(write, start: bytes, words: str) -> None:
    assert words in refusal(write(start + b"9" * 10_000 + b"}]"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 200_000, "nested more than 100 deep"),
        (b'[{"question_id": ' + b'{"a":[1,' * 40_000, "nested more than 100 deep"),
        (b'{"version": ' + b"[" * 60_000, "top level is an object"),
    ],
)
def test_what_nests_too_deep_is_named_before_it_takes_all_memory(write, content: bytes, words: str) -> None:
    assert words in refusal(write(content))


def test_json_lines_of_short_lines_is_named(write, question) -> None:
    lines = "\n".join(json.dumps(question(name)) for name in ("q1", "q2"))
    assert "JSON Lines" in refusal(write(lines.encode()))


def test_json_lines_whose_first_line_is_longer_than_what_is_looked_at_is_named(write, question) -> None:
    long_session = [[{"role": "user", "content": "word " * 50_000}]] * 3
    lines = "\n".join(json.dumps(question(name, haystack_sessions=long_session)) for name in ("q1", "q2"))
    assert "JSON Lines" in refusal(write(lines.encode()))


def test_the_keys_of_a_wrapper_are_escaped_and_cut(write) -> None:
    message = refusal(write({"\x1b[31m" + "k" * 90: 1}))
    assert "\x1b" not in message
    assert "k" * 41 not in message


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "longmemeval_s.json")
    assert "is a folder" in refusal(tmp_path)
    assert "not a path" in refusal(tmp_path / "with\x00null")


def test_a_file_that_goes_bad_while_it_is_read_is_named(write, question, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_read(source: ByteSource, size: int = -1) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(ByteSource, "read", failing_read)
    assert "cannot be read (Input/output error)" in refusal(write([question()]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")


@pytest.mark.parametrize(
    "name", ["xiaowu0162/longmemeval-v2", "data/LongMemEval-V2/trajectories.json", "longmemeval_v2.json"]
)
def test_the_other_benchmark_is_refused_by_name_whether_or_not_it_is_there(name: str) -> None:
    message = refusal(Path(name))
    assert "different benchmark (agent trajectories" in message
    assert "xiaowu0162/longmemeval-cleaned" in message


def test_nothing_of_a_foreign_text_is_shown(write) -> None:
    message = refusal(write(b"root:x:0:0:root:/root:/bin/sh\nsecret\n", "users"))
    assert "not JSON" in message
    assert "root:x" not in message
    assert "secret" not in message


def test_nothing_of_a_broken_array_is_shown(write, question) -> None:
    body = json.dumps([question()]).encode()[:-1] + b", secret]"
    message = refusal(write(body))
    assert "not valid JSON" in message
    assert "after 1 whole instance" in message
    assert "secret" not in message


def test_a_file_cut_anywhere_says_where_and_how_much_was_whole(write, question) -> None:
    first = json.dumps(question("q1")).encode()
    whole = b"[" + first + b", " + json.dumps(question("q2")).encode() + b"]"
    for size in range(len(first) + 1, len(whole), 7):
        message = refusal(write(whole[:size]))
        assert "cut off" in message
        assert f"byte {size}," in message
        assert re.search(r"after (1 whole instance|2 whole instances) \(the last is question 'q", message)
    assert "after 1 whole instance (the last is question 'q1')" in refusal(write(whole[:-2]))
    assert "after 2 whole instances (the last is question 'q2')" in refusal(write(whole[:-1]))


def test_a_file_cut_inside_its_first_instance_has_no_whole_one(write) -> None:
    assert "after 0 whole instances" in refusal(write(b'[{"question_id": "q'))


def test_instances_before_the_cut_come_first(write, question) -> None:
    body = json.dumps([question("q1"), question("q2")]).encode()[:-40]
    reader = DatasetReader(write(body))
    stream = reader.instances()
    assert next(stream).pair.question_id == "q1"
    with pytest.raises(DatasetError, match="cut off"):
        next(stream)
    with pytest.raises(RuntimeError):
        _ = reader.digest


def test_cut_gzip_data_are_named(write, question) -> None:
    packed = gzip.compress(json.dumps([question(f"q{n}") for n in range(50)]).encode())
    assert "gzip data are cut off" in refusal(write(packed[:-9]))


def test_damaged_gzip_data_are_named(write, question) -> None:
    packed = bytearray(gzip.compress(json.dumps([question(f"q{n}") for n in range(9)]).encode()))
    packed[-6] ^= 0xFF
    assert "gzip data are damaged" in refusal(write(bytes(packed)))
    noise = "".join(hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(3_000))
    packed = bytearray(gzip.compress(json.dumps([question(answer=noise)]).encode()))
    packed[-6] ^= 0xFF
    assert "gzip data are damaged at about byte" in refusal(write(bytes(packed)))
    assert "gzip data are damaged" in refusal(write(b"\x1f\x8b\x08\x00" + b"\xff" * 60))


def test_bytes_that_are_no_utf8_are_named(write, question) -> None:
    body = json.dumps([question(question="Caf\N{LATIN SMALL LETTER E WITH ACUTE}?")], ensure_ascii=False)
    assert "invalid bytes in UTF8" in refusal(write(body.encode("latin-1")))


def test_text_after_the_array_is_refused(write, question) -> None:
    body = json.dumps([question()]).encode()
    assert "trailing garbage" in refusal(write(body + b"\n" + body))


SESSION = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question_id": ...}, ["instance 1:", "field 'question_id' is missing"]),
        ({"question_id": ["a", "b"]}, ["instance 1:", "'question_id'", "got a list of 2"]),
        ({"question_id": 5}, ["'question_id'", "got a number"]),
        ({"question_id": ""}, ["'question_id'", "blank string"]),
        ({"question": ...}, ["field 'question' is missing"]),
        ({"question": "  "}, ["field 'question'", "blank string"]),
        ({"question": ["one?", "two?"]}, ["field 'question'", "got a list of 2"]),
        ({"question_type": ["multi-session"]}, ["field 'question_type'", "got a list of 1"]),
        ({"haystack_session_ids": ...}, ["field 'haystack_session_ids' is missing"]),
        ({"haystack_session_ids": ["a", 2, "c"]}, ["haystack_session_ids[1]", "got a number"]),
        ({"haystack_session_ids": ["a", "b"]}, ["3 haystack_sessions and 2 haystack_session_ids"]),
        ({"haystack_sessions": ...}, ["field 'haystack_sessions' is missing"]),
        ({"haystack_sessions": {"walk": []}}, ["field 'haystack_sessions'", "got an object"]),
        ({"haystack_sessions": [SESSION, SESSION]}, ["2 haystack_sessions and 3 haystack_session_ids"]),
        ({"haystack_sessions": [SESSION, None, SESSION]}, ["session 1", "got null", "a list of turns"]),
        ({"haystack_sessions": [SESSION, SESSION, "text"]}, ["session 2", "got a string"]),
        ({"haystack_sessions": [SESSION, [*SESSION, "text"], []]}, ["session 1, turn 1", "got a string"]),
        ({"haystack_sessions": [SESSION, [{"content": "x"}], []]}, ["session 1, turn 0", "'role' is missing"]),
        (
            {"haystack_sessions": [[{"role": "user", "content": 4}], [], []]},
            ["session 0, turn 0", "'content'", "number"],
        ),
        ({"answer_session_ids": "walk"}, ["'answer_session_ids'", "got a string", "list of session ids"]),
        ({"answer_session_ids": [["walk"], ["bread"]]}, ["answer_session_ids[0]", "got a list of 1"]),
    ],
)
def test_a_wrong_field_is_named_with_its_place(write, question, changes: dict[str, object], words: list[str]) -> None:
    message = refusal(write([question("q1"), question(**{"question_id": "q2", **changes})]))
    expected = [*words, "instance 1"] + ([] if "question_id" in changes else ["question 'q2'"])
    assert [word for word in expected if word not in message] == []


def test_a_question_id_that_comes_twice_is_refused_by_name(write, question) -> None:
    message = refusal(write([question("q1"), question("q2"), question("q1", question="Another one?")]))
    assert "instance 2" in message
    assert "'q1' occurs twice" in message


def test_a_hostile_question_id_is_escaped_and_cut_in_messages(write, question) -> None:
    message = refusal(write([question("::error::\n\x1b\u202e" + "x" * 99, question=None)]))
    assert message.isascii()
    assert message.isprintable()
    assert "x" * 41 not in message
