"""One HTTP/2 connection: hypercorn's protocol between a reader, a writer and the application calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache, partial
from math import inf
from typing import Any, cast

import trio
from h2.errors import ErrorCodes
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ASGISendEvent, ConnectionState, LifespanState
from hypercorn.typing import Scope as HypercornScope
from trio.lowlevel import ParkingLot

from ..calls import UNAVAILABLE, WRITE_TIMEOUT, Contained, Inbox, Message, PeerGoneError
from ..fair_queue import ConnectionTurns
from ..outbox import CALLS_END_S, CHECK_S, HIGH_WATER, Outbox, Writer
from ..transport import READ_PIECE, Service, Transport, connection_turns
from .protocol import ContainedH2
from .streams import RequestStream

_UNAVAILABLE_RESPONSE: tuple[Message, ...] = (
    {"type": "http.response.start", "status": 503, "headers": UNAVAILABLE},
    {"type": "http.response.body"},
)


class AppTasks(TaskGroup):
    """hypercorn's task group for application calls; it also counts the running ones.

    The nursery is hypercorn's own member, and only `spawn_app` uses it. `extensions` returns the ASGI extensions of a
    request from its HTTP/2 stream; `started` counts the calls.
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
        """The number of running application calls."""
        return len(self._inboxes)

    async def wait_ended(self) -> None:
        """Wait until no application call runs."""
        while self._inboxes:
            await self._ended.park()

    def cut_off(self, why: str) -> None:
        """Set the reason of the coming disconnect for all running calls; the server causes it, not the peer."""
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
        """Start one application call. hypercorn puts the events of the peer into the result."""
        about = cast("Any", scope)
        # hypercorn passes a method of the stream, but not the stream.
        stream: RequestStream = cast("Any", send).__self__
        about["extensions"].update(self._extensions(stream.stream_id), **stream.more)
        inbox = Inbox(partial(self._turns.wait_request, about["headers"], message=True))
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
                with Contained("the application"):
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
                # None means to hypercorn that the call has ended: it answers 500 or ends the stream, if the call has
                # not.
                await send(None)
            finally:
                self._inboxes.discard(inbox)
                self._ended.unpark_all()
                self.idle_since = trio.current_time()


class _Response:
    """The sending half of one application call."""

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
        # The steps above often do not wait, not even if the peer has gone, so an endless sender would block all other
        # tasks. A head does not wait here, since there is only one: it leaves together with the body behind it.
        if self._outbox.turns == turns and message["type"] != "http.response.start":
            await trio.lowlevel.checkpoint()


def _pieces(message: Message) -> Iterator[Message]:
    """Split a message with a large body into several.

    The application holds the rest of the body while a slow peer reads; in one piece the outbox would hold it again.
    """
    body = message.get("body") or b""
    at = 0
    while len(body) - at > HIGH_WATER:
        yield {**message, "body": body[at : at + HIGH_WATER], "more_body": True}
        at += HIGH_WATER
    yield {**message, "body": body[at:]} if at else message


UNLIMITED = 10**9
"""hypercorn's keep-alive limit; at the request that reaches it, hypercorn would end a connection with open streams."""


@cache
def _config() -> Config:
    """The settings that hypercorn's protocol classes read.

    The listener itself handles sockets, workers and timeouts.
    """
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.keep_alive_max_requests = UNLIMITED
    return config


