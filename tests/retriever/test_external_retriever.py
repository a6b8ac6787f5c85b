"""Programs that keep the protocol, and every way of breaking it."""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import sys
import time
from pathlib import Path as FilePath

import pytest

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever.conversation import Timeouts
from retrieval_eval.retriever.process import (
    MAX_FAILURES_IN_A_ROW,
    ExternalRetriever,
    child_environment,
    split_command,
)
from retrieval_eval.retriever.protocol import Leg, Path

ON_SEARCH = """
def answer(request):
    if request["type"] != "search":
        return plain(request)
    {body}
serve(answer)
"""


def searching(body: str) -> str:
    return ON_SEARCH.format(body=body)


def first_error(retriever: ExternalRetriever, make_rows, make_query, **query) -> str:
    """The message of the error that one persona of four rows ends in."""
    with retriever, pytest.raises(RetrieverError) as caught, retriever.open("q7", make_rows(4)) as persona:
        persona.search(make_query(**query))
    return str(caught.value)


def is_alive(pid: int) -> bool:
    """A zombie, which waits for its parent to look, is dead."""
    try:
        return FilePath(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_answers_come_back_in_the_order_of_the_program(program, start, make_rows, make_query):
    command = program(
        searching(
            'send(request, {"ids": list(rows)[::-1][:3], "scores": [2, 1.5, -1], '
            '"legs": {"semantic": list(rows), "bm25": [], "future": 1}})'
        )
    )
    rows = make_rows(4)
    ids = [row.row_id for row in rows]
    with start(command) as retriever:
        assert (retriever.name, list(retriever.paths)) == ("fake", list(Path))
        with retriever.open("q7", rows) as persona:
            answer = persona.search(make_query(limit=3))
    assert answer.ranked == tuple(ids[:0:-1])
    assert answer.scored == tuple(zip(ids[:0:-1], (2.0, 1.5, -1.0), strict=True))
    assert answer.legs == {Leg.SEMANTIC: tuple(ids), Leg.BM25: ()}
    assert retriever.starts == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param('print("loading model"); plain(request)', "not a JSON object", id="noise before the answer"),
        pytest.param('print("[1]", flush=True)', "not a JSON object", id="an array"),
        pytest.param(
            'sys.stdout.buffer.write(b"\\xff\\xfe\\n"); sys.stdout.flush()', "not a JSON object", id="not UTF-8"
        ),
        pytest.param('send(request, {"seq": 1, "ids": []})', "out of turn", id="seq of another request"),
        pytest.param('send(request, {"type": "insert", "inserted": 4})', "out of turn", id="type of another request"),
        pytest.param('send(request, {"ids": ["f" * 32]})', "search: ids is wrong", id="an unknown id"),
        pytest.param('send(request, {"ids": [list(rows)[0]] * 2})', "comes twice", id="a doubled id"),
        pytest.param('send(request, {"ids": list(rows)})', "got 4 ids, expected at most limit = 3", id="too many ids"),
        pytest.param('send(request, {"ids": list(rows)[:2]})', "too few ids: got 2, expected 3", id="too few ids"),
        pytest.param('send(request, {"ids": {}})', "expected an array of row ids", id="ids of the wrong type"),
        pytest.param("send(request, {})", "expected an array of row ids", id="no ids"),
        pytest.param('send(request, {"ids": [0, 1, 2]})', "expected an array of row ids", id="numbers as ids"),
        pytest.param(
            'send(request, {"ids": list(rows)[:3], "scores": [1, float("nan"), 0]})', "NaN is not JSON", id="NaN score"
        ),
        pytest.param(
            'print(json.dumps({"type": "search", "seq": request["seq"], "ids": list(rows)[:3], "scores": [0, 1, 2]})'
            '.replace("[0, 1, 2]", "[1e999, 1, 0]"), flush=True)',
            "finite numbers",
            id="infinite score",
        ),
        pytest.param('send(request, {"ids": list(rows)[:3], "scores": [1, 2, 0]})', "no rise", id="rising scores"),
        pytest.param('send(request, {"ids": list(rows)[:3], "scores": [1]})', "one for each id", id="scores missing"),
        pytest.param(
            'send(request, {"ids": list(rows)[:3], "legs": {"bm25": ["x"]}})', "legs.bm25", id="unknown id in a leg"
        ),
        pytest.param(
            'send(request, {"type": "error", "message": "no index"})', 'got "no index"', id="an error message"
        ),
        pytest.param('print("bad luck", file=sys.stderr); os._exit(3)', "exit code 3, last lines of stderr", id="exit"),
        pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV, nothing on stderr", id="a signal"),
        pytest.param("time.sleep(60)", "gave no answer within 2 s", id="a hang"),
        pytest.param('print("working", file=sys.stderr); time.sleep(60)', "'working'", id="last words of a hang"),
        pytest.param("os.close(1); time.sleep(60)", "closed its stdin or stdout but runs on", id="stdout closed"),
        pytest.param(
            'sys.stdout.write("x" * 17_000_000); sys.stdout.flush()', "too much for one answer", id="huge line"
        ),
    ],
)
def test_a_broken_answer_names_retriever_question_and_fault(program, start, make_rows, make_query, body, expected):
    message = first_error(start(program(searching(body))), make_rows, make_query)
    assert message.startswith("retriever 'fake', question 'q7': ")
    assert expected in message


