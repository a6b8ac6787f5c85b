"""What `--retriever` names: a built-in store, or a command line behind the protocol."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval_eval.errors import RetrieverError
from retrieval_eval.retriever.builtin import Builtin
from retrieval_eval.retriever.process import split_command

_PREFIX = "builtin:"


@dataclass(frozen=True, slots=True)
class RetrieverSpec:
    """Exactly one of `builtin` and `command` is set."""

    text: str
    builtin: Builtin | None = None
    command: tuple[str, ...] = ()


def parse_spec(text: str) -> RetrieverSpec:
    """Read a retriever spec. Raises `RetrieverError` for an unknown built-in or a command that cannot be split."""
    stripped = text.strip()
    if not stripped.startswith(_PREFIX):
        return RetrieverSpec(stripped, command=split_command(stripped))
    try:
        return RetrieverSpec(stripped, builtin=Builtin(stripped.removeprefix(_PREFIX)))
    except ValueError:
        names = ", ".join(_PREFIX + name for name in Builtin)
        raise RetrieverError(
            "no such built-in retriever", got=stripped, expected=f"{names}, or a command line"
        ) from None
