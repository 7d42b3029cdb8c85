"""Writes a stream as server-sent events: the one writer of one response.

    priming event (id, empty data, retry) -> messages from the cursor on, replayed or live -> the end

A stream that cannot be resumed has neither ids nor the priming event, whose only use is to be resumed from.

It ends when the stream has ended and everything is written, when the stream hangs up or another connection takes it
over, and when the client goes. The work behind the stream notices none of this.
"""

from __future__ import annotations

import trio

from ..core.replay import EvictedError
from ..engine.streams import Reader, Stream
from ..wire import sse
from .asgi import Receive, Send, wait_disconnect

# Enough to keep a socket busy; a reader that resumes a full log is not handed megabytes at once.
_CHUNK_BYTES = 64 * 1024


class EventStream:
    """One response that carries a stream from a cursor on.

    `ended_by` says why it is over, `written` how many messages it carried.
    """

    def __init__(self, stream: Stream, cursor: int, exchange: int, *, retry_ms: int, keep_alive_s: float) -> None:
        self._stream = stream
        self._cursor = cursor
        self._exchange = exchange
        self._retry_ms = retry_ms
        self._keep_alive_s = keep_alive_s
        self.written = 0
        self.ended_by = "client"

    async def run(self, reader: Reader, receive: Receive, send: Send) -> None:
        """Write until the end; the head of the response has been sent. Watches for the client's going meanwhile."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, receive, nursery.cancel_scope)
            await self.write(reader, send)
            nursery.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: trio.CancelScope) -> None:
        await wait_disconnect(receive)
        scope.cancel()

    async def write(self, reader: Reader, send: Send) -> None:
        """Write until the end; the head of the response has been sent."""
        stream = self._stream
        if stream.resumable:
            await _part(send, self._event(self._cursor, b"", retry=True))
        while True:
            try:
                await self._write_available(send)
            except EvictedError:
                return await self._leave(send, "overflow: messages were lost before this reader got them")
            dismissal = stream.dismissed(reader)
            if dismissal is not None:
                return await self._leave(send, dismissal)
            if stream.replay.closed:
                return await self._leave(send, "end of stream")
            with trio.move_on_after(self._keep_alive_s) as quiet:
                await stream.wait_changed()
            if quiet.cancelled_caught:
                await _part(send, sse.comment("keep-alive"))

    async def _write_available(self, send: Send) -> None:
        while self._cursor < self._stream.replay.last:
            first = self._cursor + 1
            await _part(send, self._next_chunk())
            self._stream.delivered(first, self._cursor, self._exchange)

    def _next_chunk(self) -> bytes:
        chunk = bytearray()
        for message in self._stream.replay.after(self._cursor):
            self._cursor += 1
            self.written += 1
            chunk += self._event(self._cursor, message)
            if len(chunk) >= _CHUNK_BYTES:
                break
        return bytes(chunk)

    def _event(self, position: int, data: bytes, *, retry: bool = False) -> bytes:
        id = f"{self._stream.id}-{position}" if self._stream.resumable else None
        return sse.event(data, id=id, retry_ms=self._retry_ms if retry else None)

    async def _leave(self, send: Send, why: str) -> None:
        self.ended_by = why
        if self._stream.resumable and not self._stream.replay.closed:
            # "If the server does close the connection prior to terminating the SSE stream, it SHOULD send an SSE event
            # with a standard `retry` field before closing the connection."
            await _part(send, self._event(self._cursor, b"", retry=True))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _part(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


def event_position(id: str) -> tuple[str, int] | None:
    """The stream and the cursor of a `Last-Event-ID`; None for one that this server cannot have sent."""
    stream, _, number = id.rpartition("-")
    if not stream or not number.isascii() or not number.isdecimal() or len(number) > 12:
        return None
    return stream, int(number)
