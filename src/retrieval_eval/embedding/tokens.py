"""From text to at most `max_tokens` token ids: the only home of tokenizers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from retrieval_eval.errors import ModelError, said

CHARACTERS_PER_TOKEN = 8
"""A first guess that is nearly always enough: English text has four to five."""

_WHITESPACE = " \t\n\r"


class TokenIds:
    """A model's tokenizer without padding, cutting at `max_tokens` (special tokens included)."""

    def __init__(self, file: Path, max_tokens: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:
            raise ModelError(
                "cannot be read as a tokenizer", where=str(file), got=said(error), hint="fetch the file again"
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._max_tokens = max_tokens
        self._may_cut = _parts_at_white_space(self._tokenizer)
        self._specials = self._tokenizer.num_special_tokens_to_add(is_pair=False)

    def encode(self, text: str) -> tuple[npt.NDArray[np.int64], bool]:
        """Token ids, int64 (n,) with n at most `max_tokens`, and whether the text had more.

        A long text is cut before it is tokenized, which changes nothing: BERT's tokenizers split at white space, so
        the tokens of a piece that ends just before white space are the first tokens of the whole. Where the piece turns
        out too short it is doubled.
        """
        room = self._max_tokens - self._specials
        length = self._max_tokens * CHARACTERS_PER_TOKEN if self._may_cut else len(text)
        while True:
            piece = _piece(text, length)
            encoding = self._tokenizer.encode(piece, add_special_tokens=False)
            is_truncated = len(encoding) > room
            if is_truncated or len(piece) == len(text):
                break
            length *= 2
        encoding.truncate(room)
        return np.array(self._tokenizer.post_process(encoding).ids, dtype=np.int64), is_truncated


def _parts_at_white_space(tokenizer: Tokenizer) -> bool:
    """Whether no token, and nothing that decides about one, reaches across white space."""
    is_bert = isinstance(tokenizer.normalizer, BertNormalizer) and isinstance(tokenizer.pre_tokenizer, BertPreTokenizer)
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    return is_bert and not any(space in token for token in added for space in _WHITESPACE)


def _piece(text: str, length: int) -> str:
    """The longest start of `text` that ends just before white space and has at most about `length` characters."""
    if length >= len(text):
        return text
    cut = max(text.rfind(space, 0, length) for space in _WHITESPACE)
    return text[:cut] if cut > 0 else text
