"""The streams of an HTTP/2 connection: waiting requests, application calls, and unsent bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from math import inf
from typing import Any, TypeAlias, cast

import trio
from h2 import events
from hypercorn.config import Config
from hypercorn.protocol.h2 import StreamBuffer
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.typing import AppWrapper, ASGISendEvent
from hypercorn.typing import Scope as HypercornScope
from trio.lowlevel import ParkingLot

from ..calls import CONTAINED_CALL, UNAVAILABLE, Inbox, Message, PeerGoneError
from ..fair_queue import ConnectionTurns
from ..outbox import HIGH_WATER, Outbox

_PREFACE_BYTES = 24
_FRAME_HEADER_BYTES = 9

MOST_EVENTS = 256
"""The most waiting events of one connection: heads, parts of bodies, ends and resets. With as many the reader stops."""

_MOST_OF_REST = 2
"""One frame of a body, and the end."""

_UNAVAILABLE_RESPONSE: tuple[Message, ...] = (
    {"type": "http.response.start", "status": 503, "headers": UNAVAILABLE},
    {"type": "http.response.body"},
)


class FrameSizes:
    """Checks the length of each frame when its header arrives; h2 would wait for the whole frame."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._header = bytearray()
        self._skip = _PREFACE_BYTES

    def acceptable(self, data: bytes) -> bool:
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
            else:
                step = min(_FRAME_HEADER_BYTES - len(self._header), len(data) - at)
                self._header += data[at : at + step]
            at += step
            if len(self._header) == _FRAME_HEADER_BYTES:
                self._skip = int.from_bytes(self._header[:3])
                self._header.clear()
                if self._skip > self._limit:
                    return False
        return True


