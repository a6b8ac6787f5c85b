"""What `--retriever` names: a built-in store, or a command line behind the protocol."""

from __future__ import annotations

import shutil
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

    def check_program(self) -> None:
        """Raises `RetrieverError` where the command names nothing to execute; cheap, to be asked before any work."""
        if self.command and shutil.which(self.command[0]) is None:
            raise RetrieverError(
                "cannot be started",
                where=f"retriever {self.command[0]!r}",
                got="no such program, or it is not executable",
                hint="give the path of a program that can be executed here, and its arguments",
            )


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
