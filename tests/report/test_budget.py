from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.report.budget import Part, characters, fit, utf8_bytes


def part(name: str, rows: int, gives_way: int | None = None) -> Part:
    """A title of two characters and ten for each row."""
    return Part(name, lambda n: f"{name}\n" + "row......\n" * n, rows, gives_way)


def test_everything_stays_where_there_is_room() -> None:
    fitted = fit([part("a", 2), part("b", 3, 0)], 54, len)
    assert [len(text) for text in fitted.texts] == [22, 32]
    assert fitted.left_out == ()
    assert fitted.shortened == ()


def test_rows_go_before_the_part_and_in_the_stated_order() -> None:
    fitted = fit([part("a", 1), part("b", 5, 1), part("c", 5, 0)], 12 + 52 + 32, len)
    assert [len(text) for text in fitted.texts] == [12, 52, 32]
    assert fitted.shortened == ("c",)


def test_part_goes_whole_before_the_next_one_loses_rows() -> None:
    fitted = fit([part("a", 1), part("b", 5, 1), part("c", 5, 0)], 12 + 45, len)
    assert [len(text) for text in fitted.texts] == [12, 42, 0]
    assert fitted.left_out == ("c",)
    assert fitted.shortened == ("b",)


def test_part_that_always_stays_is_drawn_even_without_room() -> None:
    fitted = fit([part("a", 3), part("b", 1, 0)], 5, len)
    assert [len(text) for text in fitted.texts] == [32, 0]


@given(st.lists(st.integers(1, 30), max_size=5), st.integers(0, 1500))
def test_room_is_kept_by_all_that_may_give_way_and_used_well(sizes: list[int], room: int) -> None:
    parts = [part(str(number), rows, number) for number, rows in enumerate(sizes)]
    fitted = fit(parts, room, len)
    used = sum(map(len, fitted.texts))
    assert used <= room
    assert not fitted.shortened or used > room - 10


def test_sizes_count_what_github_counts() -> None:
    assert characters("a🦔é") == 4
    assert utf8_bytes("a🦔é") == 7
