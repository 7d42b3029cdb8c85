"""Fixtures of the fault tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from trio._core import _run
from trio.testing import MockClock


class Drops:
    """How many connections were dropped."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, what: str, number: int) -> None:
        self.counts[what] += number


@pytest.fixture(scope="session")
def drops() -> Iterator[Drops]:
    """Counts over all stories."""
    counted = Drops()
    yield counted
    print("\ndrops:", dict(counted.counts))


@pytest.fixture(autouse=True)
def order(request, monkeypatch) -> None:
    """trio wakes its tasks in a random order, which is part of a story: the seed decides it, too."""
    seed = getattr(request.node, "callspec", None)
    monkeypatch.setattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    _run._r.seed(seed.params.get("seed", 0) if seed else 0)


@pytest.fixture
def clock(mock_clock: MockClock) -> MockClock:
    """As fast as time goes, until a test makes it jump."""
    mock_clock.rate = 1
    return mock_clock
