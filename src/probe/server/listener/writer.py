"""The task that writes the buffer of a connection to its stream, and then closes the stream."""

from __future__ import annotations

from math import inf

import trio

from .outbox import Outbox
from .times import FLUSH_S, LINGER_S


class Writer:
    """The writer of a connection with several sending tasks, so that none can tear the bytes of another.

    `lingers`: the peer may still be sending when all is written; closing at once could destroy bytes that it has not
    read.
    """

    def __init__(self, stream: trio.abc.Stream, outbox: Outbox) -> None:
        self._stream = stream
        self._outbox = outbox
        # Shielded, because a torn frame is worse than none; `cut` and `hurry` bound it.
        self._scope = trio.CancelScope(shield=True)
        self._sending_since = inf
        self.lingers = False
        self.peer_left = trio.Event()

    async def run(self) -> None:
        """Write until the buffer is closed and empty or the stream breaks; then close the stream."""
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
        # Application calls may take longer to end; they do not keep the socket.
        await trio.aclose_forcefully(self._stream)

    def is_stuck(self, now: float, timeout_s: float) -> bool:
        """Whether the peer has taken no bytes of the present write for `timeout_s` seconds."""
        return now - self._sending_since >= timeout_s

    def hurry(self) -> None:
        """Give the rest of the buffer `FLUSH_S` seconds to be written."""
        self._scope.deadline = trio.current_time() + FLUSH_S

    def cut(self) -> None:
        """Stop writing, and close."""
        self._scope.cancel()

    async def _part(self) -> None:
        """End our direction after the last byte, give the peer time to read if it needs it, then close."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()
        if self.lingers:
            with trio.move_on_after(LINGER_S):
                await self.peer_left.wait()
        await self._stream.aclose()