@pytest.mark.parametrize(
    ("hello", "expected"),
    [
        pytest.param({"version": 2}, "hello: version is wrong: got 2", id="a version that was not offered"),
        pytest.param({"version": True}, "hello: version", id="a boolean version"),
        pytest.param({"name": ""}, "hello: name", id="no name"),
        pytest.param({"name": "a\n::error::b"}, "hello: name", id="a name of two lines"),
        pytest.param({"paths": {}}, "at least one of search_hybrid, search, search_bm25", id="no path"),
        pytest.param({"paths": {"search": {}}}, "hello: paths.search.needs", id="a path without needs"),
        pytest.param({"paths": {"search": {"needs": ["soul"]}}}, "hello: paths.search.needs", id="an unknown need"),
        pytest.param({"personas": 0}, "hello: personas", id="no persona at once"),
        pytest.param({"embedding": {"rows": "mine"}}, 'expected "given" or "own"', id="an unknown owner of vectors"),
    ],
)
def test_a_wrong_hello_stops_before_anything_is_measured(program, start, hello, expected):
    command = program(f"serve(lambda request: send(request, {{**reply_to(request), **{hello!r}}}))")
    with pytest.raises(RetrieverError) as caught, start(command):
        pass
    assert expected in str(caught.value)


def test_a_command_that_does_not_exist_is_named(start):
    with pytest.raises(RetrieverError, match=re.escape("retriever './no-such-program': cannot be started")):
        start(["./no-such-program"]).__enter__()


def test_the_next_persona_works_after_a_crash(program, start, make_rows, make_query):
    command = program(searching('os._exit(1) if list(rows)[1][0] == "0" and len(rows) == 4 else plain(request)'))
    results = []
    with start(command) as retriever:
        for number, count in enumerate([3, 4, 5]):
            try:
                with retriever.open(f"q{number}", make_rows(count)) as persona:
                    results.append(len(persona.search(make_query(limit=2)).ranked))
            except RetrieverError:
                results.append("failed")
    assert results == [2, "failed", 2]
    assert (retriever.starts, retriever.has_given_up) == (2, False)


def test_a_wrong_answer_costs_no_restart(program, start, make_rows, make_query):
    command = program(searching('send(request, {"ids": ["x"]}) if request["limit"] == 1 else plain(request)'))
    with start(command) as retriever:
        with retriever.open("a", make_rows(4)) as persona:
            with pytest.raises(RetrieverError):
                persona.search(make_query(limit=1))
            assert len(persona.search(make_query(limit=2)).ranked) == 2
        with retriever.open("b", make_rows(4)) as persona:
            assert len(persona.search(make_query(limit=2)).ranked) == 2
    assert retriever.starts == 1


