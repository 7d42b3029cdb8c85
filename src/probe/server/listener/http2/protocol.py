"""hypercorn's HTTP/2 protocol with its defects contained.

The work per stream (`HTTPStream`), the sending task and the order of sending are hypercorn's. The buffers, the
reactions to the peer's frames and the end of a stream are written here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import trio
from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import DenialOfServiceError, FrameTooLargeError, ProtocolError
from h2.settings import SettingCodes
from h2.settings import Settings as H2Settings
from hpack.exceptions import HPACKError
from hpack.struct import NeverIndexedHeaderTuple
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import Body, EndBody, Request, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h2 import H2Protocol, StreamBuffer
from hypercorn.utils import filter_pseudo_headers
from priority.priority import MissingStreamError, PriorityTree

from ....settings import Settings
from ..calls import WRITE_TIMEOUT, Inbox, PeerGoneError
from ..fair_queue import ConnectionTurns
from ..outbox import CONTROL_ROOM, HIGH_WATER, Outbox
from ..request_head import SERVED_METHODS, KnownHeads, RequestHead
from .streams import AppTasks, BoundedBuffer, FrameSizes, RequestStream, StreamStalledError, WaitingRequests

HARD_HEADERS = 4
"""A header block beyond this many times `max_header_bytes` ends the connection; a smaller one gets a 431."""

WAITING_REQUESTS_S = 0.5
"""The time in seconds for waiting requests of a peer that has gone: it could leave work as fast as it can connect."""

PARSED_BYTES = 4 * 1024
"""The bytes parsed at once: some hundred of the smallest frames take milliseconds."""


class ContainedH2(H2Protocol):
    """One HTTP/2 connection. Input never waits for the application or the peer.

    `run` begins each request at its turn; frames such as a reset are handled while requests wait. The owner starts and
    cancels it.
    """

    def __init__(
        self,
        *args: Any,
        tasks: AppTasks,
        outbox: Outbox,
        settings: Settings,
        turns: ConnectionTurns,
        known: KnownHeads,
    ) -> None:
        super().__init__(*args)
        limits = settings.limits
        self.lingers = False
        """True if the peer may still be sending at our close, which could destroy our GOAWAY on its way."""
        self.violation: ErrorCodes | None = None
        """The error code of RFC 9113 if frames of the peer were refused."""
        self._tasks = tasks
        self._turns = turns
        self._known = known
        self._outbox = outbox
        self._limits = limits
        self._stall_s = settings.write_timeout_s
        self._receiving: set[int] = set()
        # The missing bytes of bodies with a content-length, by stream.
        self._missing: dict[int, int] = {}
        self._waiting_requests = WaitingRequests()
        self._begun = 0
        # The number of parts of bodies waiting for the peer.
        self._pushing = 0
        self._frames = FrameSizes(self.config.h2_max_inbound_frame_size)
        # A cancelled stream keeps its place until its application call has ended. Until then a new stream is refused.
        self.priority = PriorityTree(maximum_streams=limits.max_streams_per_connection + 1)

    async def initiate(self, headers: Any = None, settings: bytes | None = None) -> None:
        limits = self._limits
        self.connection.local_settings = _announced(limits.max_streams_per_connection, limits.max_header_bytes)
        await super().initiate(headers, settings)
        # h2 ends the connection of a peer with one stream too many; here only this stream is refused.
        self.connection.local_settings = _announced(2**31 - 1, limits.max_header_bytes)
        self.connection.decoder.max_header_list_size = HARD_HEADERS * limits.max_header_bytes

    async def run(self) -> None:
        while True:
            request = await self._waiting_requests.first()
            target = next((value for name, value in request.headers if name == b":path"), b"")
            await self._turns.wait_request(target, request.headers)
            self._begun = request.stream_id
            while (event := self._waiting_requests.take(request.stream_id)) is not None:
                await self._REACTIONS[type(event)](self, event)
            self._flush_now()

    async def begun(self) -> None:
        """Wait until the requests of a gone peer have begun, or `WAITING_REQUESTS_S` have passed."""
        with trio.move_on_after(WAITING_REQUESTS_S):
            await self._waiting_requests.begun()

    @property
    def full(self) -> bool:
        """True if the outbox has no room for answers to frames, such as acknowledgements."""
        return len(self._outbox) > HIGH_WATER + CONTROL_ROOM

    async def readable(self) -> None:
        await self._outbox.room(HIGH_WATER + CONTROL_ROOM)

    def send_goaway(self) -> None:
        """Send a GOAWAY with the last stream that was begun, unless one was sent."""
        with suppress(ProtocolError):
            self.connection.close_connection(last_stream_id=self._begun)
        self._flush_now()

    def check(self, now: float) -> None:
        for buffer in self.stream_buffers.values():
            if isinstance(buffer, BoundedBuffer):
                buffer.check(now)

    async def handle(self, event: Event) -> None:
        """Take bytes and act on them, or take the end of the connection."""
        if not isinstance(event, RawData):
            self._waiting_requests.clear()
            await super().handle(event)
            for stream_id in list(self.stream_buffers):
                self._discard(stream_id)
            return
        for start in range(0, len(event.data), PARSED_BYTES):
            if start:
                # Other clients get their turn between two parts of a long input.
                await self._turns.wait_read()
            await self._waiting_requests.room()
            if not self.closed:
                await self._take(event.data[start : start + PARSED_BYTES])

    async def _take(self, data: bytes) -> None:
        try:
            if not self._frames.acceptable(data):
                raise FrameTooLargeError("a frame is larger than announced")
            received = self.connection.receive_data(data)
        except ProtocolError as error:
            await self._violated(error)
        else:
            await self._react(received)

    async def _violated(self, error: ProtocolError) -> None:
        # h2 may have prepared a GOAWAY of its own, with neither this code nor the last begun request.
        self.violation = _connection_error(error)
        self.connection.clear_outbound_data_buffer()
        self.connection.close_connection(self.violation, last_stream_id=self._begun)
        self.lingers = True
        self._flush_now()
        await self.send(Closed())

    async def _react(self, received: list[events.Event]) -> None:
        for event in received:
            if self._waiting_requests.keep(event):
                continue
            reaction = self._REACTIONS.get(type(event))
            if reaction is not None:
                await reaction(self, event)
        self._flush_now()

    def _flush_now(self) -> None:
        self._outbox.write(self.connection.data_to_send())

    async def _requested(self, event: events.RequestReceived) -> None:
        head = self._head_of(event)
        if self._tasks.running >= self._limits.max_streams_per_connection:
            # Running calls are counted, not open streams: a peer that opens and resets at once fills no queue.
            self._reset(event.stream_id, ErrorCodes.REFUSED_STREAM)
        elif isinstance(head, int):
            self._refuse(event.stream_id, head, still_sending=event.stream_ended is None)
        elif event.stream_ended is not None and _content_length(head):
            self._malformed(event.stream_id)
        else:
            await self._begin(event.stream_id, head)

    def _malformed(self, stream_id: int) -> None:
        # RFC 9113 section 8.1.1: a request is malformed "if the value of a content-length header field does not equal
        # the sum of the DATA frame payload lengths that form the content", which "MUST be treated as a stream error
        # (Section 5.4.2) of type PROTOCOL_ERROR".
        self._reset(stream_id, ErrorCodes.PROTOCOL_ERROR)

    def _head_of(self, event: events.RequestReceived) -> RequestHead | int:
        fields = tuple(event.headers)
        known = self._known.find(fields)
        if known is not None:
            return known.head
        size = _size(fields)
        pseudo = dict(pair for pair in fields if pair[0].startswith(b":"))
        status = _refusal(pseudo, len(fields) > self._limits.max_headers or size > self._limits.max_header_bytes)
        if status:
            return status
        head = RequestHead(
            method=pseudo[b":method"].decode("ascii"),
            target=pseudo[b":path"],
            http_version="2",
            headers=filter_pseudo_headers(event.headers),
            keeps_alive=True,
        )
        # RFC 7541 section 7.1.3: a client marks a field as never indexed to protect it, so it is not kept here either.
        if not any(isinstance(field, NeverIndexedHeaderTuple) for field in fields):
            self._known.keep(fields, size, head)
        return head

    def _refuse(self, stream_id: int, status: int, *, still_sending: bool) -> None:
        # The peer may have reset the stream just before.
        with suppress(ProtocolError):
            self.connection.send_headers(stream_id, [(b":status", b"%d" % status)], end_stream=True)
        if still_sending:
            self._reset(stream_id, ErrorCodes.NO_ERROR)

    async def _begin(self, stream_id: int, head: RequestHead) -> None:
        more: dict[str, Any] = {"probe.notes": head.notes}
        if self._waiting_requests.is_whole(stream_id):
            more["probe.whole_body"] = {}
        place = (self.task_group, self.ssl, self.client, self.server)
        stream = RequestStream(self.app, self.config, self.context, *place, self.stream_send, stream_id, more=more)
        self.streams[stream_id] = stream
        self._receiving.add(stream_id)
        if length := _content_length(head):
            self._missing[stream_id] = length
        self.stream_buffers[stream_id] = BoundedBuffer(self._stall_s)
        # A copy of the headers, since the head is used again.
        about = (head.http_version, head.method, head.target)
        await stream.handle(Request(stream_id, [*head.headers], *about, self.connection_state))
        if isinstance(stream.app_put, Inbox):
            stream.app_put.taken = partial(self._taken, stream_id)

    async def _received(self, event: events.DataReceived) -> None:
        stream = self.streams.get(event.stream_id)
        if stream is None or not event.data:
            # hypercorn would raise `KeyError` for a call that has ended. The window is given back.
            self._taken(event.stream_id, event.flow_controlled_length)
        else:
            self._taken(event.stream_id, event.flow_controlled_length - len(event.data))
            if event.stream_id in self._missing:
                self._missing[event.stream_id] -= len(event.data)
            await stream.handle(Body(event.stream_id, event.data))

    def _taken(self, stream_id: int, size: int) -> None:
        # Flow control stops the peer if the application does not read; our reader goes on.
        if size and not self.closed:
            with suppress(ProtocolError):
                self.connection.acknowledge_received_data(size, stream_id)
            self._flush_now()

    async def _request_ended(self, event: events.StreamEnded) -> None:
        self._receiving.discard(event.stream_id)
        stream = self.streams.get(event.stream_id)
        if self._missing.pop(event.stream_id, 0):
            # h2 notices that if the last frame is DATA, but not if it is HEADERS.
            await self._close_stream(event.stream_id)
            self._malformed(event.stream_id)
        elif stream is not None:
            await stream.handle(EndBody(event.stream_id))

    async def _reset_by_peer(self, event: events.StreamReset) -> None:
        await self._close_stream(event.stream_id)
        self._discard(event.stream_id)

    async def _window_grown(self, event: events.WindowUpdated) -> None:
        await self._window_updated(event.stream_id)

    async def _peer_settings(self, event: events.RemoteSettingsChanged) -> None:
        if SettingCodes.INITIAL_WINDOW_SIZE in event.changed_settings:
            await self._window_updated(None)

    async def _terminated(self, _event: events.ConnectionTerminated) -> None:
        # h2 sends no more after the peer's GOAWAY, so open streams cannot be finished.
        await self.send(Closed())

    # A member of the class, because a table of bound methods would be a cycle.
    _REACTIONS: ClassVar[Mapping[type[events.Event], Callable[[ContainedH2, Any], Awaitable[None]]]] = {
        events.RequestReceived: _requested,
        events.DataReceived: _received,
        events.StreamEnded: _request_ended,
        events.StreamReset: _reset_by_peer,
        events.WindowUpdated: _window_grown,
        events.RemoteSettingsChanged: _peer_settings,
        events.ConnectionTerminated: _terminated,
    }

    async def stream_send(self, event: StreamEvent) -> None:
        """hypercorn's stream calls this with each part of a response.

        For a body it returns when the socket has taken it, or raises `PeerGoneError`; for other events it never raises.
        """
        if isinstance(event, Body):
            await self._send_body(event)
            return
        if isinstance(event, StreamClosed):
            self._abandon(event.stream_id)
        try:
            if isinstance(event, EndBody) and not self._unsent(event.stream_id):
                await self._end(event.stream_id)
            else:
                await super().stream_send(event)
        except StreamStalledError:
            await self._give_up(event.stream_id)

    async def _send_body(self, body: Body) -> None:
        buffer = self.stream_buffers.get(body.stream_id)
        if not isinstance(buffer, BoundedBuffer):
            raise PeerGoneError("the stream is over")
        try:
            if not self._send_at_once(body, buffer):
                await self._push(body, buffer)
        except (MissingStreamError, ProtocolError):
            self._discard(body.stream_id)
            raise PeerGoneError("the stream is over") from None
        except StreamStalledError:
            await self._give_up(body.stream_id)
            raise PeerGoneError("the peer grants the stream no window") from None
        await self._outbox.delivered()

    def _send_at_once(self, body: Body, buffer: BoundedBuffer) -> bool:
        """Send a part if it fits into outbox and window and no other part waits; returns True if so."""
        window = self.connection.local_flow_control_window(body.stream_id)
        room = min(window, self.connection.max_outbound_frame_size)
        if self._pushing or buffer.buffer or len(self._outbox) > HIGH_WATER or len(body.data) > room:
            return False
        stream = self.streams.get(body.stream_id)
        ends = isinstance(stream, RequestStream) and stream.ends
        self.connection.send_data(body.stream_id, body.data, end_stream=ends)
        if ends:
            self._finish(body.stream_id)
        self._flush_now()
        return True

    async def _push(self, body: Body, buffer: BoundedBuffer) -> None:
        """Pass a part to the sending task, which keeps the order of the streams."""
        if not buffer.queued:
            self.priority.insert_stream(body.stream_id)
            buffer.queued = True
        self._pushing += 1
        try:
            view = memoryview(body.data)
            for at in range(0, len(view), HIGH_WATER):
                # So a large part is not copied whole.
                self.priority.unblock(body.stream_id)
                await self.has_data.set()
                await buffer.push(view[at : at + HIGH_WATER])
        finally:
            self._pushing -= 1

    async def _window_updated(self, stream_id: int | None) -> None:
        """Send on after a window has grown: of the stream, or with None or 0 of the connection."""
        waiting = [each for each in ([stream_id] if stream_id else self.stream_buffers) if self._unsent(each)]
        for each in waiting:
            self.priority.unblock(each)
        if waiting:
            await self.has_data.set()

    async def _close_stream(self, stream_id: int) -> None:
        """Put the end of a stream into its call's inbox."""
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            await stream.handle(StreamClosed(stream_id))

    def _unsent(self, stream_id: int) -> bool:
        buffer = self.stream_buffers.get(stream_id)
        return buffer is not None and bool(buffer.buffer)

    async def _end(self, stream_id: int) -> None:
        # An end alone needs no window. At the end of the server the sending task may have ended already.
        if stream_id in self.stream_buffers:
            self.stream_buffers[stream_id].set_complete()
            await self._send_data(stream_id)

    async def _give_up(self, stream_id: int) -> None:
        put = getattr(self.streams.get(stream_id), "app_put", None)
        if isinstance(put, Inbox):
            put.cut_off = WRITE_TIMEOUT
        await self._close_stream(stream_id)
        self._reset(stream_id, ErrorCodes.CANCEL)

    def _abandon(self, stream_id: int) -> None:
        # The call has not ended its response; hypercorn would leave the client waiting.
        buffer = self.stream_buffers.get(stream_id)
        if isinstance(buffer, BoundedBuffer) and not buffer.ended:
            self._reset(stream_id, ErrorCodes.INTERNAL_ERROR)

    async def _send_data(self, stream_id: int) -> None:
        try:
            await self._send_some(stream_id, self.stream_buffers[stream_id])
        except (KeyError, ProtocolError):
            self._discard(stream_id)
        await self._flush()

    async def _send_some(self, stream_id: int, buffer: StreamBuffer) -> None:
        window = self.connection.local_flow_control_window(stream_id)
        data = await buffer.pop(max(0, min(window, self.connection.max_outbound_frame_size)))
        if data or buffer.complete:
            self.connection.send_data(stream_id, data, end_stream=buffer.complete)
        else:
            self.priority.block(stream_id)
        if buffer.complete:
            self._finish(stream_id)

    def _finish(self, stream_id: int) -> None:
        if stream_id in self._receiving:
            # RFC 9113 section 8.1: "a server MAY request that the client abort transmission … by sending a RST_STREAM
            # with an error code of NO_ERROR after sending a complete response".
            self.connection.reset_stream(stream_id, ErrorCodes.NO_ERROR)
        self._discard(stream_id)

    def _reset(self, stream_id: int, code: ErrorCodes) -> None:
        with suppress(ProtocolError):
            self.connection.reset_stream(stream_id, code)
        self._discard(stream_id)
        self._flush_now()

    def _discard(self, stream_id: int) -> None:
        self._receiving.discard(stream_id)
        self._missing.pop(stream_id, None)
        buffer = self.stream_buffers.pop(stream_id, None)
        if isinstance(buffer, BoundedBuffer):
            buffer.finish()
            if buffer.queued:
                self.priority.remove_stream(stream_id)


