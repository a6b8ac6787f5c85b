"""Fitting a page into a size: which part gives way first, and to what extent. Knows no Markdown and no figures.

A part is drawn again with fewer rows, never cut as text, so no row, fold or emoji is ever left open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Size = Callable[[str], int]


def characters(text: str) -> int:
    """The larger of code points and UTF-16 units, which is always the latter."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def utf8_bytes(text: str) -> int:
    """Bytes in the file."""
    return len(text.encode())


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the page: `draw(rows)` draws it with its first `rows` rows.

    `gives_way` orders the sacrifice, lowest first; None is kept whatever the size.
    """

    name: str
    draw: Callable[[int], str]
    rows: int
    gives_way: int | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """The drawn parts in page order, empty text for a part left out; `left_out` and `shortened` name parts."""

    texts: tuple[str, ...]
    left_out: tuple[str, ...]
    shortened: tuple[str, ...]


def fit(parts: Sequence[Part], room: int, size: Size) -> Fitted:
    """Draw `parts` so that their sizes add up to at most `room`, if the parts that are always kept allow it.

    One part after the other, by `gives_way`, loses the rows that are too many, and goes entirely before the next
    one loses any.
    """
    texts = {part.name: part.draw(part.rows) for part in parts}
    total = sum(map(size, texts.values()))
    shortened = []
    for part in sorted((part for part in parts if part.gives_way is not None), key=lambda part: part.gives_way or 0):
        if total <= room:
            break
        full = size(texts[part.name])
        texts[part.name] = _shortened(part, full - (total - room), size)
        total -= full - size(texts[part.name])
        shortened += [part.name] if texts[part.name] else []
    return Fitted(
        texts=tuple(texts[part.name] for part in parts),
        left_out=tuple(part.name for part in parts if not texts[part.name]),
        shortened=tuple(shortened),
    )


def _shortened(part: Part, room: int, size: Size) -> str:
    """The part with as many rows as fit, at least one; empty when not even that fits."""
    fits, too_many = 0, part.rows
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if size(part.draw(middle)) <= room:
            fits = middle
        else:
            too_many = middle
    return part.draw(fits) if fits else ""
