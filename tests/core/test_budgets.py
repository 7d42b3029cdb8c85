"""Budgets at their edges: shares of limits, token buckets, and turns."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.core.budgets import MOST_ROUNDS, SHORT_S, SMALL_BYTES, Admission, DeficitRoundRobin, Rates, Shares, has_bytes


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


# Token buckets at their edges. A burst of 3, one token in two seconds.


FREE = Admission(0.0, first=False)


def new(most_keys: int = 10) -> Rates:
    return Rates(0.5, 3, most_keys)


def test_a_burst_is_free_and_one_more_waits_for_the_next_token() -> None:
    rates = new()
    assert [rates.take("a", 100.0) for _ in range(3)] == [FREE] * 3
    assert rates.take("a", 100.0) == Admission(2.0, first=True)
    assert rates.take("a", 101.5) == Admission(0.5, first=False)
    assert rates.take("a", 102.0) == FREE
    assert rates.take("a", 102.0) == Admission(2.0, first=True), "each time it begins is told once"


def test_asking_in_vain_costs_nothing() -> None:
    rates = new()
    for _ in range(1000):
        rates.take("a", 100.0)
    assert rates.take("a", 102.0) == FREE


def test_a_bucket_fills_up_to_the_burst_and_no_further() -> None:
    rates = new()
    rates.take("a", 100.0)
    assert [rates.take("a", 10_000.0).wait_s for _ in range(4)] == [0, 0, 0, 2.0]


def test_clients_do_not_share() -> None:
    rates = new()
    for _ in range(4):
        rates.take("a", 100.0)
    assert rates.take("b", 100.0) == FREE


def test_what_is_charged_is_owed_and_each_waits_its_own_turn() -> None:
    rates = new()
    assert [rates.charge("a", 1, 100.0).wait_s for _ in range(6)] == [0, 0, 0, 2.0, 4.0, 6.0]
    assert rates.take("a", 100.0).wait_s == 8.0, "nobody new gets in before the debt is paid"
    assert rates.take("a", 108.0) == FREE


def test_much_is_charged_at_once() -> None:
    rates = new()
    assert rates.charge("a", 13, 100.0) == Admission(20.0, first=True)
    assert rates.charge("a", 1, 100.0) == Admission(22.0, first=False)


def test_who_was_away_long_enough_is_forgotten() -> None:
    rates = new()
    for number in range(8):
        rates.take(f"client {number}", 100.0)
    for _ in range(4):
        rates.take("busy", 110.0)
    assert len(rates) == 1


def test_who_owes_is_not_forgotten_for_being_away() -> None:
    rates = new()
    rates.charge("debtor", 23, 100.0)
    for _ in range(5):
        rates.take("busy", 110.0)
    assert rates.take("debtor", 110.0).wait_s == pytest.approx(32.0)


def test_the_table_is_bounded_and_who_was_away_longest_starts_anew() -> None:
    rates = new(most_keys=3)
    for client in ("a", "b", "c"):
        for _ in range(3):
            rates.take(client, 100.0)
    rates.take("a", 100.0)
    rates.take("d", 100.0)
    assert len(rates) == 3
    assert rates.take("b", 100.0) == FREE, "it had gone"
    assert rates.take("a", 100.0).wait_s == 2.0, "it was here last"


# Turns by time: short ones are equal, long ones cost rounds, and nobody is kept out for long.


def turns(lanes: DeficitRoundRobin, lengths: dict[str, float], count: int) -> str:
    """The turns of clients that ask for the next one when they had one; each takes its client's length."""
    taken = []
    for _ in range(count):
        lane = str(lanes.take())
        taken.append(lane)
        lanes.join(lane)
        lanes.charge(lane, lengths.get(lane, 0.0))
    return "".join(taken)


def waiting(names: str) -> DeficitRoundRobin:
    lanes = DeficitRoundRobin()
    for name in names:
        lanes.join(name)
    return lanes


def test_short_turns_are_equal_however_short() -> None:
    lengths = {"a": 0.0, "b": SHORT_S / 2, "c": SHORT_S * 0.99}
    assert turns(waiting("abc"), lengths, 9) == "abcabcabc"


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (SHORT_S, "abbabbabba"),
        (3 * SHORT_S, "abbbbabbbb"),
        (1000 * SHORT_S, "a" + "b" * MOST_ROUNDS + "a" + "b" * (MOST_ROUNDS - 2)),
    ],
)
def test_a_long_turn_costs_rounds_up_to_a_bound(length: float, expected: str) -> None:
    assert turns(waiting("ab"), {"a": length}, len(expected)) == expected


def test_a_lane_that_joins_again_has_not_been_forgotten_meanwhile() -> None:
    lanes = waiting("abc")
    assert lanes.take() == "a"
    lanes.charge("a", 3 * SHORT_S)
    assert turns(lanes, {}, 4) == "bcbc"
    lanes.join("a")
    assert turns(lanes, {}, 5) == "bcbca"


def test_fresh_lanes_do_not_keep_out_one_that_had_a_turn() -> None:
    lanes = waiting("a")
    assert lanes.take() == "a"
    lanes.join("a")
    taken = []
    for number in range(5):
        lanes.join(number)
        taken.append(lanes.take())
    assert taken[0] == "a"


def test_all_are_equal_again_when_nobody_waits() -> None:
    lanes = waiting("a")
    lanes.take()
    lanes.charge("a", 10 * SHORT_S)
    lanes.forget()
    lanes.join("a")
    lanes.join("b")
    assert turns(lanes, {}, 4) == "abab"


def test_what_is_left_out_is_an_error() -> None:
    with pytest.raises(IndexError):
        DeficitRoundRobin().take()
    with pytest.raises(ValueError, match="wait"):
        waiting("a").forget()


def test_what_lanes_have_used_is_known_for_some_rounds_only() -> None:
    lanes = waiting("a")
    for number in range(5000):
        lanes.join(number)
        lanes.charge(lanes.take(), SHORT_S * (number % 40))
    assert len(lanes._from) <= 3 * MOST_ROUNDS


@given(st.lists(st.floats(0, 30 * SHORT_S), min_size=2, max_size=6))
def test_the_lanes_that_always_wait_get_the_same_time(lengths: list[float]) -> None:
    """As they are counted: a turn as one round and one for each whole `SHORT_S`, up to the bound."""
    by_name = {chr(97 + number): length for number, length in enumerate(lengths)}
    cost = {name: 1 + min(int(length / SHORT_S), MOST_ROUNDS - 1) for name, length in by_name.items()}
    had = Counter(turns(waiting("".join(by_name)), by_name, 400))
    used = [had[name] * cost[name] for name in by_name]
    assert max(used) - min(used) <= 2 * MOST_ROUNDS
