"""Passes of trio's scheduler: how many go by while something works, and how much of the work is done in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
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
