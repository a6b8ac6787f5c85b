"""vipune's bounds on a search, and the errors past them."""

from __future__ import annotations

from retrieval_eval.errors import RetrieverError

MAX_SEARCH_LIMIT = 10_000
"""Largest `limit` of one call. It bounds what a call returns, not how many rows a store holds."""

MAX_INPUT_BYTES = 100_000
"""Longest query, in UTF-8 bytes."""

RUST_WHITESPACE = "".join(
    map(
        chr,
        [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    )
)
"""What Rust's `trim` and `split_whitespace` take as white space: Python's set without U+001C to U+001F."""


def check_limit(limit: int) -> None:
    """Raises `RetrieverError` unless 1 <= limit <= 10,000."""
    if not 1 <= limit <= MAX_SEARCH_LIMIT:
        raise RetrieverError("limit of a search", got=str(limit), expected=f"1 to {MAX_SEARCH_LIMIT}")


def check_query(query: str) -> str:
    """The query, trimmed. Raises `RetrieverError` where nothing is left, or more than 100,000 bytes."""
    trimmed = query.strip(RUST_WHITESPACE)
    size = len(trimmed.encode("utf-8", "surrogatepass"))
    if not trimmed:
        raise RetrieverError("query is empty or white space")
    if size > MAX_INPUT_BYTES:
        raise RetrieverError("query is too long", got=f"{size} bytes", expected=f"at most {MAX_INPUT_BYTES}")
    return trimmed


def candidate_pool(limit: int) -> int:
    """How deep each leg is searched before fusion: ten times the limit, between 50 and 10,000."""
    return min(max(10 * limit, 50), MAX_SEARCH_LIMIT)
