"""Long work on the one thread, in pieces with other tasks in between."""

from __future__ import annotations

from typing import Final

import trio

# Some tenths of a millisecond of encoding, for this many bytes or this many small objects.
_TURN_BYTES: Final = 64 * 1024
_OVERHEAD: Final = 1024


class Turns:
    """Counts the work since other tasks ran.

    Of all that share a `turnstile` one goes on at a time, so that many of them take no more time from others than one.
    """

    def __init__(self, turnstile: trio.Lock | None = None) -> None:
        self._turnstile = turnstile
        self._done = 0

    async def done(self, size: int) -> None:
        """Count work on `size` bytes. Other tasks run now if it was enough."""
        self._done += size + _OVERHEAD
        if self._done > _TURN_BYTES:
            self._done = 0
            if self._turnstile is None:
                await trio.lowlevel.checkpoint()
            else:
                # A trio lock passes to its waiters in order, and `acquire` is a checkpoint even if the lock is free. So
                # of all that share it, one does a piece in each pass of the scheduler.
                async with self._turnstile:
                    pass
