"""Token buckets at their edges. A burst of 3, one token in two seconds."""

from __future__ import annotations

import pytest

from probe.core.budgets import Admission, Rates

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
