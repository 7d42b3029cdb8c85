"""Long work on the one thread, in pieces between which others run."""

from __future__ import annotations

from typing import Final

import trio

# Some tenths of a millisecond: encoding takes about this long for so many bytes, or for so many small things.
_TURN_BYTES: Final = 64 * 1024
_OVERHEAD: Final = 1024


class Turns:
    """Counts what was done since others had their turn.

    Of all that share a `turnstile` one goes on at a time, so that many of them take no more from others than one.
    """

    def __init__(self, turnstile: trio.Lock | None = None) -> None:
        self._turnstile = turnstile
        self._done = 0

    async def done(self, size: int) -> None:
        """Something of this size in bytes was done. Others run now, if it was enough."""
        self._done += size + _OVERHEAD
        if self._done > _TURN_BYTES:
            self._done = 0
            if self._turnstile is None:
                await trio.lowlevel.checkpoint()
            else:
                # trio hands a lock over in the order of those who wait, and `acquire` is a checkpoint also where the
                # lock is free. So of all that share it, one does its piece in each pass of the scheduler.
                async with self._turnstile:
                    pass
