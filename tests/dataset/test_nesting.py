"""The depth of JSON text, piece by piece: the same as of the parsed value, whatever the strings hold."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.dataset.nesting import MAX_DEPTH, Nesting

STRINGS = st.text(alphabet='[]{}"\\\nä,:x', max_size=8)
VALUES = st.recursive(
    STRINGS | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3)
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(VALUES, st.integers(1, 7))
def test_depth_is_that_of_the_value_wherever_the_text_is_cut(value: Any, size: int) -> None:
    deep: Any = value
    for _ in range(MAX_DEPTH - depth_of(value)):
        deep = [deep]
    for expected, candidate in ((False, deep), (True, [deep])):
        text, nesting = json.dumps(candidate).encode(), Nesting()
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert any(nesting.is_too_deep(piece) for piece in pieces) is expected


def test_many_short_turns_are_not_deep() -> None:
    assert not Nesting().is_too_deep(b'[{"a":[' + b'{"content":"}"},' * 10_000)
