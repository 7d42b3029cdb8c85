"""Which request ids a session has used: exact within its bounds, and never wrong about an id that was not used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.core.session import UsedIds
from probe.wire.jsonrpc import RequestId

NUMBERS = st.integers(-15, 15) | st.integers()


@given(st.lists(NUMBERS | st.text("ab0", max_size=2), max_size=60))
def test_an_id_was_used_before_exactly_if_it_was(ids: list[RequestId]) -> None:
    used = UsedIds(1000)
    assert [used.use(id) for id in ids] == [id in ids[:at] for at, id in enumerate(ids)]


@given(st.lists(NUMBERS | st.text("ab0", max_size=2), max_size=60))
def test_beyond_the_bound_an_id_may_be_forgotten_but_none_is_made_up(ids: list[RequestId]) -> None:
    used = UsedIds(2)
    assert all(not used.use(id) or id in ids[:at] for at, id in enumerate(ids))


def test_a_number_and_its_string_are_different_ids() -> None:
    used = UsedIds(10)
    assert [used.use(id) for id in (5, "5", 5, "5")] == [False, False, True, True]


@pytest.mark.parametrize("step", [1, -1])
def test_numbers_in_a_row_are_remembered_to_the_end(step: int) -> None:
    used = UsedIds(1)
    count = range(0, 5000 * step, step)
    assert not any(used.use(id) for id in count)
    assert all(used.use(id) for id in count)


def test_numbers_that_close_a_gap_take_no_place() -> None:
    used = UsedIds(2)
    assert [used.use(id) for id in (1, 3, 2, 100)] == [False] * 4
    assert [used.use(id) for id in (1, 2, 3, 100)] == [True] * 4


def test_the_lowest_numbers_and_the_oldest_strings_are_forgotten_first() -> None:
    used = UsedIds(2)
    for id in (1, 10, 20, "a", "b", "c"):
        used.use(id)
    assert [used.use(id) for id in (20, 10, "c", "b")] == [True] * 4
    assert [used.use(id) for id in (1, "a")] == [False] * 2
