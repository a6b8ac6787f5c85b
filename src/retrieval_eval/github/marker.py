"""The first line of our comment, by which a later run finds it again.

Owns its grammar: `<!-- retrieval-eval:ID run=RUN.ATTEMPT head=SHA -->`. Reads and writes text, knows no API.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LINE = re.compile(
    rf"<!-- retrieval-eval:(?P<id>{_ID.pattern}) run=(?P<run>\d{{1,18}})\.(?P<attempt>\d{{1,9}})"
    r" head=(?P<head>[0-9a-f]{0,64}) -->"
)


@dataclass(frozen=True, slots=True)
class Marker:
    """Which report this is (`report_id`), from which run of the workflow, about which head commit ("" unknown)."""

    report_id: str
    run_id: int
    run_attempt: int
    head_sha: str

    def __str__(self) -> str:
        return f"{self._start}run={self.run_id}.{self.run_attempt} head={self.head_sha} -->"

    @property
    def _start(self) -> str:
        return f"<!-- retrieval-eval:{self.report_id} "

    def is_on(self, text: str) -> bool:
        """Whether `text` begins with the marker of the same report; a quotation of it further in does not count."""
        return text.startswith(self._start)


def report_id_of(name: str) -> str:
    """Return an id for any name (a workflow and a job, say): the name itself where it is one, else with a hash.

    Different names keep different ids. Ids are letters, digits, `.`, `_` and `-`, at most 64 characters.
    """
    if is_report_id(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:48]
    return f"{readable or 'report'}-{digest}"


def is_report_id(text: str) -> bool:
    """Whether `text` can stand in a marker as it is."""
    return _ID.fullmatch(text) is not None


def read_marker(text: str) -> Marker | None:
    """Return the marker on the first line of `text`, or None where there is none (or one of another form)."""
    found = _LINE.fullmatch(text.split("\n", 1)[0].rstrip("\r"))
    return Marker(found["id"], int(found["run"]), int(found["attempt"]), found["head"]) if found else None


def without_marker(text: str) -> str:
    """Return what follows the first line, with plain line ends and no blank end, to compare two bodies."""
    return text.replace("\r\n", "\n").partition("\n")[2].rstrip()
