"""The transcript in the protocol's documentation is a real run, and its limits are the code's."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import fields

import numpy as np
import pytest

from retrieval_eval.retriever import messages
from retrieval_eval.retriever.conversation import MAX_UNANSWERED, Timeouts
from retrieval_eval.retriever.process import MAX_FAILURES_IN_A_ROW, ExternalRetriever
from retrieval_eval.retriever.protocol import Path, Query

RECORDER = """
import subprocess, sys, threading
record = open(sys.argv[1], "w", encoding="utf-8")
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in sys.stdin:
    record.write("→ " + line)
    child.stdin.write(line)
    child.stdin.flush()
    if '"type":"bye"' in line:
        break
    reply = child.stdout.readline()
    record.write("← " + reply)
    print(reply, end="", flush=True)
record.close()
child.stdin.close()
child.wait()
"""


@pytest.fixture(scope="module")
def document(root):
    return (root / "docs" / "retriever-protocol.md").read_text(encoding="utf-8")


def test_the_transcript_is_what_a_run_of_the_python_example_says(root, tmp_path, make_rows, document):
    recorder, record = tmp_path / "recorder.py", tmp_path / "record.txt"
    recorder.write_text(RECORDER, encoding="utf-8")
    example = root / "examples" / "retrievers" / "python" / "retriever.py"
    command = [sys.executable, str(recorder), str(record), sys.executable, str(example)]
    rows = [
        type(row)(row.row_id, text, np.array(vector, np.float32))
        for row, text, vector in zip(
            make_rows(2), ("user: I moved to Turku", "user: My cat is “Pulla”"), ([1, 0, 0], [0, 1, 0]), strict=True
        )
    ]
    question = np.array([0.6, 0.8, 0], np.float32)
    with ExternalRetriever(command, env=os.environ) as retriever, retriever.open("q1", rows) as persona:
        persona.search(Query("q1", Path.SEARCH_HYBRID, 2, "Where is my cat?", question))
        persona.search(Query("q1", Path.SEARCH, 1, None, question))
    block = re.search(r"```text\n(→.*?)```", document, re.DOTALL)
    assert block is not None
    assert block[1].splitlines() == record.read_text(encoding="utf-8").splitlines()


def test_the_document_states_the_limits_of_the_code(document):
    for phrase in (
        f"at most {messages.MAX_BATCH_ROWS} rows",
        f"at most {messages.MAX_BATCH_BYTES // 2**20} MiB",
        f"at most {messages.MAX_ANSWER_BYTES // 2**20} MiB",
        f"at most {MAX_UNANSWERED} requests",
        f"after {MAX_FAILURES_IN_A_ROW} failures in a row",
        messages.created_at(0),
    ):
        assert phrase in document


def test_the_document_states_every_time_out(document):
    stated = dict(re.findall(r"^\| `(\w+)` \| (\d+) s \|", document, re.MULTILINE))
    names = {field.name: f"{field.default:g}" for field in fields(Timeouts)}
    assert stated == {name.removesuffix("_s"): seconds for name, seconds in names.items()}