class RequestStream(HTTPStream):
    """`more` are ASGI extensions of this request. `ends`: the present part of the body is the last one."""

    def __init__(self, *args: Any, more: dict[str, Any]) -> None:
        super().__init__(*args)
        self.more = more
        self.ends = False

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Take a message of the application; None at the end of its call."""
        if message is not None and message["type"] == "http.response.body" and self.state is ASGIHTTPState.RESPONSE:
            self.ends = not (message.get("more_body", False) or self.response.get("trailers", False))
        await super().app_send(message)


StreamEvent: TypeAlias = events.RequestReceived | events.DataReceived | events.StreamEnded | events.StreamReset


class WaitingRequests:
    """A FIFO of requests that have not begun, each with the later frames of its stream."""

    def __init__(self) -> None:
        self._streams: dict[int, deque[StreamEvent]] = {}
        self._events = 0
        self._came = ParkingLot()
        self._went = ParkingLot()

    def keep(self, event: events.Event) -> bool:
        """Keep an event of a new or waiting request; returns True if it is one."""
        if isinstance(event, events.RequestReceived):
            self._streams[event.stream_id] = deque([event])
            self._came.unpark_all()
        elif isinstance(event, StreamEvent) and event.stream_id in self._streams:
            self._streams[event.stream_id].append(event)
        else:
            return False
        self._events += 1
        return True

    async def room(self) -> None:
        while self._events >= MOST_EVENTS:
            await self._went.park()

    async def first(self) -> events.RequestReceived:
        while not self._streams:
            await self._came.park()
        request = next(iter(self._streams.values()))[0]
        assert isinstance(request, events.RequestReceived)
        return request

    def is_whole(self, stream_id: int) -> bool:
        """True if a request that has begun has at most one frame of its body left, and its end."""
        rest = self._streams.get(stream_id, deque())
        return 0 < len(rest) <= _MOST_OF_REST and isinstance(rest[-1], events.StreamEnded)

    def take(self, stream_id: int) -> StreamEvent | None:
        """The next event of a stream; None after the last one, with which it no longer waits, and after `clear`."""
        waiting = self._streams.get(stream_id)
        if not waiting:
            self._streams.pop(stream_id, None)
            self._went.unpark_all()
            return None
        self._events -= 1
        self._went.unpark_all()
        return waiting.popleft()

    async def begun(self) -> None:
        while self._streams:
            await self._went.park()

    def clear(self) -> None:
        self._streams.clear()
        self._events = 0
        self._went.unpark_all()


class StreamStalledError(Exception):
    """The peer has granted a stream no window for the whole write timeout."""


class BoundedBuffer(StreamBuffer):
    """The unsent bytes of one stream. `push` and `drain` wait for the peer; cancelling them is harmless.

    Both raise `StreamStalledError` once `check` finds that no byte could be sent for `stall_s` seconds.
    """

    def __init__(self, stall_s: float) -> None:
        # All methods of the base class that wait with these events are replaced.
        super().__init__(cast("Any", object))
        self._stall_s = stall_s
        self._sent = ParkingLot()
        self._over = False
        self._stuck_since = inf
        self._stalled = False
        self.queued = False
        """True if the stream is in the order of sending: from its first part that has to wait."""

    @property
    def ended(self) -> bool:
        return self._complete

    async def push(self, data: bytes | memoryview) -> None:
        """Append, then wait until all bytes are handed on. Raises `PeerGoneError` if the stream is over."""
        if self._complete:
            raise PeerGoneError("the stream is over")
        self.buffer.extend(data)
        while self.buffer:
            await self._progress()
        if self._over:
            raise PeerGoneError("the stream was reset")

    async def drain(self) -> None:
        """Wait until all bytes are handed to the connection, with the end of the stream if it was set."""
        while self.buffer or (self._complete and not self._over):
            await self._progress()

    def check(self, now: float) -> None:
        if now - self._stuck_since >= self._stall_s:
            self._stalled = True
            self._sent.unpark_all()

    async def pop(self, max_length: int) -> bytes:
        data = bytes(self.buffer[:max_length])
        del self.buffer[:max_length]
        if data:
            self._sent.unpark_all()
        return data

    async def close(self) -> None:
        self.finish()

    def finish(self) -> None:
        """Close without `await`."""
        self._complete = self._over = True
        self.buffer.clear()
        self._sent.unpark_all()

    async def _progress(self) -> None:
        self._stuck_since = trio.current_time()
        try:
            await self._sent.park()
        finally:
            self._stuck_since = inf
        if self._stalled:
            raise StreamStalledError


class AppTasks(TaskGroup):
    """hypercorn's task group for application calls; it also counts the running ones.

    Only `spawn_app` uses hypercorn's nursery. `extensions` returns the ASGI extensions of a request; `started` counts
    the calls.
    """

    def __init__(
        self, outbox: Outbox, turns: ConnectionTurns, extensions: Callable[[int | None], dict[str, Any]]
    ) -> None:
        super().__init__()
        self._outbox = outbox
        self._turns = turns
        self._extensions = extensions
        self.idle_since = trio.current_time()
        self._inboxes: set[Inbox] = set()
        self.started = 0
        self._ended = ParkingLot()

    @property
    def running(self) -> int:
        return len(self._inboxes)

    async def wait_ended(self) -> None:
        while self._inboxes:
            await self._ended.park()

    def cut_off(self, why: str) -> None:
        """Set the reason of a disconnect that the server causes, for all running calls."""
        for inbox in self._inboxes:
            if not inbox.disconnected:
                inbox.cut_off = why

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: HypercornScope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Inbox:
        about = cast("Any", scope)
        # hypercorn passes a method of the stream, but not the stream.
        stream: RequestStream = cast("Any", send).__self__
        about["extensions"].update(self._extensions(stream.stream_id), **stream.more)
        inbox = Inbox(partial(self._turns.wait_request, about["raw_path"], about["headers"], message=True))
        self._inboxes.add(inbox)
        self.started += 1
        assert self._nursery is not None
        self._nursery.start_soon(self._call, app, scope, inbox, send)
        return inbox

    async def _call(self, app: Any, scope: Any, inbox: Inbox, send: Any) -> None:
        response = _Response(send, self._outbox)
        over = False
        try:
            try:
                with CONTAINED_CALL:
                    await app(scope, inbox.receive, response.send)
                over = True
            finally:
                # Only the end of the server cancels this. hypercorn would answer 500, as for a defect.
                if not (over or inbox.disconnected):
                    for message in () if response.begun else _UNAVAILABLE_RESPONSE:
                        await send(message)
        finally:
            inbox.close()
            try:
                # None is the end of the call: hypercorn answers 500 or ends the stream, if the call has not.
                await send(None)
            finally:
                self._inboxes.discard(inbox)
                self._ended.unpark_all()
                self.idle_since = trio.current_time()


class _Response:
    def __init__(self, send: Any, outbox: Outbox) -> None:
        self.begun = False
        self._send = send
        self._outbox = outbox

    async def send(self, message: Message) -> None:
        """ASGI's `send`. If cancelled, it may have sent a part of a body; then no more can be sent."""
        self.begun = True
        for piece in _pieces(message):
            await self._pass_on(piece)

    async def _pass_on(self, message: Message) -> None:
        turns = self._outbox.turns
        try:
            await self._send(message)
        except PeerGoneError:
            await trio.lowlevel.checkpoint()
            raise
        # The steps above often do not wait, so an endless sender would block all other tasks. A head does not wait: it
        # leaves together with the body behind it.
        if self._outbox.turns == turns and message["type"] != "http.response.start":
            await trio.lowlevel.checkpoint()


def _pieces(message: Message) -> Iterator[Message]:
    """Split a message with a large body: in one piece the outbox would hold it a second time."""
    body = message.get("body") or b""
    at = 0
    while len(body) - at > HIGH_WATER:
        yield {**message, "body": body[at : at + HIGH_WATER], "more_body": True}
        at += HIGH_WATER
    yield {**message, "body": body[at:]} if at else message
