"""JSON text in pieces becomes Python objects, one at a time. The only home of ijson.

Numbers come as int or Decimal, of any size; no field that is read is a number.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import ijson  # type: ignore[import-untyped]  # ijson ships no type information

from retrieval_eval.dataset.nesting import MAX_DEPTH, Nesting


class MalformedJSONError(ValueError):
    """The text is not JSON from some point on. `reason` holds nothing of the text."""

    def __init__(self, reason: str, *, is_cut_off: bool) -> None:
        super().__init__(reason)
        self.reason, self.is_cut_off = reason, is_cut_off


def array_items(chunks: Iterable[bytes]) -> Iterator[object]:
    """The items of the array that `chunks` hold, each as soon as it is whole.

    Holds one chunk's worth of items, or the one item under way. Whole items before a fault are handed on first;
    then raises `MalformedJSONError`. Text whose top level is no array has no items.
    """
    items = ijson.sendable_list()
    parser = ijson.items_coro(items, "item")
    fault, nesting = None, Nesting()
    for chunk in chunks:
        if nesting.is_too_deep(chunk):
            raise MalformedJSONError(f"nested more than {MAX_DEPTH} deep", is_cut_off=False)
        try:
            with _ints_of_any_length():
                parser.send(chunk)
        except ijson.JSONError as error:
            fault = MalformedJSONError(_reason(error), is_cut_off=False)
        yield from _drained(items)
        if fault:
            raise fault
    try:
        with _ints_of_any_length():
            parser.close()
    except ijson.JSONError:
        raise MalformedJSONError("the text ends early", is_cut_off=True) from None
    yield from _drained(items)


@contextmanager
def _ints_of_any_length() -> Iterator[None]:
    """Lift Python's limit of 4,300 digits: where ijson 3.6 meets it, the process dies of a segmentation fault."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def _drained(items: list[object]) -> Iterator[object]:
    items.reverse()
    while items:
        yield items.pop()


def _reason(error: Exception) -> str:
    """The parser's words without the excerpt that follows them."""
    found = re.search(r"error: ([A-Za-z0-9 ()]+)", str(error))
    return found[1].strip() if found else "not valid JSON"


def top_level_fields(head: bytes) -> tuple[str, ...]:
    """Field names of the top-level object that `head` begins with, as far as it reaches, in order.

    None of them where it nests too deep to be read.
    """
    if Nesting().is_too_deep(head):
        return ()
    events = ijson.sendable_list()
    parser = ijson.parse_coro(events, multiple_values=True)
    with _ints_of_any_length(), suppress(ijson.JSONError):  # what came before a fault is what is asked for
        parser.send(head)
    names = (value for prefix, event, value in events if not prefix and event == "map_key")
    return tuple(dict.fromkeys(names))
