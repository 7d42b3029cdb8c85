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
    """The bytes that one stream has yet to send. `push` and `drain` wait for the peer, and can be cancelled at no cost.

    Both raise `StreamStalledError` when nothing at all could be sent for `stall_s` seconds, which `check` finds.
    """

    def __init__(self, stall_s: float) -> None:
        # The events of the base class are those of its own ways to wait, of which none is left.
        super().__init__(cast(Any, object))
        self._stall_s = stall_s
        self._sent = ParkingLot()
        self._over = False
        self._stuck_since = inf
        self._stalled = False
        self.queued = False
        """Whether the stream is in the order of sending; it is from the first part on that has to wait."""

    @property
    def ended(self) -> bool:
        """Whether the application has said all it had to say."""
        return self._complete

    async def push(self, data: bytes | memoryview) -> None:
        """Append, then wait until all is handed to the connection. Raises `PeerGoneError` when the stream is over."""
        if self._complete:
            raise PeerGoneError("the stream is over")
        self.buffer.extend(data)
        while self.buffer:
            await self._progress()
        if self._over:
            raise PeerGoneError("the stream was reset")

    async def drain(self) -> None:
        """Wait until all is handed to the connection, the end of the stream included if it was set."""
        while self.buffer or (self._complete and not self._over):
            await self._progress()

    def check(self, now: float) -> None:
        """Let go of who waits if nothing was sent for too long."""
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
        """Forget what is there and let go of everyone who waits."""
        self.finish()

    def finish(self) -> None:
        """Close without `await`: the end of the stream is sent, or nothing will be any more."""
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
