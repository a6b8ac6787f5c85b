"""How deep JSON text nests, told from its bytes before a parser sees them.

A parser that names the path of every value needs memory by the square of the depth: 200 KB of brackets would take
all there is. Checks nothing else: text that is no JSON is the parser's to refuse.
"""

from __future__ import annotations

MAX_DEPTH = 100
"""LongMemEval nests five deep."""

_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))


class Nesting:
    """Follows the depth over the pieces of one text."""

    def __init__(self) -> None:
        self._depth, self._in_string, self._held_back = 0, 0, b""

    def is_too_deep(self, piece: bytes) -> bool:
        """Whether the text passes `MAX_DEPTH` somewhere in `piece`, the next one."""
        piece = self._held_back + piece
        whole = piece.rstrip(b"\\")  # what is behind a backslash at the end comes with the next piece
        self._held_back = piece[len(whole) :]
        parts = whole.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NOT_STRUCTURE).split(b'"')
        brackets = b"".join(parts[self._in_string :: 2])
        self._in_string ^= (len(parts) - 1) & 1
        is_too_deep = self._depth + _bound(brackets) > MAX_DEPTH and self._deepest(brackets) > MAX_DEPTH
        self._depth += 2 * _opened(brackets) - len(brackets)
        return is_too_deep

    def _deepest(self, brackets: bytes) -> int:
        depth = deepest = self._depth
        for sign in brackets:
            depth += 1 if sign in b"[{" else -1
            deepest = max(deepest, depth)
        return deepest


def _opened(brackets: bytes) -> int:
    return brackets.count(b"[") + brackets.count(b"{")


def _bound(brackets: bytes) -> int:
    """No less than what the depth grows by within `brackets`, and little more: soon told, where counting is slow."""
    passes = 4
    for _ in range(passes):  # each takes two levels away at the most
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return _opened(brackets) + 2 * passes
