"""hypercorn's HTTP/1.1 protocol with its defects contained.

The reader only hands bytes over; a task of this protocol (`run`) parses them and is the one that pauses while a
pipelined request has to wait for its turn. So the reader keeps reading, within a bound, and sees the peer leave.
"""

from __future__ import annotations

import re
from typing import Any

import h11
import trio
from h11._state import MIGHT_SWITCH_PROTOCOL  # h11 documents this state, but its package does not export it
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import Body, Data, Request, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol, H11WSConnection
from trio.lowlevel import ParkingLot

from ..settings import Settings
from .calls import UNAVAILABLE, Inbox
from .outbox import Outbox
from .turnstile import Entrance
from .websocket import ContainedWebSocket, Incomplete, asks_for_websocket

READ_AHEAD = 256 * 1024
"""Bytes taken from the peer before the application wants them. While there is room the peer's leaving is seen at once;
a peer that has sent more is looked at (`connection.LOOK_S`). Less would not do for that: a FIN waits in the peer's own
kernel behind what ours has no room for, which is only some 64 KiB. A request body may be sixteen times as long."""

READ_ON = READ_AHEAD // 2
"""Who waits for room is not woken before so little is left: for each message it would cost two task switches."""

_ALL_RECEIVED = frozenset({h11.DONE, h11.MUST_CLOSE, h11.CLOSED, MIGHT_SWITCH_PROTOCOL})

_URL = re.compile(rb"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/?]*)(?P<path>.*)", re.DOTALL)
_BOTH_LENGTHS = {b"content-length", b"transfer-encoding"}


