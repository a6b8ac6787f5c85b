"""The examples of the protocol run, keep its rules, and rank what is near first."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from retrieval_eval.retriever.conformance import run_conformance
from retrieval_eval.retriever.conversation import Timeouts
from retrieval_eval.retriever.process import child_environment
from retrieval_eval.retriever.protocol import Leg, Path, Query


@pytest.fixture(params=["python", "node"])
def command(request, root) -> list[str]:
    folder = root / "examples" / "retrievers" / request.param
    if request.param == "python":
        return [sys.executable, str(folder / "retriever.py")]
    if shutil.which("node") is None:
        pytest.skip("no node on this machine")
    return ["node", str(folder / "retriever.mjs")]


def test_an_example_keeps_every_rule(command):
    points = run_conformance(command, env=child_environment(os.environ), timeouts=Timeouts(exit_s=10.0))
    assert [point for point in points if not point.holds] == []


def test_an_example_ranks_by_words_by_vector_and_by_both(command, start, make_rows):
    rows = make_rows(30)
    ids = [row.row_id for row in rows]
    query = Query("q", Path.SEARCH_HYBRID, 5, "where is row 7?", rows[0].vector)
    with start(command) as retriever, retriever.open("q", rows) as persona:
        assert retriever.facts(10)["query_vectors"] == "given to the retriever"
        by_words = persona.search(Query("q", Path.SEARCH_BM25, 5, query.text, None))
        by_vector = persona.search(Query("q", Path.SEARCH, 5, None, query.vector))
        by_both = persona.search(query)
    assert by_words.ranked[0] == ids[7]
    assert by_vector.ranked == by_both.legs[Leg.SEMANTIC][:5]
    assert by_words.ranked == by_both.legs[Leg.BM25][:5]
    assert by_both.scored[0][1] >= by_both.scored[-1][1]


def test_the_python_example_is_short_and_uses_the_standard_library_only(root):
    text = (root / "examples" / "retrievers" / "python" / "retriever.py").read_text(encoding="utf-8")
    imported = {line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert len(text.splitlines()) < 60
    assert imported <= set(sys.stdlib_module_names)
