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
    """The extension `frame_facts.FRAMES` for a listener without it."""


class WebSocketWire:
    """The `Wire` of one accepted WebSocket. `pace` returns the seconds that a message of a given size has to wait.

    `tell_frames` is the listener's extension `frame_facts.FRAMES`, or `has_no_frames`.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        pace: Callable[[int], float] = _at_once,
        tell_frames: Callable[[NoteFrame], None] = has_no_frames,
    ) -> None:
        self.closed: Closed | None = None
        """The end of the connection, set before `receive` returns None."""
        self._receive = receive
        self._send = send
        self._pace = pace
        self._tell_frames = tell_frames
        self._frames = FrameFacts(trio.current_time)
        self._waiting: str | None = None
        self._due = 0.0

    def opened(self, recorder: Recorder) -> None:
        """The connection is recorded."""
        self._frames.opened(recorder)
        self._tell_frames(self._frames.note)

    async def receive(self) -> bytes | None:
        """The next message, or None at the end of the connection. Raises `WireBrokenError` for a binary frame."""
        if self._waiting is None:
            self._waiting = await self._next()
            if self._waiting is None:
                return None
            self._due = trio.current_time() + self._pace(len(self._waiting))
        else:
            await trio.lowlevel.checkpoint()
        # A receiver that is cancelled here finds the message again. A sleep that is over at once would raise and catch
        # a `Cancelled`; both branches above had a checkpoint already.
        if self._due > trio.current_time():
            await trio.sleep_until(self._due)
        text, self._waiting = self._waiting, None
        return text.encode()

    async def _next(self) -> str | None:
        if self.closed is not None:
            return None
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            # ASGI has no reason here; our listener adds one if the server ended the connection.
            self.closed = Closed(event["code"], event.get("reason") or "client")
            return None
        text = event.get("text")
        if text is None:
            self._frames.note("received", "binary", len(event.get("bytes") or b""), "messages are text")
            raise WireBrokenError(_UNSUPPORTED_DATA, "a binary frame; messages are text")
        return str(text)

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the socket has taken it. Raises `OSError` if it cannot."""
        await self._send({"type": "websocket.send", "text": message.decode()})

    async def close(self, code: int, why: str) -> Closed:
        """Close, unless it is over. The peer has some seconds to answer; its later messages are dropped."""
        await self._send({"type": "websocket.close", "code": code, "reason": why})
        while self.closed is None:
            try:
                await self._next()
            except WireBrokenError:
                continue
        return self.closed
