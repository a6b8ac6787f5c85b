"""What people type becomes values, or one clear line and exit 2."""

from __future__ import annotations

import pytest

from retrieval_eval import values
from retrieval_eval.cli import main
from retrieval_eval.embedding.backends import Backend
from retrieval_eval.model import Lane


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,5,10", (1, 5, 10)),
        (" 1, 5 ,10 ", (1, 5, 10)),
        ("10,5,1", (1, 5, 10)),
        ("5,5", (5,)),
        ("5", (5,)),
        ("007", (7,)),
        ("\t3", (3,)),
        ("10000", (10_000,)),
    ],
)
def test_good_cut_offs(text: str, expected: tuple[int, ...]) -> None:
    assert values.ks(text) == expected


BAD_KS = [
    "",
    " ",
    ",",
    "0",
    "-1",
    "5.0",
    "abc",
    "1;5",
    "5,,10",
    "1e3",
    "\uff11\uff10",
    "1\n5\n10",
    "5\n",
    "9" * 20,
    "10001",
    "1 0",
]


@pytest.mark.parametrize("text", BAD_KS)
def test_bad_cut_offs_are_shown_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"^got .*, expected (whole )?numbers") as refused:
        values.ks(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("both", (Lane.MODEL_DEPENDENT, Lane.MODEL_FREE)),
        ("model-free", (Lane.MODEL_FREE,)),
        ("model-dependent", (Lane.MODEL_DEPENDENT,)),
    ],
)
def test_lanes(text: str, expected: tuple[Lane, ...]) -> None:
    assert values.lanes(text) == expected


@pytest.mark.parametrize("text", ["", "Both", "model-free ", "all", "model_free", "both,model-free"])
def test_unknown_lanes(text: str) -> None:
    with pytest.raises(ValueError, match="expected one of both, model-dependent, model-free"):
        values.lanes(text)


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_true(text: str) -> None:
    assert values.boolean(text) is True


@pytest.mark.parametrize("text", ["false", "False", "FALSE"])
def test_false(text: str) -> None:
    assert values.boolean(text) is False


@pytest.mark.parametrize("text", ["", " true ", '"true"', "yes", "on", "1", "no", "0", "null", "tRUE"])
def test_no_other_word_is_a_boolean(text: str) -> None:
    with pytest.raises(ValueError, match="expected true or false"):
        values.boolean(text)


REFUSED = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "unknown command": (["measure"], "invalid choice: 'measure'"),
    "no cache": (["run"], "the following arguments are required: --cache"),
    "a data name that starts with a dash": (["prep", "-x.json", "--cache", "c"], "arguments"),
    "an unknown lane": (["run", "--cache", "c", "--lane", "all"], "argument --lane: got 'all', expected one of both"),
    "a bad k": (["run", "--cache", "c", "--k", "1;5"], "argument --k: got '1;5', expected whole numbers"),
    "a negative k": (["run", "--cache", "c", "--k", "-1"], "argument --k: got '-1', expected whole numbers"),
    "a threshold, which there never will be": (
        ["run", "--cache", "c", "--fail-under", "0.8"],
        "unrecognized arguments",
    ),
    "an unknown backend": (
        ["prep", "d", "--cache", "c", "--backend", "gpu"],
        "argument --backend: invalid choice: 'gpu'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_exit_2_and_say_which(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = REFUSED[case]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_the_backends_on_offer_are_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["prep", "--help"])
    assert f"--backend {{{','.join(Backend)}}}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_and_version_exit_0(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert "retrieval-eval" in capsys.readouterr().out