class _RefusedError(Exception):
    """The request is answered by the listener itself."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Measured(h11.Connection):
    """Holds every request head to its limit, however it is cut.

    h11 looks only at what it cannot parse yet, so a head of any size passes when it comes in one piece.
    """

    def __init__(self, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=max_head_bytes)
        self._max_head_bytes = max_head_bytes

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        if self.their_state is not h11.IDLE:
            return super().next_event()
        before = len(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request) and before - len(self.trailing_data[0]) > self._max_head_bytes:
            raise _RefusedError(431)
        return event


def _in_origin_form(request: h11.Request) -> h11.Request:
    """The request as if its target were a path; raises `_RefusedError` for a URL that is not of HTTP.

    RFC 9112 section 3.2.2: a server "MUST accept the absolute-form in requests", and of a request that has one "MUST
    ignore the received Host header field (if any) and instead use the host information of the request-target".
    """
    found = _URL.fullmatch(request.target)
    if found is None:
        return request
    if found["scheme"].lower() not in (b"http", b"https"):
        raise _RefusedError(400)
    headers = [(name, value) for name, value in request.headers if name != b"host"]
    path = found["path"] if found["path"].startswith(b"/") else b"/" + found["path"]
    headers.append((b"host", found["host"]))
    return h11.Request(method=request.method, target=path, headers=headers, http_version=request.http_version)


class _UntilAccepted(H11WSConnection):
    """Keeps what the client sends before the application accepts; hypercorn answers it with a second response."""

    def __init__(self, connection: h11.Connection, stream: ContainedWebSocket) -> None:
        super().__init__(connection)
        self._stream = stream

    def next_event(self) -> Data | type[h11.NEED_DATA]:
        return super().next_event() if self._stream.accepted else h11.NEED_DATA


class ContainedH11(H11Protocol):
    """One HTTP/1.1 connection. `run` is its parsing task; whoever made it starts `run` and cancels it."""

    def __init__(
        self, *args: Any, outbox: Outbox, settings: Settings, entrance: Entrance, incomplete: Incomplete
    ) -> None:
        super().__init__(*args)
        self.connection = _Measured(self.config.h11_max_incomplete_size)
        self.lingers = False
        """Whether the peer may still be sending when we close: closing at once could destroy the response."""
        self._outbox = outbox
        self._settings = settings
        self._entrance = entrance
        self._incomplete = incomplete
        self._changed = ParkingLot()
        self._fresh = False
        self._unbegun = False
        self._unparsed = 0

    async def run(self) -> None:
        """Parse what was handed over; until cancelled."""
        while True:
            while not self._fresh:
                await self._changed.park()
            self._fresh = False
            await self._handle_events()
            if not self._fresh:
                self._unparsed = 0
            self._changed.unpark_all()

    async def handle(self, event: Event) -> None:
        """Take bytes to be parsed, or learn that the connection is over. Never waits."""
        if isinstance(event, RawData):
            self.connection.receive_data(event.data)
            self._unparsed += len(event.data)
            if isinstance(self.stream, ContainedWebSocket):
                self.stream.heard_at = trio.current_time()
            self._wake()
        else:
            if isinstance(self.stream, ContainedWebSocket):
                self.stream.goodbye()
            await super().handle(event)

    async def readable(self) -> None:
        """Wait until there is room to read ahead."""
        while self.full:
            await self._changed.park()

    def goodbye(self) -> None:
        """To a request that was waiting for its turn: 503. The last word of others was said when their call ended."""
        if self._unbegun:
            head = h11.Response(status_code=503, headers=[*UNAVAILABLE])
            for event in (head, h11.EndOfMessage()):
                self._outbox.write(self.connection.send(event))

    def check(self, now: float) -> str:
        """Why the connection has to be cut off, or nothing: only a WebSocket has a limit of its own."""
        if not isinstance(self.stream, ContainedWebSocket):
            return ""
        if self.full or self._outbox:
            # The silence may be ours: what the peer says waits in the kernel until the application has read what is
            # here, and a ping waits behind what is being sent, for which there is the write timeout.
            self.stream.pardon(now)
        return self.stream.check(now)

    async def begun(self) -> None:
        """Wait until a request that was read before the peer left has had its turn."""
        # The parser may be about to look at it in this very pass.
        await trio.lowlevel.checkpoint()
        while self._unbegun:
            await self._changed.park()

    @property
    def full(self) -> bool:
        """Whether there is no room to read ahead."""
        early = len(self.connection.buffer) if isinstance(self.connection, H11WSConnection) else 0
        return self._unparsed + early + self._held >= READ_AHEAD

    @property
    def _inbox(self) -> Inbox | None:
        put = getattr(self.stream, "app_put", None)
        return put if isinstance(put, Inbox) else None

    @property
    def _held(self) -> int:
        """What the application has yet to receive."""
        inbox = self._inbox
        return inbox.size if inbox else 0

    def _wake(self) -> None:
        self._fresh = True
        self._changed.unpark_all()

    async def stream_send(self, event: StreamEvent) -> None:
        """hypercorn's way out for a response; after an accepted upgrade what the client sent meanwhile is due.

        Returns for a body when the socket has taken it, and raises `PeerGoneError` when it will not.
        """
        await super().stream_send(event)
        if isinstance(event, Body | Data):
            await self._outbox.delivered()
        elif isinstance(event, Response) and isinstance(self.connection, _UntilAccepted):
            self._wake()

    async def _handle_events(self) -> None:
        try:
            await super()._handle_events()
        except _RefusedError as refused:
            self.lingers = True
            await self._send_error_response(refused.status)
            await self.send(Closed())
        else:
            self.lingers = self.lingers or self.connection.their_state is h11.ERROR

    async def _check_protocol(self, event: h11.Request) -> None:
        # In place of hypercorn's upgrade to h2c, which RFC 9113 has removed; prior knowledge is recognised before.
        if len(event.headers) > self._settings.limits.max_headers:
            raise _RefusedError(431)
        # RFC 9112 section 6.3: such a message "ought to be handled as an error". h11 goes by Transfer-Encoding, and a
        # gateway in front may have gone by the other: what follows would be a request of somebody else's choosing.
        if {name for name, _ in event.headers} >= _BOTH_LENGTHS:
            raise _RefusedError(400)

    async def _create_stream(self, request: h11.Request) -> None:
        request = _in_origin_form(request)
        self._unbegun = True
        await self._entrance.enter(request.headers)
        self._unbegun = False
        self._changed.unpark_all()
        if asks_for_websocket(request):
            await self._upgrade(request)
        else:
            await super()._create_stream(request)
        if (inbox := self._inbox) is not None:
            inbox.taken = self._note_taken

    async def _upgrade(self, request: h11.Request) -> None:
        assert isinstance(self.connection, h11.Connection)
        place = (self.context, self.task_group, self.ssl, self.client, self.server)
        stream = ContainedWebSocket(
            self.app,
            self.config,
            *place,
            self.stream_send,
            STREAM_ID,
            outbox=self._outbox,
            ping_s=self._settings.ws_ping_s,
            message_s=self._settings.idle_connection_s,
            incomplete=self._incomplete,
            holder=self._entrance.client(request.headers),
            room=self._room,
        )
        self.stream = stream
        self.connection = _UntilAccepted(self.connection, stream)
        version = request.http_version.decode()
        await stream.handle(
            Request(STREAM_ID, list(request.headers), version, "GET", request.target, self.connection_state)
        )
        if stream.closed:
            # It is not valid, and has been answered.
            await self.stream_send(StreamClosed(STREAM_ID))

    async def _room(self) -> None:
        if self._held < READ_AHEAD:
            return
        while self._held > READ_ON:
            await self._changed.park()

    def _note_taken(self, _size: int) -> None:
        if self._held <= READ_ON:
            self._changed.unpark_all()

    async def _maybe_recycle(self) -> None:
        self.lingers = self.connection.their_state not in _ALL_RECEIVED
        await super()._maybe_recycle()
