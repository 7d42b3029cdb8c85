"""The one write path of a connection.

hypercorn writes from the task that has something to say, under a shield, because cancelling it halfway would leave a
torn frame on the wire. So a peer that stops reading holds every writer for good. Here everyone appends to a buffer,
whole pieces in one step, and waits (if at all) only for the buffer to shrink: a wait that can be cancelled at no cost.
One writer task per connection empties it.
"""

from __future__ import annotations

from trio.lowlevel import ParkingLot

HIGH_WATER = 64 * 1024
"""Bytes above which `put` waits: one default HTTP/2 window, enough to keep a socket busy between two task switches."""

CONTROL_ROOM = HIGH_WATER
"""Bytes above the high-water mark for what the reader answers itself (acknowledgements, window updates, resets): it
goes on reading while the application's data is stuck, so a reset is seen, and stops only for a peer that floods."""

PIECE = 16 * 1024
"""Bytes per write: the largest TLS record and HTTP/2 frame. The write timeout runs for each piece anew, so what it
demands of a slow reader is less than a kilobyte per second by default."""


class Outbox:
    """Bytes on their way out, in order. Bounded by the high-water mark plus one message of each waiting writer."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._changed = ParkingLot()
        self._closed = False

    def __len__(self) -> int:
        """Bytes that the writer has yet to take."""
        return len(self._bytes)

    def write(self, data: bytes) -> None:
        """Append without waiting; dropped after `close`. For control frames, whose number the reader bounds."""
        if not self._closed:
            self._bytes += data
            self._changed.unpark_all()

    async def put(self, data: bytes) -> None:
        """Append, then wait until the buffer is below the high-water mark. Cancelled or not, `data` is sent whole."""
        self.write(data)
        await self.room(HIGH_WATER)

    async def room(self, limit: int) -> None:
        """Wait until at most `limit` bytes are left."""
        while len(self._bytes) > limit:
            await self._changed.park()

    async def take(self) -> bytes:
        """The next piece to write; empty when all is written and the outbox is closed."""
        while not self._bytes and not self._closed:
            await self._changed.park()
        piece = bytes(self._bytes[:PIECE])
        del self._bytes[:PIECE]
        self._changed.unpark_all()
        return piece

    def close(self) -> None:
        """Accept nothing more; what is there is still to be taken."""
        self._closed = True
        self._changed.unpark_all()

    def discard(self) -> None:
        """Close, and forget what is there: nobody will read it."""
        self._bytes.clear()
        self.close()
