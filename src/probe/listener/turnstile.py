"""Who goes next: one piece of work for each pass of trio's scheduler."""

from __future__ import annotations

import trio


class Turnstile:
    """Lets one task through in each pass, in the order in which they came. One for all connections of a server.

    trio runs everything that is ready before it looks at sockets and clocks again, and a request needs several of these
    passes. If hundreds of connections went ahead in each, every pass would take long, and whoever comes would wait for
    all of them several times: so each waits once, before there is a call, and passes stay short. What waits is in
    the buffers of connections and of the kernel, which are bounded, and no call has been made for it.
    """

    def __init__(self) -> None:
        self._gate = trio.Semaphore(1)

    async def through(self) -> None:
        """Wait for one's turn. A checkpoint; cancelled, the turn is somebody else's."""
        # Whoever gets the semaphore has it until it runs again: in the next pass.
        async with self._gate:
            pass
