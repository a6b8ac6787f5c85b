"""Which cache service this process can talk to, read from the runner's environment once. Pure.

`ACTIONS_CACHE_SERVICE_V2` is never set for container actions, so the official rule ("v2 if it is set") does not do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit


class Api(StrEnum):
    """A generation of the service; also the values of the override."""

    V2 = "v2"
    V1 = "v1"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ServiceEnv:
    """The service and what may be done with it. URLs count as secrets: act puts its token into them.

    `fallback_url` is a v1 service to use where v2 turns out not to be there; `reason` says in one sentence why this was
    chosen, for the log, or for the warning where `api` is `off`.
    """

    api: Api
    reason: str
    url: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    fallback_url: str = field(default="", repr=False)
    can_read: bool = True
    can_write: bool = True

    @classmethod
    def from_env(cls, env: Mapping[str, str], override: str = "") -> ServiceEnv:
        """Choose. `override` is `v1`, `v2`, `off` or empty; it wins over what the environment suggests.

        `ACTIONS_CACHE_MODE` (read, write, write-only, none; anything else allows both) limits reading and writing, and
        so does a token that says that it may write nowhere.
        """
        results, token, v1 = (_read(env, name) for name in _VARIABLES)
        mode = _read(env, "ACTIONS_CACHE_MODE").lower()
        can_read = mode not in {"write-only", "none"}
        can_write = mode not in {"read", "none"} and not _says_read_only(token)
        api, reason = _choose(env, override.strip().lower())
        if api is Api.V2 and not (results and token):
            api, reason = Api.OFF, "ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN are not both set"
        if api is Api.V1 and not (v1 or results):
            api, reason = Api.OFF, "ACTIONS_CACHE_URL is not set"
        if api is Api.OFF:
            return cls(api, f"no Actions cache here: {reason}", can_read=False, can_write=False)
        url = results if api is Api.V2 else v1 or results
        fallback = v1 if api is Api.V2 and not override else ""
        return cls(api, f"cache service {api}: {reason}", url, token, fallback, can_read, can_write)


_VARIABLES = ("ACTIONS_RESULTS_URL", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_CACHE_URL")


def _choose(env: Mapping[str, str], override: str) -> tuple[Api, str]:
    if override:
        if override in set(Api):
            return Api(override), "it was asked for"
        return Api.OFF, f"the service was set to {override[:20]!a}, expected v1, v2 or off"
    if _read(env, "ACTIONS_CACHE_SERVICE_V2") and _read(env, "ACTIONS_RESULTS_URL"):
        return Api.V2, "ACTIONS_CACHE_SERVICE_V2 is set"
    if _read(env, "ACT").lower() == "true":
        return Api.V1, "this is act"
    if _is_own_server(_read(env, "GITHUB_SERVER_URL")):
        return Api.V1, "the server is not github.com or ghe.com"
    return Api.V2, "the server is github.com or ghe.com"


def _read(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _is_own_server(server_url: str) -> bool:
    """The official `isGhes`: true for GitHub Enterprise Server, Gitea and Forgejo."""
    try:
        host = (urlsplit(server_url or "https://github.com").hostname or "").upper()
    except ValueError:
        return True
    return host != "GITHUB.COM" and not host.endswith((".GHE.COM", ".LOCALHOST"))


def _says_read_only(token: str) -> bool:
    """Whether the token's `ac` claim lists scopes and none may be written (bit 2).

    Undocumented, so it only saves packing an archive that would be refused; a token that cannot be read says nothing.
    """
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        scopes = json.loads(claims["ac"])
        return bool(scopes) and not any(int(scope["Permission"]) & 2 for scope in scopes)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return False