def test_a_search_after_a_crash_says_what_happened_before(program, start, make_rows, make_query):
    with start(program(searching("os._exit(9)"))) as retriever, retriever.open("a", make_rows(4)) as persona:
        for expected in ("ended before it answered", "was ended after an earlier failure: got .*exit code 9"):
            with pytest.raises(RetrieverError, match=expected):
                persona.search(make_query())


def test_it_gives_up_after_three_failures_in_a_row(program, start, make_rows, make_query):
    messages = []
    with start(program(searching("os._exit(1)"))) as retriever:
        for number in range(5):
            with pytest.raises(RetrieverError) as caught, retriever.open(f"q{number}", make_rows(4)) as persona:
                persona.search(make_query(question_id=f"q{number}"))
            messages.append(str(caught.value))
    assert retriever.starts == MAX_FAILURES_IN_A_ROW == 3
    assert retriever.has_given_up
    assert "question 'q4': given up after 3 failures in a row: got retriever 'fake', question 'q2'" in messages[4]


def test_a_program_that_changes_its_hello_after_a_restart_is_refused(program, start, make_rows, make_query, tmp_path):
    command = program(
        f"""
        mark = {str(tmp_path / "started")!r}
        name = "second" if os.path.exists(mark) else "first"
        open(mark, "w").close()
        def answer(request):
            if request["type"] == "search":
                os._exit(1)
            send(request, {{**reply_to(request), **({{"name": name}} if request["type"] == "hello" else {{}})}})
        serve(answer)
        """
    )
    with start(command) as retriever:
        with pytest.raises(RetrieverError), retriever.open("a", make_rows(4)) as persona:
            persona.search(make_query())
        with pytest.raises(RetrieverError, match="something else of itself"), retriever.open("b", make_rows(4)):
            pass


@pytest.mark.parametrize("inserted", [3, 5, None, True, "4"])
def test_rows_that_vanish_on_insert_fail_the_persona(program, start, make_rows, make_query, inserted):
    command = program(
        f"""
        def answer(request):
            reply = {{"inserted": {inserted!r}}} if request["type"] == "insert" else reply_to(request)
            send(request, reply)
        serve(answer)
        """
    )
    assert "expected 4, the rows of the message" in first_error(start(command), make_rows, make_query)


def test_a_refused_insert_leaves_the_stream_in_step(program, start, make_rows, make_query):
    command = program(
        """
        refused = {"type": "error", "message": "disk full"}
        def answer(request):
            bad = request["type"] == "insert" and request["persona"] == "bad"
            send(request, {**reply_to(request), **(refused if bad else {})})
        serve(answer)
        """
    )
    with start(command) as retriever:
        refusal = "question 'bad': answered 'insert' with an error: got \"disk full\""
        with pytest.raises(RetrieverError, match=refusal), retriever.open("bad", make_rows(1000)):
            pass
        with retriever.open("good", make_rows(1000)) as persona:
            assert len(persona.search(make_query(limit=1000)).ranked) == 1000
    assert retriever.starts == 1


def test_a_refused_open_costs_its_question_and_no_restart(program, start, make_rows, make_query):
    command = program(
        """
        def answer(request):
            if request.get("persona") == "bad":
                return send({**request, "type": "error"}, {"message": "bad name"})
            plain(request)
        serve(answer)
        """
    )
    with start(command) as retriever:
        for _ in range(5):
            refused = pytest.raises(
                RetrieverError, match="question 'bad': answered 'open' with an error: got \"bad name"
            )
            with refused, retriever.open("bad", make_rows(4)):
                pass
        with retriever.open("good", make_rows(4)) as persona:
            assert len(persona.search(make_query()).ranked) == 3
    assert retriever.starts == 1


