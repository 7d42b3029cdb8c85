"""Writes streams as server-sent events: the one writer of one response.

    priming event (id, empty data, retry) -> messages from the cursor on, replayed or live -> the end

The priming event, and its like before a hang-up, are of revision 2025-11-25. Clients of older ones take the empty data
for a message and fail on it, and some of their parsers dispatch an event for `id` or `retry` alone, so they are sent
nothing but messages. A stream that cannot be resumed has neither ids nor a priming event.

It ends when every stream has ended and everything is written, has hung up or was taken over by another connection, and
when the client goes. The work behind the streams notices none of this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

import trio

from ..engine.streams.reading import Piece, Reading, Track
from ..observe.events import Control
from ..wire import sse
from .asgi import Receive, Send, wait_disconnect

# Enough to keep a socket busy; a reader that resumes a full log is not handed megabytes at once.
_CHUNK_BYTES = 64 * 1024


class EventStream:
    """One response that carries what its exchange reads.

    `ended_by` says why it is over, `written` how many messages it carried. With `primes` it begins with a priming
    event. A comment is sent after each `keep_alive_s` seconds without anything else, unless a stream forbids it.
    """

    def __init__(self, reading: Reading, *, retry_ms: int, keep_alive_s: float, primes: bool = False) -> None:
        self._reading = reading
        self._retry_ms = retry_ms
        self._keep_alive_s = keep_alive_s
        self._primes = primes
        self._sent_at = trio.current_time()
        self._silent = False
        self.written = 0
        self.ended_by = "server"

    async def run(self, receive: Receive, send: Send) -> None:
        """Write until the end; the head of the response has been sent. Watches for the client's going meanwhile."""

        async def learn() -> None:
            by = await wait_disconnect(receive, self._ask_whether_it_reads)
            # A disconnect is told after each complete response, too: whoever went first ended it.
            if self.ended_by == "server":
                self.ended_by = by

        await self.write(send, learn)

    async def write(self, send: Send, wait_gone: Callable[[], Awaitable[None]]) -> None:
        """Write until the end, or until `wait_gone` returns; that is cancelled and called again at times."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, wait_gone, nursery.cancel_scope)
            await self._write(send)
            nursery.cancel_scope.cancel()

    async def _watch(self, wait_gone: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
        await self._keep_alive(wait_gone)
        scope.cancel()

    async def _keep_alive(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Wake the writer whenever it has sent nothing for too long, until `wait` returns.

        Not a timer of the writer's, which would have to be set and cleared for each message.
        """
        due = self._sent_at + self._keep_alive_s
        while True:
            with trio.move_on_at(due) as pause:
                await wait()
            if not pause.cancelled_caught:
                return
            now = trio.current_time()
            due = self._sent_at + self._keep_alive_s
            if due <= now:
                if self._reading.comments:
                    self._ask_whether_it_reads()
                due = now + self._keep_alive_s

    def _ask_whether_it_reads(self) -> None:
        """A client that has closed answers the next bytes with a reset; one that still reads skips a comment."""
        self._silent = True
        self._reading.ring()

    async def _write(self, send: Send) -> None:
        reading = self._reading
        if self._primes and reading.first is not None:
            await self._prime(send, reading.first, "priming")
        while True:
            piece = reading.take(_CHUNK_BYTES)
            if piece is not None:
                await self._part(send, self._events(piece))
                reading.taken(piece)
                self.written += len(piece.messages)
            elif not reading:
                return await self._leave(send)
            elif self._silent:
                await self._part(send, sse.comment("keep-alive"))
                reading.controlled(reading.latest, "comment")
            else:
                await reading.wait_changed()

    def _events(self, piece: Piece) -> bytes:
        stream, places = piece.track.stream, count(piece.first)
        if not stream.resumable:
            return b"".join(map(sse.event, piece.messages))
        return b"".join(
            sse.event(message, id=f"{stream.id}-{place}")
            for message, place in zip(piece.messages, places, strict=False)
        )

    async def _prime(self, send: Send, track: Track, what: Control) -> None:
        id = f"{track.stream.id}-{track.cursor}"
        await self._part(send, sse.event(b"", id=id, retry_ms=self._retry_ms))
        self._reading.controlled(track, what, id, self._retry_ms)

    async def _leave(self, send: Send) -> None:
        last = self._reading.latest
        if last is not None and last.ended is not None:
            self.ended_by = last.ended
            if self._primes and not last.stream.replay.closed:
                # "If the server does close the connection prior to terminating the SSE stream, it SHOULD send an SSE
                # event with a standard `retry` field before closing the connection."
                await self._prime(send, last, "retry")
        await self._part(send, b"", more=False)

    async def _part(self, send: Send, body: bytes, *, more: bool = True) -> None:
        """Returns when the socket has taken it."""
        try:
            await send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:
            # The client has gone. The task that watches for that is told so too, with the reason, and cancels this one.
            await trio.sleep_forever()
        self._sent_at = trio.current_time()
        self._silent = False


def event_position(id: str) -> tuple[str, int] | None:
    """The stream and the cursor of a `Last-Event-ID`; None for one that this server cannot have sent."""
    stream, _, number = id.rpartition("-")
    if not stream or not number.isascii() or not number.isdecimal() or len(number) > 12:
        return None
    return stream, int(number)
