"""The send queue of one tool host. Only the host's own connection waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

# The bound for answers to the host's own requests. Above it, no more of its messages are read.
_REPLY_BYTES = 64 * 1024


class QueueFullError(Exception):
    """The host reads too slowly: there is no room for another dispatch."""


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    body: bytes
    dispatch: str | None
    reply: bool


class Outgoing:
    """The queue of one connection and its one writer.

    Dispatches have room for `most_bytes`. A `tool.cancel` always has room: there is at most one for each dispatch in
    flight.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._frames: deque[_Frame] = deque()
        self._bytes = 0
        self._reply_bytes = 0
        self._writing = False
        self._broken = False
        self._came = trio.lowlevel.ParkingLot()
        self._left = trio.lowlevel.ParkingLot()

    @property
    def unsent(self) -> int:
        """The bytes that wait for the socket."""
        return self._bytes

    def dispatch(self, body: bytes, dispatch: str) -> None:
        """Send a `tool.dispatch`. Raises `QueueFullError`."""
        # A larger one may wait alone: arguments have a bound of their own.
        if self._frames and self._bytes + len(body) > self._most:
            raise QueueFullError
        self._append(_Frame(body, dispatch, reply=False))

    def take_back(self, dispatch: str) -> bool:
        """Remove an unsent `tool.dispatch`; returns False if it was sent."""
        # The writer may be sending the first message already.
        for frame in [*self._frames][self._writing :]:
            if frame.dispatch == dispatch:
                self._frames.remove(frame)
                self._forget(frame)
                return True
        return False

    def send(self, body: bytes, *, reply: bool) -> None:
        """Send another message."""
        self._append(_Frame(body, None, reply))

    def _append(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.body)
        self._reply_bytes += len(frame.body) if frame.reply else 0
        self._came.unpark_all()

    def _forget(self, frame: _Frame) -> None:
        self._bytes -= len(frame.body)
        self._reply_bytes -= len(frame.body) if frame.reply else 0
        self._left.unpark_all()

    async def wait_room(self) -> None:
        """Wait until the host has read enough of its answers."""
        while self._reply_bytes > _REPLY_BYTES and not self._broken:
            await self._left.park()

    async def wait_empty(self) -> None:
        """Wait until the queue is empty, or the socket takes no more."""
        while self._frames and not self._broken:
            await self._left.park()

    async def write(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send one message after the other until cancelled. Raises `OSError` when the host's side takes no more."""
        while True:
            while not self._frames:
                await self._came.park()
            frame = self._frames[0]
            self._writing = True
            try:
                await send(frame.body)
            except OSError:
                self._broken = True
                self._left.unpark_all()
                raise
            finally:
                self._writing = False
            self._frames.popleft()
            self._forget(frame)