def test_a_failing_close_keeps_the_answers_and_restarts_the_program(program, start, make_rows, make_query):
    command = program(
        """
        def answer(request):
            send(request, {"type": "error", "message": "stuck"} if request["type"] == "close" else reply_to(request))
        serve(answer)
        """
    )
    with start(command) as retriever:
        for name in "ab":
            with retriever.open(name, make_rows(4)) as persona:
                assert len(persona.search(make_query()).ranked) == 3
    assert retriever.starts == 2


def test_an_unsolicited_line_is_noticed_at_the_next_answer(program, start, make_rows, make_query):
    command = program(searching('plain(request); print("cleanup done", flush=True); time.sleep(0.1)'))
    with start(command) as retriever, retriever.open("a", make_rows(4)) as persona:
        persona.search(make_query())
        with pytest.raises(RetrieverError, match="cleanup done"):
            persona.search(make_query())


def test_short_lists_of_a_path_that_declares_them_are_counted(program, start, make_rows, make_query):
    command = program(
        'PATHS["search_bm25"]["may_return_fewer"] = True\n' + searching('send(request, {"ids": list(rows)[:1]})')
    )
    with start(command) as retriever, retriever.open("a", make_rows(4)) as persona:
        persona.search(make_query(Path.SEARCH_BM25))
        persona.search(make_query(Path.SEARCH_BM25, limit=1))
        with pytest.raises(RetrieverError, match="too few ids"):
            persona.search(make_query(Path.SEARCH_HYBRID))
    assert retriever.short_answers == {Path.SEARCH_BM25: 1}


def test_a_haystack_smaller_than_the_limit_is_not_short(program, start, make_rows, make_query):
    with start(program("serve(plain)")) as retriever, retriever.open("a", make_rows(2)) as persona:
        assert len(persona.search(make_query(limit=10)).ranked) == 2
    assert not retriever.short_answers


def test_an_empty_haystack_is_searched(program, start, make_rows, make_query):
    with start(program("serve(plain)")) as retriever, retriever.open("a", make_rows(0)) as persona:
        assert persona.search(make_query()).ranked == ()


def test_a_query_that_lacks_what_the_path_needs_is_not_sent(program, start, make_rows, make_query):
    command = program('PATHS["search"] = {"needs": ["vector"]}\ndel PATHS["search_bm25"]\nserve(plain)')
    with start(command) as retriever, retriever.open("a", make_rows(4)) as persona:
        without_text = make_query(Path.SEARCH_HYBRID)
        without_text = type(without_text)("q7", Path.SEARCH_HYBRID, 3, None, without_text.vector)
        with pytest.raises(RetrieverError, match="path search_hybrid needs a text"):
            persona.search(without_text)
        with pytest.raises(RetrieverError, match="does not offer the path search_bm25"):
            persona.search(make_query(Path.SEARCH_BM25))
    assert retriever.starts == 1


def test_vectors_travel_exactly_and_only_where_they_are_wanted(program, start, make_rows, tmp_path):
    seen = tmp_path / "seen.json"
    body = """
    def answer(request):
        reply = reply_to(request)
        if request["type"] == "hello":
            reply["embedding"] = {{"rows": "{rows}"}}
        if request["type"] == "insert":
            json.dump(request["rows"], open({seen!r}, "w"))
        send(request, reply)
    serve(answer)
    """
    rows = make_rows(2)
    with start(program(body.format(rows="given", seen=str(seen)))) as retriever, retriever.open("a", rows):
        pass
    given = json.loads(seen.read_text())
    assert [struct.unpack("<3f", base64.b64decode(row["vector"])) for row in given] == [(0, 1, 0.5), (1, 1, 0.5)]
    assert [row["created_at"] for row in given] == ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"]
    with start(program(body.format(rows="own", seen=str(seen)))) as retriever, retriever.open("a", rows):
        pass
    assert [sorted(row) for row in json.loads(seen.read_text())] == [["created_at", "id", "text"]] * 2
    assert retriever.facts(10)["row_vectors"] == "made by the retriever"


