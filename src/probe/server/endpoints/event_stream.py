"""Writes streams as server-sent events: the one writer of one response.

    priming event (id, empty data, retry) -> messages from the cursor on, replayed or live -> the end

The priming event, and its like before a hang-up, are of revision 2025-11-25. Clients of older ones take the empty data
for a message and fail on it, and some of their parsers dispatch an event for `id` or `retry` alone, so they are sent
nothing but messages. A stream that cannot be resumed has neither ids nor a priming event.

It ends when every stream has ended and everything is written, has hung up or was taken over by another connection, and
when the client goes. The work behind the streams notices none of this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import trio

from ...engine.streams.reading import Piece, Reading, Track
from ...log.events import Control
from ...wire import sse
from .asgi import Receive, Send, disconnected_by, watch

# Enough to keep a socket busy; a reader that resumes a full log is not handed megabytes at once.
_CHUNK_BYTES = 64 * 1024


Rest: TypeAlias = Callable[[], Awaitable[None]]
"""The rest of a response that may last. The code that began the exchange awaits it, once.

The functions in between return it and end, so an open stream does not hold their frames.
"""


def _nobody(_by: str) -> None:
    pass


class EventStream:
    """One response that carries what its exchange reads.

    `ended_by` says why it is over, `written` how many messages it carried. With `primes` it begins with a priming
    event. A comment is sent after each `keep_alive_s` seconds without anything else, unless a stream forbids it.
    `on_gone` is told when the client has gone: `client`, or why the server cut it off. With `outlasts_half_close`
    a client that has ended only its own direction still counts as present.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        retry_ms: int,
        keep_alive_s: float,
        primes: bool = False,
        outlasts_half_close: bool = True,
        on_gone: Callable[[str], None] = _nobody,
    ) -> None:
        self._reading = reading
        self._outlasts_half_close = outlasts_half_close
        self._on_gone = on_gone
        self._retry_ms = retry_ms
        self._keep_alive_s = keep_alive_s
        self._primes = primes
        self._sent_at = trio.current_time()
        self._silent = False
        self._writing = trio.CancelScope()
        self.written = 0
        self.ended_by = "server"

    async def run(self, send: Send, receive: Receive) -> None:
        """Write until the end, or until the client has gone. The head of the response has been sent."""
        reading = self._reading
        async with trio.open_nursery() as nursery:
            self._writing = nursery.cancel_scope
            nursery.start_soon(watch, receive, self._disconnected, self._keep_alive)
            if self._primes and reading.first is not None:
                await self._prime(send, reading.first, "priming")
            while True:
                piece = reading.take(_CHUNK_BYTES)
                if piece is not None:
                    await self._part(send, self._events(piece))
                    reading.taken(piece)
                    self.written += len(piece.messages)
                elif not reading:
                    break
                elif self._silent:
                    await self._part(send, sse.comment("keep-alive"))
                    reading.controlled(reading.latest, "comment")
                else:
                    await reading.wait_changed()
            await self._leave(send)
            self._writing.cancel()

    def _disconnected(self, event: Mapping[str, Any]) -> None:
        """Stop writing when the client has gone; one that may only have ended its own direction is asked."""
        if self._outlasts_half_close and event.get("half_closed"):
            self._ask_whether_it_reads()
        elif not self._writing.cancel_called:
            by = disconnected_by(event)
            # A disconnect is told after each complete response, too: whoever went first ended it.
            if self.ended_by == "server":
                self.ended_by = by
            self._writing.cancel()
            self._on_gone(by)

    def _keep_alive(self) -> float:
        """Break the silence, if there was nothing but that for long enough; returns when to look again.

        Each stream that is open is looked at so, in place of a timer that would have to be set for each message.
        """
        now = trio.current_time()
        due = self._sent_at + self._keep_alive_s
        if due > now:
            return due
        if self._reading.comments:
            self._ask_whether_it_reads()
        return now + self._keep_alive_s

    def _ask_whether_it_reads(self) -> None:
        """A client that has closed answers the next bytes with a reset; one that still reads skips a comment."""
        self._silent = True
        self._reading.ring()

    def _events(self, piece: Piece) -> bytes:
        stream, messages = piece.track.stream, piece.messages
        if not stream.resumable:
            return b"".join(map(sse.event, messages))
        if len(messages) == 1:
            return sse.event(messages[0], id=f"{stream.id}-{piece.first}")
        places = enumerate(messages, piece.first)
        return b"".join([sse.event(message, id=f"{stream.id}-{place}") for place, message in places])

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
            # The client has gone. Whoever watches for that is told so too, with the reason, and cancels this.
            await trio.sleep_forever()
        self._sent_at = trio.current_time()
        self._silent = False


def event_position(id: str) -> tuple[str, int] | None:
    """The stream and the cursor of a `Last-Event-ID`; None for one that this server cannot have sent."""
    stream, _, number = id.rpartition("-")
    if not stream or not number.isascii() or not number.isdecimal() or len(number) > 12:
        return None
    return stream, int(number)