def _connection_error(error: ProtocolError) -> ErrorCodes:
    # RFC 9113 section 4.3: "A decoding error in a field block MUST be treated as a connection error (Section 5.4.1) of
    # type COMPRESSION_ERROR." h2 has another code for it.
    undecodable = isinstance(error.__cause__, HPACKError) and not isinstance(error, DenialOfServiceError)
    return ErrorCodes.COMPRESSION_ERROR if undecodable else error.error_code


def _announced(max_streams: int, max_header_bytes: int) -> H2Settings:
    # No ENABLE_CONNECT_PROTOCOL: WebSocket is served on HTTP/1.1, where one that does not read blocks no other stream.
    values = {SettingCodes.MAX_CONCURRENT_STREAMS: max_streams, SettingCodes.MAX_HEADER_LIST_SIZE: max_header_bytes}
    return H2Settings(client=False, initial_values=values)


def _size(fields: Iterable[tuple[bytes, bytes]]) -> int:
    # RFC 9113 section 6.5.2: the size of a list is that of names and values "plus an overhead of 32 octets for each".
    return sum(len(name) + len(value) + 32 for name, value in fields)


def _content_length(head: RequestHead) -> int:
    """The announced length of a body, 0 without one; h2 has refused values that are not numbers."""
    return next((int(value) for name, value in head.headers if name == b"content-length"), 0)


def _refusal(pseudo: Mapping[bytes, bytes], too_large: bool) -> int:
    if too_large:
        return 431
    if pseudo[b":method"] not in SERVED_METHODS:
        return 501
    return 0 if pseudo[b":path"].isascii() else 400
