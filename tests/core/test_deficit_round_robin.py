"""Turns by time: short ones are equal, long ones cost rounds, and nobody is kept out for long."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.core.budgets import MOST_ROUNDS, SHORT_S, DeficitRoundRobin


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
