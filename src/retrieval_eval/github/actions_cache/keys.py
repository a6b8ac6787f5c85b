"""Names of cache entries: keys, the version hash and the path that goes into it. Pure.

Rules of the official client (`@actions/cache` 6.3.0), so that entries interoperate with `actions/cache`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePosixPath

MAX_KEYS = 10
MAX_KEY_CHARS = 512
DELIMITER = "-"


def cache_keys(prefix: str, fingerprint: str, dataset_digest: str, run_unique: str) -> tuple[str, tuple[str, ...]]:
    """The key to save under, and the prefixes to restore by, nearest first.

    Entries are immutable and the service matches by prefix, so every part ends in a delimiter: the prefix of one model
    is never that of another, and one run's key never that of another run. `run_unique` keeps a key that an aborted
    upload left reserved from blocking later runs. Raises `ValueError` where fingerprint or digest hold a delimiter.
    """
    for part in (fingerprint, dataset_digest):
        if not part or DELIMITER in part:
            raise ValueError(f"a part of a cache key must be non-empty and free of {DELIMITER!r}: got {part!r}")
    model = f"{prefix.rstrip(DELIMITER)}{DELIMITER}{fingerprint}{DELIMITER}"
    dataset = f"{model}{dataset_digest}{DELIMITER}"
    return f"{dataset}{run_unique}{DELIMITER}", (dataset, model)


def key_problem(keys: Sequence[str]) -> str | None:
    """Why the service would refuse these keys (primary first), in one sentence; None where it would not."""
    if len(keys) > MAX_KEYS:
        return f"{len(keys)} cache keys were given, the service takes {MAX_KEYS}"
    for key in keys:
        if not key:
            return "a cache key is empty"
        if len(key) > MAX_KEY_CHARS:
            return f"a cache key has {len(key)} characters, the service takes {MAX_KEY_CHARS}"
        if "," in key or not key.isprintable():
            return f"the cache key {key[:80]!a} holds a comma or a control character"
    return None


def path_problem(path: str) -> str | None:
    """Why `path` cannot be cached from here, in one sentence; None where it can.

    Only one relative path below the workspace has the same string, and so the same version, on hosts and in containers.
    """
    parts = PurePosixPath(path).parts
    if path != path.strip() or not parts or ".." in parts or path.startswith(("/", "~", "!", "#")):
        return f"the cache path {path[:80]!a} is not a relative path below the workspace"
    if not path.isprintable() or any(sign in path for sign in "*?[]\\"):
        return f"the cache path {path[:80]!a} holds a wildcard or a control character"
    return None


def version_of(path: str) -> str:
    """The version under which `actions/cache` files the same path: 64 hex digits.

    It hashes the raw string (`a` is not `a/`) and the name of the compression that it uses wherever `zstd` is there.
    """
    return hashlib.sha256("|".join((path, "zstd-without-long", "1.0")).encode()).hexdigest()


def is_same_key(key: str, matched: str) -> bool:
    """Whether an entry was found under the key itself; upper and lower case count as equal, as in `actions/cache`."""
    return key.lower() == matched.lower()


def is_match(keys: Sequence[str], matched: str) -> bool:
    """Whether the service may answer `matched` for `keys`: each is a prefix to it, the primary one as well."""
    return any(matched.lower().startswith(key.lower()) for key in keys)
