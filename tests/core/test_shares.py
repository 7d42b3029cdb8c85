"""Shares of limits at their edges."""

from __future__ import annotations

import pytest

from probe.core.budgets import SMALL_BYTES, Shares, has_bytes


def test_a_share_is_a_part_and_one_at_least() -> None:
    shares = Shares(0.25)
    assert [shares.most(total) for total in (1000, 7, 4, 3, 1)] == [250, 1, 1, 1, 1]
    assert Shares(1.0).most(7) == 7


def test_up_to_the_share_there_is_room_and_beyond_it_there_is_none() -> None:
    shares = Shares(0.25)
    for _ in range(2):
        assert shares.has_room("x", "a", 8)
        shares.take("x", "a")
    assert not shares.has_room("x", "a", 8)
    assert shares.has_room("x", "b", 8), "another holder"
    assert shares.has_room("y", "a", 8), "another kind"
    shares.give_back("x", "a")
    assert shares.has_room("x", "a", 8)


def test_amounts_count_and_one_thing_may_be_larger_than_the_share() -> None:
    shares = Shares(0.5)
    assert shares.has_room("bytes", "a", 100, 1000)
    shares.take("bytes", "a", 1000)
    assert not shares.has_room("bytes", "a", 100, 1)
    shares.give_back("bytes", "a", 960)
    assert shares.has_room("bytes", "a", 100, 10)
    assert not shares.has_room("bytes", "a", 100, 11)


def test_nobody_in_particular_holds_nothing() -> None:
    shares = Shares(0.25)
    shares.take("x", None, 1000)
    assert (shares.held("x", None), len(shares)) == (0, 0)
    assert shares.has_room("x", None, 4)
    shares.give_back("x", None, 1000)


def test_nothing_is_kept_of_who_holds_nothing() -> None:
    shares = Shares(0.25)
    shares.take("x", "a", 2)
    shares.take("x", "b", 0)
    assert (shares.held("x", "a"), len(shares)) == (2, 1)
    shares.give_back("x", "a", 2)
    assert len(shares) == 0
    assert shares.has_room("x", "a", 4)
    assert len(shares) == 0, "to ask leaves nothing either"


def test_who_gives_back_more_than_it_holds_is_a_defect() -> None:
    shares = Shares(0.25)
    shares.take("x", "a")
    with pytest.raises(AssertionError):
        shares.give_back("x", "a", 2)


@pytest.mark.parametrize(
    ("taken", "size", "held", "room"),
    [
        (0, 7 * SMALL_BYTES, 0, True),
        (0, 7 * SMALL_BYTES + 1, 0, False),
        (SMALL_BYTES, 6 * SMALL_BYTES, SMALL_BYTES, True),
        (SMALL_BYTES, 6 * SMALL_BYTES + 1, SMALL_BYTES, False),
        (7 * SMALL_BYTES, SMALL_BYTES, 0, True),
        (7 * SMALL_BYTES, 1, SMALL_BYTES, False),
        (7 * SMALL_BYTES, 1, SMALL_BYTES - 1, True),
        (7 * SMALL_BYTES + 1, SMALL_BYTES, 0, False),
        (8 * SMALL_BYTES - 1, 1, 0, True),
        (8 * SMALL_BYTES, 1, 0, False),
    ],
)
def test_the_last_eighth_of_a_limit_in_bytes_is_for_what_is_small(taken: int, size: int, held: int, room: bool) -> None:
    assert has_bytes(8 * SMALL_BYTES, taken, size, held) is room


@pytest.mark.parametrize(("declared", "room"), [(0, True), (SMALL_BYTES, True), (SMALL_BYTES + 1, False)])
def test_what_says_that_it_will_be_large_is_large_from_its_first_byte(declared: int, room: bool) -> None:
    assert has_bytes(8 * SMALL_BYTES, 7 * SMALL_BYTES, 1, 0, declared) is room


def test_what_holds_nothing_yet_and_declares_nothing_is_as_large_as_it_asks_for() -> None:
    assert has_bytes(8 * SMALL_BYTES, 7 * SMALL_BYTES, SMALL_BYTES)
    assert not has_bytes(8 * SMALL_BYTES, 7 * SMALL_BYTES - 1, SMALL_BYTES + 1)