class Http2Connection:
    """Begins with the first bytes of its transport. `run` owns all tasks but the calls; `AppTasks` owns those."""

    def __init__(self, service: Service, transport: Transport) -> None:
        self._settings = service.settings
        self._log = service.hooks.log
        self._transport = transport
        self._outbox = Outbox()
        self._tasks = AppTasks(self._outbox, way := connection_turns(service, transport), transport.extensions)
        self._finishing = False
        self._why_closed = ""
        self._over = trio.Event()
        self._writer = Writer(transport.stream, self._outbox)
        # The positional arguments are those of hypercorn's protocol classes.
        args: tuple[Any, ...] = (cast("AppWrapper", service.app), _config(), WorkerContext(None), self._tasks)
        args += (ConnectionState(LifespanState({})), transport.secure, transport.peer, transport.here, self._send)
        self._protocol = ContainedH2(
            *args,
            tasks=self._tasks,
            outbox=self._outbox,
            settings=service.settings,
            turns=way,
            known=service.heads,
        )

    @property
    def ended_by(self) -> str:
        """`client`, or the server's reason for closing it."""
        return self._why_closed or ("client" if self._writer.peer_left.is_set() else "the protocol is done")

    @property
    def requests(self) -> int:
        """The number of its requests so far."""
        return self._tasks.started

    async def run(self) -> None:
        """Serve until the peer leaves, the protocol ends the connection, or a limit is reached."""
        try:
            async with self._tasks:
                await self._run()
        except trio.Cancelled:
            self._why_closed = self._why_closed or "the server closed it"
            raise
        # The protocol refers to this connection: a cycle, which the garbage collector would find much later.
        del self._protocol

    async def check(self, now: float) -> None:
        """Abort a connection if its peer does not read, and end one without running calls for too long."""
        if self._writer.is_stuck(now, self._settings.write_timeout_s):
            self._why_closed = self._why_closed or WRITE_TIMEOUT
            self._tasks.cut_off(WRITE_TIMEOUT)
            self._writer.cut()
        self._protocol.check(now)
        busy = self._tasks.running or self._outbox
        if not busy and now - self._tasks.idle_since >= self._settings.idle_connection_s:
            self._why_closed = self._why_closed or "idle"
            self._over.set()

    async def abort(self) -> None:
        """Close the socket at once."""
        self._writer.cut()

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            try:
                await self._run_until_over()
            finally:
                await self._wait_calls_end()
                await self._protocol.handle(Closed())
                self._protocol.send_goaway()
                self._outbox.close()
                self._writer.limit_rest()

    async def _wait_calls_end(self) -> None:
        """If the server ends, wait for the cancelled calls: their last messages are sent before the protocol's."""
        if trio.current_effective_deadline() == -inf:
            with trio.move_on_after(CALLS_END_S, shield=True):
                await self._tasks.wait_ended()

    async def _run_until_over(self) -> None:
        async with trio.open_nursery() as nursery:
            await self._protocol.initiate()
            nursery.start_soon(self._protocol.run)
            nursery.start_soon(self._read)
            await self._over.wait()
            nursery.cancel_scope.cancel()

    async def _send(self, event: Event) -> None:
        """hypercorn's events for the peer.

        `Updated` is ignored: a connection is idle while no application call runs on it.
        """
        if isinstance(event, RawData):
            await self._outbox.put(event.data)
        elif isinstance(event, Closed):
            self._finishing = True
            if self._protocol.violation is not None:
                self._note_violation(self._protocol.violation)
            await self._protocol.handle(event)
            self._writer.lingers = self._protocol.lingers
            self._outbox.close()

    def _note_violation(self, code: ErrorCodes) -> None:
        self._why_closed = self._why_closed or "no valid HTTP/2"
        if self._log is not None:
            self._log.refused(self._transport.number, None, f"HTTP/2 {code.name}")

    async def _read(self) -> None:
        data = self._transport.first or await self._receive()
        while data:
            if not self._finishing:
                await self._protocol.handle(RawData(bytes(data)))
            data = await self._receive()
        await self._protocol.begun()
        self._writer.peer_left.set()
        self._over.set()

    async def _receive(self) -> bytes | bytearray:
        while self._protocol.full:
            with trio.move_on_after(CHECK_S) as waiting:
                await self._protocol.readable()
            if waiting.cancelled_caught and self._transport.peer_has_finished():
                return b""
        try:
            return await self._transport.stream.receive_some(READ_PIECE)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def _write(self) -> None:
        await self._writer.run()
        self._over.set()