def test_more_personas_than_declared_are_refused(program, start, make_rows):
    with start(program("serve(plain)")) as retriever, retriever.open("a", make_rows(1)):
        too_many = pytest.raises(RetrieverError, match="too many personas open: expected at most 1")
        with too_many, retriever.open("b", make_rows(1)):
            pass


def test_large_rows_pass_a_program_that_reads_slowly_and_talks_a_lot(program, start, make_rows, make_query):
    command = program(
        """
        def answer(request):
            time.sleep(0.01)
            sys.stderr.write("x" * 200_000 + "\\n")
            plain(request)
        serve(answer)
        """
    )
    rows = make_rows(40, text="y" * 300_000)
    with start(command, log=lambda line: None) as retriever, retriever.open("a", rows) as persona:
        assert len(persona.search(make_query(limit=40)).ranked) == 40


def test_a_program_that_does_not_read_is_timed_out(program, start, make_rows, make_query):
    command = program(
        """
        def answer(request):
            plain(request)
            if request["type"] == "open":
                time.sleep(60)
        serve(answer)
        """
    )
    rows = make_rows(10, text="y" * 300_000)
    late = pytest.raises(RetrieverError, match="did not read its input within 1 s")
    with start(command, timeouts=Timeouts(insert_s=1.0)) as retriever, late, retriever.open("a", rows):
        pass


def test_a_program_that_ends_while_rows_are_written_to_it_is_noticed_at_once(program, start, make_rows):
    command = program(
        """
        def answer(request):
            plain(request)
            if request["type"] == "open":
                os._exit(5)
        serve(answer)
        """
    )
    gone = pytest.raises(RetrieverError, match="question 'a': ended before it answered: got exit code 5")
    with start(command) as retriever, gone, retriever.open("a", make_rows(40, text="y" * 300_000)):
        pass


def test_a_program_that_floods_stdout_instead_of_reading_is_stopped(program, start, make_rows):
    command = program(
        """
        def answer(request):
            plain(request)
            while request["type"] == "open":
                print("y" * 100_000)
        serve(answer)
        """
    )
    stopped = pytest.raises(RetrieverError, match=r"question 'a': .*(too much for one answer|not a JSON object)")
    with start(command) as retriever, stopped, retriever.open("a", make_rows(10, text="y" * 300_000)):
        pass


def test_stderr_goes_to_the_log_line_by_line(program, start):
    lines: list[str] = []
    command = program('sys.stderr.write("one\\ntwo ü\\r\\nno end"); sys.stderr.flush(); serve(plain)')
    with start(command, log=lines.append):
        pass
    assert lines == ["one", "two ü", "no end"]


def test_a_program_that_ignores_sigterm_and_bye_is_killed_with_its_children(program, start, tmp_path):
    pids = tmp_path / "pids"
    command = program(
        f"""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        other = subprocess.Popen([sys.executable, "-c", "import signal, time; "
                                  "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
        open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{other.pid}}")
        serve(plain)
        time.sleep(600)
        """
    )
    lines: list[str] = []
    with start(command, log=lines.append):
        pass
    both = [int(pid) for pid in pids.read_text().split()]
    deadline = time.monotonic() + 5
    while any(map(is_alive, both)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [is_alive(pid) for pid in both] == [False, False]
    assert lines == ["did not end within 0.5 s of SIGTERM; killed"]


ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="children that moved away are found in /proc")


