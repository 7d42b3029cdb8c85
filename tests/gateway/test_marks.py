"""Marks are numbers that fit the tools' argument, and each trial and each run has its own."""

from __future__ import annotations

import itertools

import pytest

from probe.gateway.behind import mark_of
from probe.gateway.marks import BLOCK, belongs, client_mark, client_name, client_of, first_mark, named_mark, number_in
from probe.gateway.phases import STEPS
from probe.tools.shared import MARK


def test_every_mark_of_a_run_fits_the_argument() -> None:
    trials = 2 * sum(step.turns for step in STEPS)
    for seed in (*range(200), 0xFFFFFF):
        first = first_mark(seed)
        assert MARK.low < first
        assert first + BLOCK * trials <= MARK.high


def test_neighbouring_seeds_share_no_mark() -> None:
    firsts = sorted(first_mark(seed) for seed in range(40))
    trials = 2 * sum(step.turns for step in STEPS)
    assert all(later - earlier >= BLOCK * trials for earlier, later in itertools.pairwise(firsts))


def test_the_marks_of_a_trial_are_told_from_those_of_the_next() -> None:
    assert [belongs(number, 5000) for number in (4999, 5000, 5999, 6000)] == [False, True, True, False]
    assert [client_of(client_mark(5000, client) + call, 5000) for client in range(3) for call in (0, 9)] == [
        *(0, 0),
        *(1, 1),
        *(2, 2),
    ]
    assert (named_mark(client_name(5000)), named_mark("5000"), named_mark("gateway-check-x")) == (5000, None, None)


@pytest.mark.parametrize("text", ["", "-5", "5.0", "²", "1234567890", "gw-5"])
def test_what_is_no_mark_in_a_header_is_none(text: str) -> None:
    assert number_in(text) is None


@pytest.mark.parametrize(
    ("arguments", "mark"),
    [
        ({"mark": 7}, 7),
        ({"mark": 7.0}, 7),
        ({"mark": 0}, None),
        ({}, None),
        (None, None),
        ({"mark": "7"}, None),
        ({"mark": 7.5}, None),
        ({"mark": float("inf")}, None),
    ],
)
def test_the_mark_of_a_call_may_be_written_anew(arguments: object, mark: int | None) -> None:
    assert mark_of({"arguments": arguments}) == mark
