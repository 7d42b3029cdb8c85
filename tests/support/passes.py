"""Passes of trio's scheduler: how many go by, how much work is done in each, and which one first finds a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio


class Passes:
    """`count` passes have gone by; `most` is the largest number of times that `note` was called in one of them."""

    def __init__(self) -> None:
        self.count = 0
        self._noted: Counter[int] = Counter()

    def note(self) -> None:
        """One piece of the work is done."""
        self._noted[self.count] += 1

    @property
    def most(self) -> int:
        return max(self._noted.values())


@asynccontextmanager
async def counted_passes() -> AsyncIterator[Passes]:
    """The passes while the block runs."""
    passes = Passes()

    async def count() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            passes.count += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        yield passes
        nursery.cancel_scope.cancel()


async def within_passes(reached: Callable[[], object], most: int = 1000) -> int:
    """Return in the very pass in which a state is reached first; raises `AssertionError` after so many passes.

    Returns how many passes it took.
    """
    for passes in range(most):
        if reached():
            return passes
        await trio.lowlevel.checkpoint()
    raise AssertionError(f"not reached within {most} passes")
