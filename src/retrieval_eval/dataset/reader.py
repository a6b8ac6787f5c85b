"""The way into the data file: instances one at a time, and what is known of the file once all were read.

Owns the order of checking, streaming and counting. Selects nothing and stores nothing: excluded instances come too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from retrieval_eval.dataset.detect import inspect
from retrieval_eval.dataset.fields import Place, quote
from retrieval_eval.dataset.instance import to_instance
from retrieval_eval.dataset.notes import DatasetNotes, Tally
from retrieval_eval.dataset.source import BrokenSourceError, ByteSource
from retrieval_eval.dataset.stream import MalformedJSONError, array_items
from retrieval_eval.errors import DatasetError
from retrieval_eval.model import Instance

log = logging.getLogger(__name__)


class DatasetReader:
    """One LongMemEval file: S, M, oracle or `-cleaned`, plain or gzip (told by the bytes, whatever the name)."""

    def __init__(self, path: Path) -> None:
        """Look at the file's name, size and beginning. Raises `DatasetError` where it cannot be a LongMemEval file."""
        self._file = inspect(path)
        self._digest: str | None = None
        self._position_bytes = 0
        self._tally = Tally()

    @property
    def size_bytes(self) -> int:
        """Size on disk; with `position_bytes`, for progress."""
        return self._file.size_bytes

    @property
    def position_bytes(self) -> int:
        """How much of `size_bytes` was read so far."""
        return self._position_bytes

    @property
    def digest(self) -> str:
        """Sha256, in hex, of the file as it is on disk. Raises `RuntimeError` before `instances` came to its end."""
        if self._digest is None:
            raise RuntimeError("the digest is known only after every instance was read")
        return self._digest

    @property
    def notes(self) -> DatasetNotes:
        """What was odd in the instances read so far."""
        return self._tally.notes()

    def instances(self) -> Iterator[Instance]:
        """Every instance in the file's order, abstention and gold-less ones too; each call reads from the start.

        Raises `DatasetError` at the first instance that is wrong, at a cut or damaged end (after the instances before
        it: what they gave must not be taken for the whole file), and for a list without instances.
        """
        self._digest, self._position_bytes, self._tally = None, 0, Tally()
        question_ids: set[str] = set()
        last = ""
        with ByteSource(self._file.path, is_gzip=self._file.is_gzip) as source:
            try:
                for number, raw in enumerate(array_items(source.chunks())):
                    place = Place(str(self._file.path), number)
                    instance, findings = to_instance(raw, place, question_ids)
                    last = instance.pair.question_id
                    question_ids.add(last)
                    if instance.exclusion is None:
                        self._tally.add(findings, Place(self._file.path.name, number, last))
                    self._position_bytes = source.position_bytes
                    yield instance
            except (MalformedJSONError, BrokenSourceError) as error:
                raise self._fault(error, source, _after(len(question_ids), last)) from error
            self._finish(source, len(question_ids))

    def _finish(self, source: ByteSource, count: int) -> None:
        if not count:
            raise DatasetError("no questions", where=str(self._file.path), got="an empty list", expected="instances")
        self._position_bytes = source.position_bytes
        self._digest = source.digest()
        log.debug("%s: %d instances, %d bytes", self._file.path, count, self._position_bytes)

    def _fault(self, error: MalformedJSONError | BrokenSourceError, source: ByteSource, after: str) -> DatasetError:
        where, again = str(self._file.path), "download the file again"
        if isinstance(error, BrokenSourceError):
            problem = f"{error.reason} at about byte {source.position_bytes}, {after}"
            return DatasetError(problem, where=where, hint=again)
        position = f"byte {source.text_bytes}" + (" of the unpacked text" if self._file.is_gzip else "")
        if error.is_cut_off:
            return DatasetError(f"the file is cut off: it ends early at {position}, {after}", where=where, hint=again)
        return DatasetError(f"not valid JSON ({error.reason}) before {position}, {after}", where=where)


def _after(whole: int, last: str) -> str:
    return f"after {whole} whole {'instance' if whole == 1 else 'instances'}" + (
        f" (the last is question {quote(last)})" if whole else ""
    )
