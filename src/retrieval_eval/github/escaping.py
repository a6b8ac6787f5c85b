"""Text from strangers made harmless for the job log.

Owns the rule of what may stand in a log line. Prints nothing, imports nothing: progress lines use it too.

The runner (actions/runner, `ActionCommand.cs`) reads every line of both streams as a command where it starts, after
white space, with `::`, or where it holds `##[` anywhere. It compares by culture, which skips invisible characters,
and it ends a line at a carriage return as well as at a newline.
"""

from __future__ import annotations

import re

_LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, direction marks, zero-width and other ignorable characters, halves of surrogate pairs. Not the tab."""

_COMMAND = re.compile(r"^(\s*):(?=\S)")
_OLD_COMMAND = re.compile(r"##(?=\[)")
_MENTION = re.compile(r"@(?=\w)")
_FULL_WIDTH_AT = "\uff20"


def harmless(text: str) -> str:
    r"""Return `text` so that no line of it runs a workflow command, moves the cursor or notifies anybody.

    Lines stay lines (each line end becomes one newline) and readable: invisible characters become `\u200b` and the
    like, a colon at the start of a line gets a blank behind it, `##[` becomes `## [`, and an at sign before a word its
    full-width form. A harmless text comes back unchanged but for its line ends.
    """
    return "\n".join(_harmless_line(line) for line in _LINE_END.split(text))


def _harmless_line(line: str) -> str:
    line = _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), line)
    line = _OLD_COMMAND.sub("## ", line)
    line = _COMMAND.sub(r"\1: ", line)
    return _MENTION.sub(_FULL_WIDTH_AT, line)
