"""Rings as HAProxy and nginx make them: shares, moves and failures. tests/infra has the real programs beside them."""

from __future__ import annotations

from collections import Counter

import pytest
from load.hashing import KINDS, Days, Rings, balance, lost, moved, routing_keys

KEYS = list(routing_keys(20_000))
kinds = pytest.mark.parametrize("rings", KINDS.values(), ids=KINDS)


def placed(rings: Rings, *replicas: int) -> list[int]:
    return [*map(rings(replicas).replica, KEYS)]


@kinds
def test_only_rooms_of_the_replica_that_comes_or_goes_move(rings: Rings) -> None:
    before, more, less = placed(rings, 1, 2, 3), placed(rings, 1, 2, 3, 4), placed(rings, 1, 2)
    assert {new for old, new in zip(before, more, strict=True) if old != new} == {4}
    assert {old for old, new in zip(before, less, strict=True) if old != new} == {3}
    # Its share, and the error of a sample of this size.
    assert moved(before, more) == pytest.approx(1 / 4, abs=0.02)
    assert moved(before, less) == pytest.approx(1 / 3, abs=0.02)


@kinds
def test_replicas_have_equal_shares(rings: Rings) -> None:
    rooms = Counter(placed(rings, *range(1, 11)))
    assert set(rooms) == set(range(1, 11))
    assert 1 <= balance(placed(rings, *range(1, 11))) < 1.08


def test_the_same_seed_gives_the_same_ids_and_another_one_others() -> None:
    assert list(routing_keys(3)) == KEYS[:3]
    assert not {*routing_keys(3, seed=1)} & {*KEYS[:3]}
    assert len(set(KEYS)) == len(KEYS)


@kinds
def test_a_failure_ends_the_rooms_of_one_replica_and_its_return_those_opened_meanwhile(rings: Rings) -> None:
    days = Days(replicas=4, rooms=400, life=1, between_failures=10, outage=0.5, hours=100)
    found = lost(days, rings)
    assert found.opened == 40_000
    # Each failure ends the rooms of one of four replicas; while it is away half as many begin whose hash leads to it.
    failures = found.failed / 100
    assert 25 <= failures <= 55
    assert found.stranded == pytest.approx(found.failed / 2, rel=0.15)
    assert lost(Days(between_failures=1e9), rings) == type(found)(240_000, 0, 0)
