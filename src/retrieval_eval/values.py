"""From the strings that people type, as options or action inputs, to values. Says what is wrong, never guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from retrieval_eval.model import Lane
from retrieval_eval.store.limits import MAX_SEARCH_LIMIT

_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def boolean(text: str) -> bool:
    """YAML 1.2's core schema, as GitHub reads booleans; anything else is a ValueError."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f"got {text!r}, expected true or false")


def ks(text: str) -> tuple[int, ...]:
    """Cut-offs in ascending order, each once: `1,5,10`. Blanks around them are allowed."""
    parts = [part.strip(" \t") for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,9}", part, re.ASCII) for part in parts):
        raise ValueError(f"got {text!r}, expected whole numbers separated by commas, such as 1,5,10")
    found = tuple(sorted({int(part) for part in parts}))
    if found[0] < 1 or found[-1] > MAX_SEARCH_LIMIT:
        raise ValueError(f"got {text!r}, expected numbers from 1 to {MAX_SEARCH_LIMIT}")
    return found


def lanes(text: str) -> tuple[Lane, ...]:
    """`both`, or the name of one lane; the model-dependent lane, the headline, comes first."""
    if text == "both":
        return tuple(Lane)
    return (Lane(one_of(text, ["both", *Lane])),)


def one_of(text: str, allowed: Sequence[str]) -> str:
    """`text`, if it is one of `allowed`."""
    if text in allowed:
        return text
    raise ValueError(f"got {text!r}, expected one of {', '.join(allowed)}")


def whole_number(text: str) -> int:
    """A number from 1 to 2,147,483,647, in plain digits."""
    if re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) and 1 <= int(text) < 2**31:
        return int(text)
    raise ValueError(f"got {text!r}, expected a whole number from 1 on")


def sha256_digest(text: str) -> str:
    """A SHA-256 digest, in lower case."""
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        return text.lower()
    raise ValueError(f"got {text!r}, expected a SHA-256 digest: 64 hex digits")


def relative_path(text: str) -> str:
    """A path below the workspace, as it was given; nothing in it is expanded."""
    parts = PurePosixPath(text).parts
    if not parts or text.startswith(("/", "~")) or ".." in parts or not text.isprintable():
        raise ValueError(f"got {text!r}, expected a relative path below the workspace")
    return text
