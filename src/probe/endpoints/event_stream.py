"""Writes a stream as server-sent events: the one writer of one response.

    priming event (id, empty data, retry) -> messages from the cursor on, replayed or live -> the end

The priming event, and its like before a hang-up, are of revision 2025-11-25. Clients of older ones take the empty data
for a message and fail on it, and some of their parsers dispatch an event for `id` or `retry` alone, so they are sent
nothing but messages. A stream that cannot be resumed has neither ids nor a priming event.

It ends when the stream has ended and everything is written, when the stream hangs up or another connection takes it
over, and when the client goes. The work behind the stream notices none of this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ..core.replay import EvictedError
from ..engine.streams import Reader, Stream
from ..wire import sse
from .asgi import Receive, Send, wait_disconnect

# Enough to keep a socket busy; a reader that resumes a full log is not handed megabytes at once.
_CHUNK_BYTES = 64 * 1024


class EventStream:
    """One response that carries a stream from a cursor on.

    `ended_by` says why it is over, `written` how many messages it carried. With `primes` it begins with a priming
    event. A comment is sent after each `keep_alive_s` seconds without anything else.
    """

    def __init__(
        self,
        stream: Stream,
        cursor: int,
        exchange: int,
        *,
        retry_ms: int,
        keep_alive_s: float,
        primes: bool = False,
    ) -> None:
        self._stream = stream
        self._cursor = cursor
        self._exchange = exchange
        self._retry_ms = retry_ms
        self._keep_alive_s = keep_alive_s
        self._primes = primes
        self._sent_at = trio.current_time()
        self._silent = False
        self.written = 0
        self.ended_by = "server"

    async def run(self, reader: Reader, receive: Receive, send: Send) -> None:
        """Write until the end; the head of the response has been sent. Watches for the client's going meanwhile."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, receive, nursery.cancel_scope)
            await self._write(reader, send)
            nursery.cancel_scope.cancel()

    async def write(self, reader: Reader, send: Send) -> None:
        """Write until the end; for a caller that watches for the client's going itself, and then cancels this."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_alive, trio.sleep_forever)
            await self._write(reader, send)
            nursery.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: trio.CancelScope) -> None:
        async def learn() -> None:
            by = await wait_disconnect(receive)
            # A disconnect is told after each complete response, too: whoever went first ended it.
            if self.ended_by == "server":
                self.ended_by = by

        await self._keep_alive(learn)
        scope.cancel()

    async def _keep_alive(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Until `wait` returns, tell the writer when it has sent nothing for too long.

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
                self._silent = True
                self._stream.ring()
                due = now + self._keep_alive_s

    async def _write(self, reader: Reader, send: Send) -> None:
        stream = self._stream
        if self._primes:
            await self._part(send, self._event(self._cursor, b"", retry=True))
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
            if self._silent:
                await self._part(send, sse.comment("keep-alive"))
            else:
                await stream.wait_changed()

    async def _write_available(self, send: Send) -> None:
        while self._cursor < self._stream.replay.last:
            first = self._cursor + 1
            await self._part(send, self._next_chunk())
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
        if self._primes and not self._stream.replay.closed:
            # "If the server does close the connection prior to terminating the SSE stream, it SHOULD send an SSE event
            # with a standard `retry` field before closing the connection."
            await self._part(send, self._event(self._cursor, b"", retry=True))
        await self._part(send, b"", more=False)

    async def _part(self, send: Send, body: bytes, *, more: bool = True) -> None:
        """Returns when the socket has taken it."""
        try:
            await send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:
            # The client has gone. Who watches for that is told so too, with the reason, and cancels this.
            await trio.sleep_forever()
        self._sent_at = trio.current_time()
        self._silent = False


def event_position(id: str) -> tuple[str, int] | None:
    """The stream and the cursor of a `Last-Event-ID`; None for one that this server cannot have sent."""
    stream, _, number = id.rpartition("-")
    if not stream or not number.isascii() or not number.isdecimal() or len(number) > 12:
        return None
    return stream, int(number)
