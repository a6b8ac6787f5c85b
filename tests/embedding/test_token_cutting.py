"""Cutting a text before it is tokenized gives the ids of the whole text, cut afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.pre_tokenizers import Whitespace

from retrieval_eval.embedding.tokens import TokenIds
from retrieval_eval.errors import ModelError

MAX_TOKENS = 8
SPACES = [" ", "\t", "\n", "\r", "\r\n", "\x0b", "\x85", "\xa0", "\u2003", "\u2028", "\u3000", "\u200b", " \u0301"]
CHUNKS = [
    *("bad", "cub", "badbed", "cubade", "日本", "日", "é", "e\u0301", "ÀB", "İ", "ß"),
    *("[SEP]", "[CLS]", "[MASK]", "[UNK]", "[sep]", "##bed", "b" * 120, "ab" * 60, ",", "!!", "[", "]"),
    *("\0", "\x07", "\x1f", "\u00ad", "\u202e", "\ufffd", "😀", "\U000e0041", "Σς"),
]
TEXTS = st.lists(st.sampled_from(CHUNKS + SPACES) | st.text(max_size=4), max_size=60).map("".join)


def cut_afterwards(tokenizer: Tokenizer, text: str, max_tokens: int) -> tuple[list[int], bool]:
    """The plain way: all ids of the whole text, then the first ones between the special tokens."""
    start, *ids, end = tokenizer.encode(text).ids
    return [start, *ids[: max_tokens - 2], end], len(ids) > max_tokens - 2


@pytest.fixture(scope="module")
def token_ids(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> TokenIds:
    file = tmp_path_factory.mktemp("tokens") / "tokenizer.json"
    tokenizer.save(str(file))
    return TokenIds(file, MAX_TOKENS)


@settings(max_examples=600, deadline=None)
@given(text=TEXTS)
@example(text=" " * 500 + "bad cub")
@example(text="b" * 200 + " cub" * 20)
@example(text="\x07" * 300 + " bad" * 9)
@example(text="bad" * 40)
@example(text="\n".join(["bad"] * 6) + "\n" * 100)
def test_ids_are_those_of_the_whole_text_cut_afterwards(token_ids: TokenIds, tokenizer: Tokenizer, text: str) -> None:
    ids, is_truncated = token_ids.encode(text)
    assert (ids.tolist(), is_truncated) == cut_afterwards(tokenizer, text, MAX_TOKENS)


@pytest.mark.parametrize(("words", "is_truncated"), [(1, False), (6, False), (7, True), (500, True)])
def test_truncated_means_more_tokens_than_fit(token_ids: TokenIds, words: int, is_truncated: bool) -> None:
    ids, found = token_ids.encode(" ".join(["bad"] * words) + " " * 300)
    assert (len(ids), found) == (min(words + 2, MAX_TOKENS), is_truncated)


def test_a_long_text_is_not_tokenized_whole(token_ids: TokenIds) -> None:
    seen: list[str] = []

    class Spy:
        def __init__(self, real: Tokenizer) -> None:
            self.post_process, self._encode = real.post_process, real.encode

        def encode(self, text: str, **options: bool) -> object:
            seen.append(text)
            return self._encode(text, **options)

    real = token_ids._tokenizer
    token_ids._tokenizer = Spy(real)  # type: ignore[assignment]  # stands in for the two methods that are called
    try:
        token_ids.encode("bad " * 5000)
    finally:
        token_ids._tokenizer = real
    assert [len(text) for text in seen] == [63]


def test_a_tokenizer_that_sees_across_white_space_gets_the_whole_text(tokenizer: Tokenizer, tmp_path: Path) -> None:
    spaced = Tokenizer.from_str(tokenizer.to_str())
    spaced.add_tokens([AddedToken("bad cub")])
    other = Tokenizer.from_str(tokenizer.to_str())
    other.pre_tokenizer = Whitespace()
    for number, strange in enumerate((spaced, other)):
        file = tmp_path / f"{number}.json"
        strange.save(str(file))
        text = "bad " * 15 + "bad cub" + " bad" * 40
        for max_tokens in (8, 17, 18, 19):
            ids, is_truncated = TokenIds(file, max_tokens).encode(text)
            assert (ids.tolist(), is_truncated) == cut_afterwards(strange, text, max_tokens)
        assert not TokenIds(file, MAX_TOKENS)._may_cut


def test_padding_and_truncation_in_the_file_are_ignored(tokenizer: Tokenizer, tmp_path: Path) -> None:
    strange = Tokenizer.from_str(tokenizer.to_str())
    strange.enable_padding(length=20)
    strange.enable_truncation(4)
    strange.save(str(tmp_path / "tokenizer.json"))
    ids, is_truncated = TokenIds(tmp_path / "tokenizer.json", MAX_TOKENS).encode("bad cub bad")
    assert (len(ids), is_truncated) == (5, False)


def test_ids_of_every_real_session_are_those_of_the_whole_text_cut_afterwards(
    model_path: Path, real_sessions: list[str]
) -> None:
    file = model_path / "tokenizer.json"
    plain, ours = Tokenizer.from_file(str(file)), TokenIds(file, 512)
    plain.no_truncation()
    plain.no_padding()
    assert ours._may_cut
    differing = []
    for text in real_sessions:
        ids, is_truncated = ours.encode(text)
        if (ids.tolist(), is_truncated) != cut_afterwards(plain, text, 512):
            differing.append(text[:80])
    assert differing == []


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json: cannot be read as a tokenizer.*hint: fetch the file again"):
        TokenIds(file, 512)
