"""What fits into a limit of open files."""

from __future__ import annotations

import pytest

from probe.core.budgets import ConnectionCounts, fitting, raised

# soft, hard, needed, and what the soft limit is to be
LIMITS = {
    "too-low": (1024, 4096, 2099, 2099),
    "too-low-and-so-is-the-hard-one": (1024, 2048, 2099, 2048),
    "enough": (65536, 65536, 2099, 65536),
    "just-enough": (2099, 4096, 2099, 2099),
    "no-higher-than-needed": (1024, 10**9, 2099, 2099),
    "cannot-be-raised": (256, 256, 2099, 256),
}

# what is wanted, how many descriptors there are for it, and what it is held to
ROOMS = {
    "all-fit": (ConnectionCounts(2000, 500), 5000, ConnectionCounts(2000, 500)),
    "just-fit": (ConnectionCounts(2000, 500), 2000, ConnectionCounts(2000, 500)),
    "one-does-not": (ConnectionCounts(2000, 500), 1999, ConnectionCounts(1999, 500)),
    "websockets-are-half-of-them": (ConnectionCounts(2000, 500), 941, ConnectionCounts(941, 470)),
    "few-websockets-are-no-problem": (ConnectionCounts(2000, 10), 100, ConnectionCounts(100, 10)),
    "more-websockets-than-connections-as-somebody-set-it": (
        ConnectionCounts(100, 500),
        200,
        ConnectionCounts(100, 500),
    ),
    "one": (ConnectionCounts(2000, 500), 1, ConnectionCounts(1, 1)),
    "none": (ConnectionCounts(2000, 500), 0, ConnectionCounts(1, 1)),
    "less-than-none": (ConnectionCounts(2000, 500), -40, ConnectionCounts(1, 1)),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_limit_is_raised_as_far_as_it_is_needed_and_allowed(case: str) -> None:
    soft, hard, needed, expected = LIMITS[case]
    assert raised(soft, hard, needed) == expected


@pytest.mark.parametrize("case", ROOMS)
def test_connections_and_websockets_are_held_to_what_there_is(case: str) -> None:
    wanted, descriptors, held = ROOMS[case]
    assert fitting(wanted, descriptors) == held
