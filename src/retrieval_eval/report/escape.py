"""Text from outside, made harmless. Owns what may be shown of a question, an id, a file name or a warning.

Nothing here knows what a report is. `plain` is for terminals and logs, `cell` for Markdown as GitHub renders it.
"""

from __future__ import annotations

import re

CUT = "…"

INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Characters that Python calls printable and that show nothing."""

# GitHub looks for mentions and issue numbers in the rendered text, so an entity for `@` would still ping;
# a word joiner behind it does not, and unlike a zero-width space it lets no line break there. It is written as an
# entity: no invisible character reaches the file raw.
BREAK = "&#8288;"

ENTITIES = str.maketrans({char: f"&#{ord(char)};" for char in "`|*_[]\\~"}) | str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "@": f"@{BREAK}",
        "#": f"#{BREAK}",
        "$": "<span>$</span>",  # GitHub's documented way to write a dollar that opens no formula
    }
)

REFERENCES = re.compile(r":(?=//)|www(?=\.)|GH-(?=\d)|:(?=[a-z0-9_+-]+:)", re.IGNORECASE)
"""What GitHub turns into a link or a picture without any markup: URLs, `GH-123`, `:emoji:`."""

COMMANDS = re.compile(r":(?=:)|#(?=#\[)")
"""What begins a workflow command: `::name::` at the start of a line, `##[name]` anywhere."""

UNSAFE_IN_URL = re.compile(r"[^A-Za-z0-9\-._~:/?#@!&+,;=%]")


def visible(text: str, limit: int) -> str:
    r"""One line of at most `limit` characters, ending in `…` where it was cut.

    White space of any kind becomes one space. Control, bidi, zero-width and other invisible characters and lone
    surrogates become escapes such as `\u202e`, which are never cut in two.
    """
    pieces: list[str] = []
    length = 0
    for char in " ".join(text[: 8 * limit].split()):
        pieces.append(_piece(char))
        length += len(pieces[-1])
        if length > limit:
            break
    if length <= limit and len(text) <= 8 * limit:
        return "".join(pieces)
    while length > limit - len(CUT):
        length -= len(pieces.pop())
    return "".join(pieces).rstrip() + CUT


def plain(text: str, limit: int) -> str:
    """`visible` text for a terminal or a log: where a runner reads the log, it can start no workflow command."""
    return COMMANDS.sub(lambda found: f"{found[0]} ", visible(text, limit))


def cell(text: object, limit: int = 120) -> str:
    """`visible` text for a Markdown table cell or the middle of a line: no structure, link, mention, formula or HTML.

    The limit counts the characters that a reader sees.
    """
    return REFERENCES.sub(_broken, visible(str(text), limit).translate(ENTITIES))


def link_target(url: str) -> str | None:
    """The URL for the round brackets of a Markdown link; None unless it is plain http(s)."""
    if not url.startswith(("https://", "http://")):
        return None
    return UNSAFE_IN_URL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace")), url)


def _piece(char: str) -> str:
    if char.isprintable() and char not in INVISIBLE:
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _broken(found: re.Match[str]) -> str:
    return found[0] + BREAK
