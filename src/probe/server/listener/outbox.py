"""The one write path of a connection with several sending tasks: a buffer, and the task that writes it.

hypercorn writes from each sending task, under a shield, because a cancelled write would tear a frame. So a peer that
stops reading blocks every sender for good. Here tasks append whole pieces to a buffer, and wait at most for it to
shrink; cancelling this wait is harmless.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

import trio
from trio.lowlevel import Abort, ParkingLot, Task

from ...core.callbacks import nothing
from .calls import PeerGoneError

HIGH_WATER = 64 * 1024
"""The bytes above which `put` waits: one default HTTP/2 window, enough for a socket between two task switches."""

CONTROL_ROOM = HIGH_WATER
"""The bytes above the high-water mark for the reader's own answers: acknowledgements, window updates, resets.

The reader goes on while the application's data is stuck, so that it sees a reset.
"""

PIECE = 16 * 1024
"""The bytes per write: the largest TLS record and HTTP/2 frame.

The write timeout starts anew for each: by default a slow reader has to take a kilobyte per second.
"""

CHECK_S = 0.25
"""The interval of checks for the end of a peer that has sent too much ahead."""

LINGER_S = 2.0
"""The time for a peer that was still sending to read the response; closing at once would reset it."""

FLUSH_S = 0.5
"""The time to send queued bytes when the connection has to end; it bounds shutdown, too."""

CALLS_END_S = 0.25
"""The time for cancelled calls to end, so that open requests get their 503; it bounds shutdown, too."""


class Outbox:
    """Outgoing bytes, in order. Bounded by the high-water mark and one message of each waiting sender.

    `taken` is called after each piece that the socket has taken; it neither waits nor raises.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._written = 0
        self._sent = 0
        self._under_way = 0
        self._filled = ParkingLot()
        self._emptied = ParkingLot()
        # The tasks that wait for a delivery, and up to which byte, in ascending order. Not a `ParkingLot`: a cancelled
        # task has to leave with its byte in one step.
        self._waiting: deque[tuple[int, Task]] = deque()
        self._closed = False
        self._discarded = False
        self.taken: Callable[[], None] = nothing
        self.turns = 0
        """While this number is unchanged, a sender has not let other tasks run."""

    def __len__(self) -> int:
        return len(self._bytes)

    def write(self, data: bytes) -> None:
        """Append a control frame without waiting; dropped after `close`. The reader bounds their number."""
        if not self._closed:
            self._bytes += data
            self._written += len(data)
            self._filled.unpark_all()

    async def put(self, data: bytes) -> None:
        """Append, then wait for the high-water mark. All of `data` is sent, also if cancelled."""
        self.write(data)
        await self.room(HIGH_WATER)

    async def room(self, limit: int) -> None:
        """Wait until at most `limit` bytes are left."""
        while len(self._bytes) > limit:
            await self._emptied.park()

    async def delivered(self) -> None:
        """Wait until the socket has taken all earlier bytes. Raises `PeerGoneError` if it cannot, and after `close`."""
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
        """The next piece, once the socket has taken the previous one; empty after the last one of a closed outbox."""
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
        """Accept no more bytes; the writer still takes those in the buffer."""
        self._closed = True
        self._filled.unpark_all()

    def discard(self) -> None:
        """Close, and drop the buffer, since the peer no longer reads."""
        self._bytes.clear()
        self._discarded = True
        self.close()
        self._emptied.unpark_all()
        while self._waiting:
            self._wake_first()

    def _wake_first(self) -> None:
        _, task = self._waiting.popleft()
        trio.lowlevel.reschedule(task)


class Writer:
    """The writer of an outbox. `lingers`: the peer may still be sending when all is written (see `LINGER_S`)."""

    def __init__(self, stream: trio.abc.Stream, outbox: Outbox) -> None:
        self._stream = stream
        self._outbox = outbox
        # Shielded, because a torn frame is worse than none; `cut` and `limit_rest` bound it.
        self._scope = trio.CancelScope(shield=True)
        self._sending_since = inf
        self.lingers = False
        self.peer_left = trio.Event()

    async def run(self) -> None:
        """Write until the buffer is closed and empty, or the stream breaks; then close that."""
        with self._scope:
            try:
                while piece := await self._outbox.take():
                    self._sending_since = trio.current_time()
                    await self._stream.send_all(piece)
                    self._sending_since = inf
                await self._part()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        self._sending_since = inf
        # The rest cannot be sent, so senders no longer wait.
        self._outbox.discard()
        # Application calls may take longer to end.
        await trio.aclose_forcefully(self._stream)

    def is_stuck(self, now: float, timeout_s: float) -> bool:
        """True if the peer has taken no bytes of the present write for `timeout_s` seconds."""
        return now - self._sending_since >= timeout_s

    def limit_rest(self) -> None:
        """Give the rest of the buffer `FLUSH_S` seconds to be written."""
        self._scope.deadline = trio.current_time() + FLUSH_S

    def cut(self) -> None:
        self._scope.cancel()

    async def _part(self) -> None:
        """End our direction, give the peer time to read if it needs it, then close."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()
        if self.lingers:
            with trio.move_on_after(LINGER_S):
                await self.peer_left.wait()
        await self._stream.aclose()