@pytest.mark.parametrize(
    "moved",
    ["", pytest.param("process_group=0", marks=ONLY_LINUX), pytest.param("start_new_session=True", marks=ONLY_LINUX)],
)
def test_children_of_a_program_that_left_politely_are_ended_too(program, start, tmp_path, moved):
    pid_file = tmp_path / "pid"
    command = program(
        f"""
        other = subprocess.Popen(["sleep", "600"], {moved})
        open({str(pid_file)!r}, "w").write(str(other.pid))
        serve(plain)
        """
    )
    with start(command):
        pass
    deadline = time.monotonic() + 5
    while is_alive(int(pid_file.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(int(pid_file.read_text()))


def test_an_interrupt_ends_the_program_at_once(program, start, make_rows, make_query, tmp_path):
    pid_file = tmp_path / "pid"
    command = program(f'open({str(pid_file)!r}, "w").write(str(os.getpid()))\nserve(plain)\ntime.sleep(600)')
    with pytest.raises(KeyboardInterrupt), start(command) as retriever, retriever.open("a", make_rows(4)):
        raise KeyboardInterrupt
    assert not is_alive(int(pid_file.read_text()))


def test_an_error_of_the_reader_of_rows_passes_through_and_the_stream_stays_in_step(
    program, start, make_rows, make_query
):
    def damaged():
        yield from make_rows(200)
        raise OSError("damaged cache")

    with start(program("serve(plain)")) as retriever:
        with pytest.raises(OSError, match="damaged cache"), retriever.open("a", damaged()):
            pass
        with retriever.open("b", make_rows(4)) as persona:
            assert len(persona.search(make_query()).ranked) == 3
    assert retriever.starts == 1


def test_the_temporary_folder_of_the_program_goes_with_it(program, start, tmp_path):
    told = tmp_path / "told"
    command = program(f'open({str(told)!r}, "w").write(os.environ["TMPDIR"])\nserve(plain)')
    with start(command):
        folder = FilePath(told.read_text())
        assert folder.is_dir()
    assert not folder.exists()


def test_secrets_and_runner_files_do_not_reach_the_program():
    environ = {
        "PATH": "/bin",
        "HF_HOME": "/models",
        "GITHUB_REPOSITORY": "a/b",
        "INPUT_GITHUB-TOKEN": "secret",
        "GITHUB_TOKEN": "secret",
        "GH_TOKEN": "secret",
        "ACTIONS_RUNTIME_TOKEN": "secret",
        "GITHUB_OUTPUT": "/github/file_commands/out",
        "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
    }
    assert child_environment(environ) == {"PATH": "/bin", "HF_HOME": "/models", "GITHUB_REPOSITORY": "a/b"}


def test_a_spec_is_split_like_a_shell_does_but_runs_in_none():
    assert split_command("node 'my store.mjs' --x=\"$HOME\"") == ("node", "my store.mjs", "--x=$HOME")


@pytest.mark.parametrize("spec", ["", "   ", "''", "node 'open"])
def test_a_spec_without_a_program_is_refused(spec):
    with pytest.raises(RetrieverError, match="command line"):
        split_command(spec)


def test_an_empty_command_is_refused():
    with pytest.raises(RetrieverError, match="command line is empty"):
        ExternalRetriever([], env=os.environ)


def test_a_time_out_of_zero_is_refused():
    with pytest.raises(RetrieverError, match="time-out search_s is not above 0: got 0"):
        Timeouts(search_s=0)


def test_control_characters_of_the_program_are_escaped_in_messages(program, start, make_rows, make_query):
    body = 'print("\\x1b[31m::error::gotcha", flush=True)'
    message = first_error(start(program(searching(body))), make_rows, make_query)
    assert "\x1b" not in message
    assert r"\x1b[31m::error::gotcha" in message


def test_a_program_that_is_gone_before_the_first_message_is_named_at_once() -> None:
    started = time.monotonic()
    for _ in range(20):  # the pipe breaks under the write only now and then
        with pytest.raises(RetrieverError, match="ended before it answered"):
            ExternalRetriever(["true"], env={"PATH": os.environ["PATH"]}).__enter__()
    assert time.monotonic() - started < 60
