"""What of a session is embedded and indexed. Owns the text rendering and its version; reads no files.

A change to what `render` returns changes every vector: raise `model.RENDERING_VERSION` with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def render(turns: Iterable[Mapping[str, object]]) -> str:
    """`role: content` of every turn, both roles, joined by newlines, in the order of the session.

    Nothing else of a turn is read: no session id, date, `has_answer` or unknown field can reach the text.
    A turn without text keeps its line (`role: `); a session in which no turn has text is "".
    """
    spoken = [(turn["role"], content_text(turn.get("content"))) for turn in turns]
    if not any(text for _, text in spoken):
        return ""
    return "\n".join(f"{role}: {text}" for role, text in spoken)


def content_text(content: object) -> str:
    """The text of a turn's `content`, as it stands in the file; "" where that is null or blank.

    Of a list, the text parts joined by newlines: strings, and the string `text` of objects. Other parts are left out.
    """
    text = "\n".join(_part_texts(content)) if isinstance(content, list) else content
    return text if isinstance(text, str) and text.strip() else ""


def _part_texts(parts: list[object]) -> list[str]:
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [text for text in texts if isinstance(text, str)]
