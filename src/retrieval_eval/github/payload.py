"""Reading of GitHub's JSON, whose shape is never taken for granted.

Owns the walk into nested objects. Knows no event by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def value_at(payload: object, *path: str) -> object:
    """Return what stands at `path`, or None where a step is missing or is no object."""
    for key in path:
        if not isinstance(payload, Mapping):
            return None
        payload = payload.get(key)
    return payload


def text_at(payload: object, *path: str) -> str:
    """Return the text at `path`, or "" where there is none."""
    value = value_at(payload, *path)
    return value if isinstance(value, str) else ""


def number_at(payload: object, *path: str) -> int:
    """Return the positive integer at `path`, or 0 where there is none (true is no number)."""
    value = value_at(payload, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def list_at(payload: object, *path: str) -> Sequence[object]:
    """Return the list at `path`, or an empty one."""
    value = value_at(payload, *path)
    return value if isinstance(value, list) else ()
