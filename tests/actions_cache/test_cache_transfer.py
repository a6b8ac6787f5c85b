from __future__ import annotations

import base64
import re

from retrieval_eval.github.actions_cache.service import hide
from retrieval_eval.github.actions_cache.transfer import block_id, block_list, with_query

ID = "0b0e6cbb-3c5c-4d5c-9f0c-2b6a3c0a7d11"


def test_block_ids_are_48_bytes_and_of_one_length() -> None:
    ids = [block_id(ID, index) for index in (0, 1, 99_999)]
    assert {len(base64.b64decode(name)) for name in ids} == {48}
    assert base64.b64decode(ids[2]) == f"{ID}000000099999".encode()


def test_block_list_keeps_the_order() -> None:
    assert re.findall(rb"<Latest>(.)</Latest>", block_list(["b", "a", "c"])) == [b"b", b"a", b"c"]


def test_query_is_added_to_what_is_signed() -> None:
    added = with_query("https://h/p?sig=a%2Bb%3D", comp="block", blockid="x/+=")
    assert added == "https://h/p?sig=a%2Bb%3D&comp=block&blockid=x%2F%2B%3D"


def test_query_is_added_where_there_is_none() -> None:
    assert with_query("https://h/p", comp="blocklist") == "https://h/p?comp=blocklist"


def test_every_spelling_of_a_signature_is_masked_once() -> None:
    masked: list[str] = []
    assert hide("https://h/p?sp=r&sig=a%2bb/c%3D&sv=1", masked.append) == "https://h/p?sp=r&sig=a%2bb/c%3D&sv=1"
    assert masked == ["a+b/c=", "a%2bb/c%3D", "a%2Bb%2Fc%3D"]


def test_address_without_a_signature_masks_nothing() -> None:
    masked: list[str] = []
    hide("https://h/p?sig=&other=1", masked.append)
    assert masked == []
