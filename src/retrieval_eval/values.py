"""From the strings that people type, as options or action inputs, to values. Says what is wrong, never guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
