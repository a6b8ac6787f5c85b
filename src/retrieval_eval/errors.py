"""Every error that a user can meet, in one tree.

    RetrievalEvalError
    ├── InputError            something handed to us is wrong: exit code 2
    │   ├── SettingsError     options or action inputs, all of them at once
    │   ├── DatasetError      the data file
    │   ├── ModelError        the embedding model: missing, incomplete, of another shape
    │   ├── CacheError        the embedding cache: empty, cut, damaged, foreign, locked, of other settings
    │   ├── RetrieverError    the measured program
    │   └── ReportError       a report or ranked-list file given to render, compare or score
    └── (anything else that escapes is our own bug: exit code 1)

Raise low, with facts; `cli.py` and `action/__main__.py` translate to an exit code once. What may go wrong without
changing the numbers (cache service, comment, summary) is a value, never an exception.
"""

from __future__ import annotations

from collections.abc import Sequence


def said(error: BaseException) -> str:
    """What an exception from outside the tree says, for a `got`: one line of at most 200 characters.

    Its type comes first, but for a ValueError, whose text speaks for itself.
    """
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:200]


class RetrievalEvalError(Exception):
    """Root of the tree: whatever the user can act on."""


class InputError(RetrievalEvalError):
    """Wrong input. Reads `where: problem: got X, expected Y (hint: next step)`; the parts left empty are left out."""

    def __init__(self, problem: str, *, where: str = "", got: str = "", expected: str = "", hint: str = "") -> None:
        self.problem, self.where, self.got, self.expected, self.hint = problem, where, got, expected, hint
        facts = ", ".join(part for part in (got and f"got {got}", expected and f"expected {expected}") if part)
        text = ": ".join(part for part in (where, problem, facts) if part)
        super().__init__(f"{text} (hint: {hint})" if hint else text)


class SettingsError(InputError):
    """One or more settings are wrong; `problems` holds a complete sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class DatasetError(InputError):
    """The data file cannot be read as LongMemEval instances."""


class ModelError(InputError):
    """The embedding model cannot be loaded, or is not the one that was asked for."""


class CacheError(InputError):
    """The embedding cache cannot be used as it is."""


class RetrieverError(InputError):
    """The measured retriever broke the protocol, crashed or hung."""


class ReportError(InputError):
    """A report or ranked-list file cannot be used."""
