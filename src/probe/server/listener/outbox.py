"""The one write path of a connection.

hypercorn writes from the task that has something to say, under a shield, because cancelling it halfway would leave a
torn frame on the wire. So a peer that stops reading holds every writer for good. Here everyone appends to a buffer,
whole pieces in one step, and waits (if at all) only for the buffer to shrink: a wait that can be cancelled at no cost.
One writer task per connection empties it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio
from trio.lowlevel import Abort, ParkingLot, Task


class PeerGoneError(OSError):
    """The bytes cannot be delivered any more: the peer has left, or it was disconnected."""


HIGH_WATER = 64 * 1024
"""Bytes above which `put` waits: one default HTTP/2 window, enough to keep a socket busy between two task switches."""

CONTROL_ROOM = HIGH_WATER
"""Bytes above the high-water mark for what the reader answers itself (acknowledgements, window updates, resets): it
goes on reading while the application's data is stuck, so a reset is seen, and stops only for a peer that floods."""

PIECE = 16 * 1024
"""Bytes per write: the largest TLS record and HTTP/2 frame. The write timeout runs for each piece anew, so what it
demands of a slow reader is less than a kilobyte per second by default."""


def _nothing() -> None:
    pass


class Outbox:
    """Bytes on their way out, in order. Bounded by the high-water mark plus one message of each waiting writer.

    `taken` is called, in the writer's task, each time that the socket has taken a piece; it neither waits nor raises.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._written = 0
        self._sent = 0
        self._under_way = 0
        self._filled = ParkingLot()
        self._emptied = ParkingLot()
        # The tasks that wait for a delivery, each with the byte up to which it waits, in ascending order: a write wakes
        # no others. No parking lot, because a task that is cancelled has to leave it and its byte in one step.
        self._waiting: deque[tuple[int, Task]] = deque()
        self._closed = False
        self._discarded = False
        self.taken: Callable[[], None] = _nothing
        self.turns = 0
        """The number of times that the writer woke up; as long as it is unchanged, a sender has not let others run."""

    def __len__(self) -> int:
        """Bytes that the writer has yet to take."""
        return len(self._bytes)

    def write(self, data: bytes) -> None:
        """Append without waiting; dropped after `close`. For control frames, whose number the reader bounds."""
        if not self._closed:
            self._bytes += data
            self._written += len(data)
            self._filled.unpark_all()

    async def put(self, data: bytes) -> None:
        """Append, then wait until the buffer is below the high-water mark. Cancelled or not, `data` is sent whole."""
        self.write(data)
        await self.room(HIGH_WATER)

    async def room(self, limit: int) -> None:
        """Wait until at most `limit` bytes are left."""
        while len(self._bytes) > limit:
            await self._emptied.park()

    async def delivered(self) -> None:
        """Wait until the socket has taken all that was written before.

        Raises `PeerGoneError` when it will not, and after `close`, because what was written then was dropped.
        """
        if self._closed:
            raise PeerGoneError("the connection is over")
        mark = self._written
        if self._sent < mark and not self._discarded:
            await self._wait_for(mark)
        if self._sent < mark:
            raise PeerGoneError("the connection broke")

    async def _wait_for(self, mark: int) -> None:
        waiter = (mark, trio.lowlevel.current_task())

        def leave(_raise_cancel: object) -> Abort:
            self._waiting.remove(waiter)
            return Abort.SUCCEEDED

        self._waiting.append(waiter)
        await trio.lowlevel.wait_task_rescheduled(leave)

    async def take(self) -> bytes:
        """The next piece to write; empty when all is written and the outbox is closed.

        To ask for it says that the socket has taken the piece before.
        """
        self.turns += 1
        self._sent += self._under_way
        self._under_way = 0
        self._emptied.unpark_all()
        while self._waiting and self._waiting[0][0] <= self._sent:
            self._wake_first()
        self.taken()
        while not self._bytes and not self._closed:
            await self._filled.park()
        piece = bytes(self._bytes[:PIECE])
        del self._bytes[:PIECE]
        self._under_way = len(piece)
        return piece

    def close(self) -> None:
        """Accept nothing more; what is there is still to be taken."""
        self._closed = True
        self._filled.unpark_all()

    def discard(self) -> None:
        """Close, and forget what is there: nobody will read it."""
        self._bytes.clear()
        self._discarded = True
        self.close()
        self._emptied.unpark_all()
        while self._waiting:
            self._wake_first()

    def _wake_first(self) -> None:
        _, task = self._waiting.popleft()
        trio.lowlevel.reschedule(task)
