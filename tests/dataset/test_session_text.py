import pytest

from retrieval_eval.dataset.text import render


def test_both_roles_in_the_order_of_the_session() -> None:
    turns = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Where is\nthe spade?"}]
    assert render(turns) == "assistant: Hello.\nuser: Where is\nthe spade?"


def test_labels_ids_dates_and_unknown_fields_never_reach_the_text() -> None:
    plain = [{"role": "user", "content": "I moved the spade."}]
    labelled = [{**plain[0], "has_answer": True, "session_id": "answer_1", "date": "2023/05/01", "note": "gold"}]
    assert render(labelled) == render(plain) == "user: I moved the spade."


@pytest.mark.parametrize("content", [None, "", "  \n\t", [], [None, 3, {"type": "image"}], [" ", {"text": ""}]])
def test_a_turn_without_text_keeps_its_line_and_a_session_without_text_is_empty(content: object) -> None:
    silent = {"role": "user", "content": content}
    assert render([silent, silent]) == ""
    assert render([silent, {"role": "assistant", "content": "Yes?"}]) == "user: \nassistant: Yes?"


def test_missing_content_is_empty_text() -> None:
    assert render([{"role": "user"}, {"role": "assistant", "content": "Yes?"}]) == "user: \nassistant: Yes?"


def test_no_turns_at_all_is_empty() -> None:
    assert render([]) == ""


def test_text_parts_of_a_list_are_joined_and_other_parts_left_out() -> None:
    parts = [
        "first",
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "second"},
        7,
        {"text": 8},
    ]
    assert render([{"role": "user", "content": parts}]) == "user: first\nsecond"


def test_content_is_not_stripped() -> None:
    assert render([{"role": "user", "content": "  two  "}]) == "user:   two  "
