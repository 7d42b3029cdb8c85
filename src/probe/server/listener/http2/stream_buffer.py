"""The unsent bytes of one HTTP/2 stream: hypercorn's `StreamBuffer`, bounded."""

from __future__ import annotations

from math import inf
from typing import Any, cast

import trio
from hypercorn.protocol.h2 import StreamBuffer
from trio.lowlevel import ParkingLot

from ..outbox import PeerGoneError


class StreamStalledError(Exception):
    """The peer has granted a stream no window for the whole write timeout."""


class BoundedBuffer(StreamBuffer):
    """The unsent bytes of one stream. `push` and `drain` wait for the peer; cancelling them is harmless.

    Both raise `StreamStalledError` if no byte could be sent for `stall_s` seconds, which `check` finds.
    """

    def __init__(self, stall_s: float) -> None:
        # The base class waits with these events, but all its methods that wait are replaced.
        super().__init__(cast(Any, object))
        self._stall_s = stall_s
        self._sent = ParkingLot()
        self._over = False
        self._stuck_since = inf
        self._stalled = False
        self.queued = False
        """Whether the stream is in the order of sending: from its first part that has to wait."""

    @property
    def ended(self) -> bool:
        """Whether the application has sent its last part."""
        return self._complete

    async def push(self, data: bytes | memoryview) -> None:
        """Append, then wait until all bytes are handed to the connection.

        Raises `PeerGoneError` if the stream is over.
        """
        if self._complete:
            raise PeerGoneError("the stream is over")
        self.buffer.extend(data)
        while self.buffer:
            await self._progress()
        if self._over:
            raise PeerGoneError("the stream was reset")

    async def drain(self) -> None:
        """Wait until all bytes are handed to the connection, with the end of the stream if it was set."""
        while self.buffer or (self._complete and not self._over):
            await self._progress()

    def check(self, now: float) -> None:
        """Wake the waiting tasks with an error if no byte was sent for too long."""
        if now - self._stuck_since >= self._stall_s:
            self._stalled = True
            self._sent.unpark_all()

    async def pop(self, max_length: int) -> bytes:
        """The next bytes, at most `max_length`."""
        data = bytes(self.buffer[:max_length])
        del self.buffer[:max_length]
        if data:
            self._sent.unpark_all()
        return data

    async def close(self) -> None:
        """Drop the bytes and wake the waiting tasks."""
        self.finish()

    def finish(self) -> None:
        """Close without `await`: the end of the stream is sent, or can no longer be sent."""
        self._complete = self._over = True
        self.buffer.clear()
        self._sent.unpark_all()

    async def _progress(self) -> None:
        self._stuck_since = trio.current_time()
        try:
            await self._sent.park()
        finally:
            self._stuck_since = inf
        if self._stalled:
            raise StreamStalledError
