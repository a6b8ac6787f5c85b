from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError

import pytest

from retrieval_eval.action.settings import INPUTS, TOKEN, Mode, SaveCache, Settings, read_settings
from retrieval_eval.errors import SettingsError
from retrieval_eval.github.runner import read_environment
from retrieval_eval.model import Lane

Read = Callable[..., Settings]


def read(**inputs: str) -> Settings:
    return read_settings(
        {"INPUT_DATASET": "sample"} | {f"INPUT_{name.replace('_', '-').upper()}": text for name, text in inputs.items()}
    )


@pytest.mark.parametrize("text", ["true", "True", "TRUE", " true "])
def test_true_in_yamls_own_spellings_blanks_dropped(text: str) -> None:
    assert read(summary=text).summary is True


@pytest.mark.parametrize("text", ["false", "False", "FALSE", "false\n"])
def test_false_in_yamls_own_spellings_blanks_dropped(text: str) -> None:
    assert read(summary=text).summary is False


@pytest.mark.parametrize("text", ['"true"', "yes", "on", "1", "no", "0", "null", "${{ inputs.x }}", "tru", "tRue"])
def test_anything_else_is_no_boolean_and_the_error_names_input_and_value(text: str) -> None:
    with pytest.raises(SettingsError, match="input 'summary'") as caught:
        read(summary=text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1,5,10", (1, 5, 10)), (" 1, 5 ,10 ", (1, 5, 10)), ("10,5,1", (1, 5, 10)), ("5,5", (5,)), ("5", (5,))],
)
def test_cut_offs_are_sorted_and_unique(text: str, expected: tuple[int, ...]) -> None:
    assert read(k=text).k == expected


@pytest.mark.parametrize(
    "text", ["0", "-1", "5.0", "abc", "1;5", "5,,10", "1e3", "\uff11\uff10", "1\n5\n10", "9" * 20, "nan", ","]
)
def test_odd_cut_offs_are_refused_by_name(text: str) -> None:
    with pytest.raises(SettingsError, match="input 'k': got "):
        read(k=text)


@pytest.mark.parametrize("given", [dict.fromkeys((each.name for each in INPUTS), ""), {}])
def test_empty_and_missing_inputs_mean_their_defaults(given: dict[str, str]) -> None:
    environ = {f"INPUT_{name.upper()}": text for name, text in given.items()} | {"INPUT_DATASET": "sample"}
    settings = read_settings(environ)
    assert (settings.mode, settings.k, settings.cache, settings.save_cache) == (
        Mode.MEASURE,
        (1, 5, 10),
        True,
        SaveCache.AUTO,
    )
    assert settings.lane == (Lane.MODEL_DEPENDENT, Lane.MODEL_FREE)
    assert settings.pr_number is settings.compare_retriever is settings.report_id is None


@pytest.mark.parametrize("text", ["", "   "])
def test_a_dataset_is_required_to_measure(text: str) -> None:
    with pytest.raises(SettingsError, match="input 'dataset': required"):
        read(dataset=text)
    assert read(dataset=text, mode="publish").dataset is None


@pytest.mark.parametrize("text", ["data/l me.json", 'data/it\'s "x".json', "data/*.json", "~/x.json", "-x.json"])
def test_a_dataset_path_is_taken_as_it_is(text: str) -> None:
    assert read(dataset=f" {text}\n").dataset == text


@pytest.mark.parametrize("text", ["/tmp/x", "~/x", "../x", "a/../../x", ".", "a\0b"])
def test_what_is_written_stays_below_the_workspace(text: str) -> None:
    for name in ("cache_path", "report_path", "comment_folder"):
        with pytest.raises(SettingsError, match="relative path below the workspace"):
            read(**{name: text})


@pytest.mark.parametrize("text", ["0", "-7", "7.0", "#7", "9" * 12])
def test_odd_pull_request_numbers_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="input 'pr-number'"):
        read(pr_number=text)


@pytest.mark.parametrize("text", ["d6f21ea9", "g" * 64, "a" * 63])
def test_odd_digests_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"input 'dataset-sha256'.*64 hex digits"):
        read(dataset_sha256=text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mode", "gate"),
        ("lane", "all"),
        ("backend", "torch"),
        ("comment", "never"),
        ("save_cache", "yes"),
        ("retriever", "builtin:magic"),
        ("compare_retriever", "'unbalanced"),
        ("cache_key_prefix", "a,b"),
    ],
)
def test_a_choice_outside_its_list_is_named(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"input '{name.replace('_', '-')}': .*expected"):
        read(**{name: text})


def test_two_bases_to_compare_with_are_one_too_many() -> None:
    with pytest.raises(SettingsError, match="got both"):
        read(compare_retriever="builtin:bm25", compare_report="base.json")


def test_all_errors_come_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"INPUT_K": "5;10", "INPUT_CACHE": "yes", "INPUT_LANE": "x"})
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "input 'lane'",
        "input 'k'",
        "input 'cache'",
        "input 'dataset'",
    ]


def test_the_token_is_in_no_repr() -> None:
    environ = {TOKEN.variable: "ghs_secret", "INPUT_DATASET": "sample"}
    assert "ghs_secret" not in repr(read_settings(environ)) + repr(read_environment(environ))
    assert read_environment(environ).token == "ghs_secret"


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        read().k = (1,)  # type: ignore[misc]  # that is the test


def test_a_dashed_input_keeps_its_dashes_in_the_variable() -> None:
    assert {each.name: each.variable for each in INPUTS}["cache-key-prefix"] == "INPUT_CACHE-KEY-PREFIX"


def test_no_input_turns_a_number_into_a_verdict() -> None:
    names = " ".join(each.name for each in INPUTS)
    assert not [word for word in ("threshold", "fail", "min", "gate", "baseline", "require") if word in names]
