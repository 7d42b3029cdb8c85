"""Writes streams as server-sent events: one writer for one response.

    priming event (id, empty data, retry) -> messages from the cursor on, replayed or live -> the end

The priming event, and its repetition before the server closes, belong to revision 2025-11-25. Older clients parse the
empty data as a message and fail, and some dispatch an event for `id` or `retry` alone, so they get only messages. A
stream that cannot be resumed has no ids.

The response ends when each stream is at its end, closed for a reconnect, or taken over by another connection; or when
the client goes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import trio

from ...core.callbacks import nothing
from ...engine.streams.reading import Piece, Reading, Track
from ...log.events import Control
from ...wire import sse
from .asgi import Receive, Send, disconnected_by, watch

# Enough to keep a socket busy.
_CHUNK_BYTES = 64 * 1024


Rest: TypeAlias = Callable[[], Awaitable[None]]
"""The rest of a response. The code that began the exchange awaits it, so an open stream does not hold other frames."""


class EventStream:
    """One response that carries the streams of its exchange.

    With `primes` it begins with a priming event. After `keep_alive_s` seconds without output it sends a comment, unless
    a stream forbids that. `on_gone` gets `client`, or the reason why the server cut it off. With `outlasts_half_close`
    a client that ended only its own direction counts as present.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        retry_ms: int,
        keep_alive_s: float,
        primes: bool = False,
        outlasts_half_close: bool = True,
        on_gone: Callable[[str], None] = nothing,
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
        reading = self._reading
        async with trio.open_nursery() as nursery:
            self._writing = nursery.cancel_scope
            nursery.start_soon(watch, receive, self._disconnected, self._keep_alive)
            if self._primes and (first := reading.first) is not None:
                await self._prime(send, first, "priming")
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
        """Stop writing if the client has gone; probe a client that may have ended only its own direction."""
        if self._outlasts_half_close and event.get("half_closed"):
            self._ask_whether_it_reads()
        elif not self._writing.cancel_called:
            by = disconnected_by(event)
            # ASGI sends a disconnect after a complete response too; the side that ended first counts.
            if self.ended_by == "server":
                self.ended_by = by
            self._writing.cancel()
            self._on_gone(by)

    def _keep_alive(self) -> float:
        """Send a comment if there was no output for `keep_alive_s`; returns when to call this again."""
        now = trio.current_time()
        due = self._sent_at + self._keep_alive_s
        if due > now:
            return due
        if self._reading.comments:
            self._ask_whether_it_reads()
        return now + self._keep_alive_s

    def _ask_whether_it_reads(self) -> None:
        """Send a comment: a client that has closed answers with a reset."""
        self._silent = True
        self._reading.wake()

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
        try:
            await send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:
            # The task that watches for the disconnect gets the reason, and cancels this one.
            await trio.sleep_forever()
        self._sent_at = trio.current_time()
        self._silent = False


def event_position(id: str) -> tuple[str, int] | None:
    """The stream and the cursor of a `Last-Event-ID`; None for an id that this server cannot have sent."""
    stream, _, number = id.rpartition("-")
    if not stream or not number.isascii() or not number.isdecimal() or len(number) > 12:
        return None
    return stream, int(number)
