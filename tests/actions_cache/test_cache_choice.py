from __future__ import annotations

import pytest

from retrieval_eval.github.actions_cache import Api, ServiceEnv

HOSTED = {"ACTIONS_RESULTS_URL": "https://results.example/", "ACTIONS_RUNTIME_TOKEN": "s3cret"}
V1 = {"ACTIONS_CACHE_URL": "https://v1.example/t0ken/"}


@pytest.mark.parametrize(
    ("env", "override", "api"),
    [
        (HOSTED, "", Api.V2),
        (HOSTED, "v1", Api.V1),
        (HOSTED | V1, "off", Api.OFF),
        (HOSTED, "v3", Api.OFF),
        (HOSTED | {"ACTIONS_CACHE_SERVICE_V2": "on", "ACT": "true"}, "", Api.V2),
        (HOSTED | V1 | {"ACT": "true"}, "", Api.V1),
        (HOSTED | V1 | {"GITHUB_SERVER_URL": "https://ghes.example"}, "", Api.V1),
        (HOSTED | {"GITHUB_SERVER_URL": "https://ghes.example"}, "", Api.V1),
        (HOSTED | {"GITHUB_SERVER_URL": "https://GitHub.com"}, "", Api.V2),
        (HOSTED | {"GITHUB_SERVER_URL": "https://sub.ghe.com"}, "", Api.V2),
        (HOSTED | {"GITHUB_SERVER_URL": "https://notghe.com"}, "", Api.V1),
        (V1 | {"ACT": "true"}, "", Api.V1),
        (V1, "", Api.OFF),
        ({"ACT": "true"}, "", Api.OFF),
        ({}, "", Api.OFF),
        ({"ACTIONS_RESULTS_URL": "https://results.example/"}, "", Api.OFF),
    ],
)
def test_choice(env: dict[str, str], override: str, api: Api) -> None:
    assert ServiceEnv.from_env(env, override).api is api


def test_v2_falls_back_to_v1_only_where_that_is_there() -> None:
    assert ServiceEnv.from_env(HOSTED | V1).fallback_url == V1["ACTIONS_CACHE_URL"]
    assert ServiceEnv.from_env(HOSTED).fallback_url == ""


def test_secrets_are_not_in_the_repr() -> None:
    shown = repr(ServiceEnv.from_env(HOSTED | V1)) + repr(ServiceEnv.from_env(V1 | {"ACT": "true"}))
    assert "s3cret" not in shown
    assert "t0ken" not in shown


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [
        ("read", (True, False)),
        ("write", (True, True)),
        ("write-only", (False, True)),
        ("none", (False, False)),
        ("", (True, True)),
        ("someday", (True, True)),
    ],
)
def test_cache_mode_is_honoured(mode: str, allowed: tuple[bool, bool]) -> None:
    chosen = ServiceEnv.from_env(HOSTED | {"ACTIONS_CACHE_MODE": mode})
    assert (chosen.can_read, chosen.can_write) == allowed


@pytest.mark.parametrize("odd", ["", "a.b", "a.!!!.c", "a.e30.c", "a.eyJhYyI6ICIxIn0.c", "a.eyJhYyI6ICJbMV0ifQ.c"])
def test_a_token_that_cannot_be_read_forbids_nothing(odd: str) -> None:
    assert ServiceEnv.from_env(V1 | {"ACT": "true", "ACTIONS_RUNTIME_TOKEN": odd}).can_write
