"""The wire of one accepted WebSocket: one message in each text frame, and the close codes."""

from __future__ import annotations

from collections.abc import Callable

import trio

from ....engine.pipes.wires import Closed, WireBrokenError
from ....log.context import Recorder
from ..asgi import Receive, Send
from .frame_facts import FrameFacts, NoteFrame

_UNSUPPORTED_DATA = 1003


def _at_once(_size: int) -> float:
    return 0.0


def has_no_frames(_note: NoteFrame) -> None:
    """Does nothing, for a listener without the extension: it tells no frames."""


class WebSocketWire:
    """The `Wire` of one accepted WebSocket. `pace` says of each message how many seconds it has to wait by its size.

    `tell_frames` is the extension `frame_facts.FRAMES` of the listener, if it has that.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        pace: Callable[[int], float] = _at_once,
        tell_frames: Callable[[NoteFrame], None] = has_no_frames,
    ) -> None:
        self.closed: Closed | None = None
        """How the connection has ended, once `receive` has given None."""
        self._receive = receive
        self._send = send
        self._pace = pace
        self._tell_frames = tell_frames
        self._frames = FrameFacts(trio.current_time)
        self._waiting: str | None = None
        self._due = 0.0

    def opened(self, recorder: Recorder) -> None:
        """The connection is in the log."""
        self._frames.opened(recorder)
        self._tell_frames(self._frames.note)

    async def receive(self) -> bytes | None:
        """The next message, or None when the connection is over. Raises `WireBrokenError` for a binary one."""
        if self._waiting is None:
            self._waiting = await self._next()
            if self._waiting is None:
                return None
            self._due = trio.current_time() + self._pace(len(self._waiting))
        else:
            await trio.lowlevel.checkpoint()
        # Kept meanwhile: whoever stops waiting for a message comes again.
        # A sleep that is over at once raises and catches a `Cancelled`; a checkpoint lies behind this already.
        if self._due > trio.current_time():
            await trio.sleep_until(self._due)
        text, self._waiting = self._waiting, None
        return text.encode()

    async def _next(self) -> str | None:
        if self.closed is not None:
            return None
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            # ASGI has no reason here; our listener gives one where it was not the client.
            self.closed = Closed(event["code"], event.get("reason") or "client")
            return None
        text = event.get("text")
        if text is None:
            self._frames.note("received", "binary", len(event.get("bytes") or b""), "messages are text")
            raise WireBrokenError(_UNSUPPORTED_DATA, "a binary frame; messages are text")
        return str(text)

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the socket has taken it. Raises `OSError` when it will not."""
        await self._send({"type": "websocket.send", "text": message.decode()})

    async def close(self, code: int, why: str) -> Closed:
        """Close, unless it is over: the peer has some seconds to answer. Messages that it still sends are dropped."""
        await self._send({"type": "websocket.close", "code": code, "reason": why})
        while self.closed is None:
            try:
                await self._next()
            except WireBrokenError:
                continue
        return self.closed
