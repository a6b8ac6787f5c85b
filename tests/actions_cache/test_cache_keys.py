from __future__ import annotations

import pytest

from retrieval_eval.github.actions_cache import cache_keys
from retrieval_eval.github.actions_cache.keys import is_match, is_same_key, key_problem, path_problem, version_of


def test_version_is_that_of_the_official_client() -> None:
    assert version_of(".embcache") == "efe98aab9b1da3f215381d630c4e864d711cf755a4e429df90588851891e9a08"


def test_version_hashes_the_raw_string() -> None:
    assert len({version_of(path) for path in (".embcache", ".embcache/", "./.embcache")}) == 3


def test_keys_end_in_a_delimiter_and_nest() -> None:
    key, restore_keys = cache_keys("retrieval-eval-v1", "abc", "def", "77.1")
    assert key == "retrieval-eval-v1-abc-def-77.1-"
    assert restore_keys == ("retrieval-eval-v1-abc-def-", "retrieval-eval-v1-abc-")


def test_no_prefix_of_one_model_is_a_prefix_of_another() -> None:
    _, restore_keys = cache_keys("p", "abc", "def", "1")
    other, _ = cache_keys("p", "abcd", "def", "1")
    assert not is_match(restore_keys, other)


def test_one_run_is_no_prefix_of_another() -> None:
    first, _ = cache_keys("p", "abc", "def", "1")
    twelfth, _ = cache_keys("p", "abc", "def", "12")
    assert not twelfth.startswith(first)


@pytest.mark.parametrize("part", ["", "a-b"])
def test_a_fingerprint_with_a_delimiter_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="free of"):
        cache_keys("p", part, "def", "1")


@pytest.mark.parametrize("keys", [["k"], ["k" * 512], ["k"] * 10, ["with space é"]])
def test_keys_that_the_service_takes(keys: list[str]) -> None:
    assert key_problem(keys) is None


@pytest.mark.parametrize("keys", [[""], ["k" * 513], ["k"] * 11, ["a,b"], ["a\nb"], ["good", "a,b"]])
def test_keys_that_the_service_would_refuse(keys: list[str]) -> None:
    assert key_problem(keys)


@pytest.mark.parametrize("path", [".embcache", "a/b", "./a", "a/"])
def test_paths_below_the_workspace(path: str) -> None:
    assert path_problem(path) is None


@pytest.mark.parametrize("path", ["", ".", "/a", "../a", "a/../b", "~/a", "!a", "a*", "a\n", " a", "a\nb"])
def test_paths_that_cannot_be_cached(path: str) -> None:
    assert path_problem(path)


def test_the_exact_key_is_known_in_lower_case_too() -> None:
    assert is_same_key("Key-A-", "key-a-")
    assert not is_same_key("key-a-", "key-a-b-")
