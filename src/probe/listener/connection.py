"""One connection: its reader, its writer, its end."""

from __future__ import annotations

import select
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, NoReturn, cast

import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState, LifespanState
from hypercorn.utils import parse_socket_addr

from ..core.addresses import Network
from ..settings import Settings
from .calls import WRITE_TIMEOUT, App, AppTasks
from .http1 import ContainedH11
from .http2 import ContainedH2
from .outbox import Outbox
from .turnstile import Entrance, Turnstile
from .websocket import Incomplete

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
Protocol = ContainedH11 | ContainedH2

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 section 3.4: what a client with prior knowledge of HTTP/2 sends first."""

READ_PIECE = 32 * 1024
"""Bytes per read: few enough that what one read can turn into (messages, frames) stays below a few megabytes."""

LINGER_S = 2.0
"""How long a peer that was still sending may take to read the response and close; closing at once would reset it."""

FLUSH_S = 0.5
"""How long what is queued may take to leave when the connection has to end: a last frame is lost only by a peer that
does not read. This is also what bounds shutdown, whatever the write timeout is."""

LAST_WORDS_S = 0.25
"""How long calls that are cancelled with their connection may take to end, so that what is not answered gets its 503.
This, too, bounds shutdown."""

CHECKS_PER_LIMIT = 4
"""How often within the shortest limit connections are looked at, so that a limit is exceeded by a quarter at most."""

LOOK_S = 0.25
"""How often a peer that is not read from, because it has sent too much ahead, is looked at for having left."""

_HANG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
"""A FIN, which not every system tells without reading (only Linux has POLLRDHUP), and a reset."""

Address = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Service:
    """What all connections of a listener share. `running` are those that `watch` looks at."""

    app: App
    settings: Settings
    config: Config
    tls: ssl.SSLContext | None
    incomplete: Incomplete
    trusted: Sequence[Network]
    running: set[_Connection] = field(default_factory=set)
    turnstile: Turnstile = field(default_factory=Turnstile)


async def converse(service: Service, transport: trio.SocketStream) -> None:
    """Serve one accepted connection until it is over. The caller closes `transport` and contains the errors.

    Cancelled, the connection ends within `LAST_WORDS_S` and `FLUSH_S` seconds, whatever its peer does. The limits of
    its peer's idleness need `watch` to run.
    """
    opened = await _open(service, transport)
    if opened is None:
        return
    outbox = Outbox()
    entrance = Entrance(service.turnstile, opened.peer[0] if opened.peer else "", service.trusted)
    tasks = AppTasks(outbox, entrance)
    async with tasks:
        connection = _Connection(service, opened, tasks, outbox, entrance)
        service.running.add(connection)
        try:
            await connection.run(opened.first)
        finally:
            service.running.discard(connection)
    connection.forget()


async def watch(service: Service) -> NoReturn:
    """Hold all connections to their limits, until cancelled.

    One task for all of them: a task of each would cost two kilobytes, and a timer around each write costs time with
    each message.
    """
    settings = service.settings
    pause_s = min(settings.write_timeout_s, settings.idle_connection_s, settings.ws_ping_s) / CHECKS_PER_LIMIT
    while True:
        await trio.sleep(pause_s)
        now = trio.current_time()
        for connection in service.running:
            connection.check(now)


class _Opened(NamedTuple):
    """A connection whose peer has said something: the stream, its ends, and the first bytes that came."""

    stream: Stream
    peer: Address
    here: Address
    first: bytes


async def _open(service: Service, transport: trio.SocketStream) -> _Opened | None:
    """None for a peer that has not come so far in time, or has gone."""
    with trio.move_on_after(service.settings.idle_connection_s):
        try:
            # Asked first: for a peer that has gone meanwhile it is an error of the system.
            peer, here = _addresses(transport)
            stream = await _secured(transport, service.tls)
            return _Opened(stream, peer, here, await _first_bytes(stream))
        except (trio.BrokenResourceError, EOFError, OSError):
            return None
    return None


def _addresses(transport: trio.SocketStream) -> tuple[Address, Address]:
    sock = transport.socket
    return parse_socket_addr(sock.family, sock.getpeername()), parse_socket_addr(sock.family, sock.getsockname())


async def _secured(transport: trio.SocketStream, tls: ssl.SSLContext | None) -> Stream:
    if tls is None:
        return transport
    # https_compatible: a peer may close without close_notify, as browsers do.
    stream = trio.SSLStream(transport, tls, server_side=True, https_compatible=True)
    await stream.do_handshake()
    return stream


async def _first_bytes(stream: Stream) -> bytes:
    """Enough to tell HTTP/2 with prior knowledge from HTTP/1.1; nothing where ALPN has told already."""
    data = b""
    while not _alpn_is_h2(stream) and len(data) < len(PREFACE) and PREFACE.startswith(data):
        piece = await stream.receive_some(READ_PIECE)
        if not piece:
            raise EOFError
        data += piece
    return data


def _alpn_is_h2(stream: Stream) -> bool:
    return isinstance(stream, trio.SSLStream) and stream.selected_alpn_protocol() == "h2"


def _is_http2(stream: Stream, first: bytes) -> bool:
    return _alpn_is_h2(stream) or first.startswith(PREFACE)


def _hung_up(stream: Stream) -> bool:
    transport = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    number = transport.socket.fileno()
    if number < 0:
        return True
    poll = select.poll()
    poll.register(number, _HANG_UP)
    return any(events & _HANG_UP for _, events in poll.poll(0))


class _Connection:
    """The parts of a running connection; `run` owns every task but the application calls, which `tasks` owns."""

    def __init__(
        self, service: Service, opened: _Opened, tasks: AppTasks, outbox: Outbox, entrance: Entrance
    ) -> None:
        self._settings = service.settings
        self._stream = opened.stream
        self._tasks = tasks
        self._outbox = outbox
        self._entrance = entrance
        self._finishing = False
        self._peer_left = trio.Event()
        self._over = trio.Event()
        # Shielded, because a frame cut in half is worse than none; `run` and `check` bound it.
        self._writing = trio.CancelScope(shield=True)
        self._sending_since = inf
        self._protocol = self._made(service, opened)

    async def run(self, first: bytes) -> None:
        """Serve until the peer leaves, the protocol is done with it, or a limit is reached."""
        protocol = self._protocol
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            try:
                await self._run_until_over(protocol, first)
            finally:
                await self._hear_last_words()
                await protocol.handle(Closed())
                protocol.goodbye()
                self._outbox.close()
                self._writing.deadline = trio.current_time() + FLUSH_S

    async def _hear_last_words(self) -> None:
        """At the end of the server the calls are cancelled, too, and their last words come before the protocol's."""
        if trio.current_effective_deadline() == -inf:
            with trio.move_on_after(LAST_WORDS_S, shield=True):
                await self._tasks.wait_ended()

    def check(self, now: float) -> None:
        """Abort a connection whose peer does not read or is dead, and end one on which no call has run for too long."""
        stuck = now - self._sending_since >= self._settings.write_timeout_s
        if why := WRITE_TIMEOUT if stuck else self._protocol.check(now):
            self._tasks.cut_off(why)
            self._writing.cancel()
        busy = self._tasks.running or self._outbox
        if not busy and now - self._tasks.idle_since >= self._settings.idle_connection_s:
            self._over.set()

    def forget(self) -> None:
        """All is over. The protocol knows this connection: a cycle, which the collector would find much later."""
        del self._protocol

    async def _run_until_over(self, protocol: Protocol, first: bytes) -> None:
        async with trio.open_nursery() as nursery:
            await protocol.initiate()
            nursery.start_soon(protocol.run)
            nursery.start_soon(self._read, protocol, first)
            await self._over.wait()
            nursery.cancel_scope.cancel()

    def _made(self, service: Service, opened: _Opened) -> Protocol:
        secure = isinstance(opened.stream, trio.SSLStream)
        state = ConnectionState(LifespanState({}))
        # The positional arguments are those of hypercorn's protocol classes.
        args: tuple[Any, ...] = (cast(AppWrapper, service.app), service.config, WorkerContext(None), self._tasks, state)
        args += (secure, opened.peer, opened.here, self._send)
        shared: dict[str, Any] = {"outbox": self._outbox, "settings": self._settings, "entrance": self._entrance}
        if _is_http2(opened.stream, opened.first):
            return ContainedH2(*args, tasks=self._tasks, **shared)
        return ContainedH11(*args, incomplete=service.incomplete, **shared)

    async def _send(self, event: Event) -> None:
        """hypercorn's way out. `Updated` is not needed: a connection is idle while no application call runs on it."""
        if isinstance(event, RawData):
            await self._outbox.put(event.data)
        elif isinstance(event, Closed):
            self._finishing = True
            await self._protocol.handle(event)
            self._outbox.close()

    async def _read(self, protocol: Protocol, first: bytes) -> None:
        data: bytes | bytearray = first
        if not first:
            data = await self._receive(protocol)
        while data:
            if not self._finishing:
                await protocol.handle(RawData(bytes(data)))
            data = await self._receive(protocol)
        await protocol.begun()
        self._peer_left.set()
        self._over.set()

    async def _receive(self, protocol: Protocol) -> bytes | bytearray:
        while protocol.full:
            with trio.move_on_after(LOOK_S) as waiting:
                await protocol.readable()
            if waiting.cancelled_caught and _hung_up(self._stream):
                return b""
        try:
            return await self._stream.receive_some(READ_PIECE)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def _write(self) -> None:
        with self._writing:
            try:
                while piece := await self._outbox.take():
                    self._sending_since = trio.current_time()
                    await self._stream.send_all(piece)
                    self._sending_since = inf
                await self._part()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        self._sending_since = inf
        # Whatever is left cannot be sent any more; let go of everyone who waits for room.
        self._outbox.discard()
        self._over.set()
        # The application calls may take longer to notice; they do not keep the socket.
        await trio.aclose_forcefully(self._stream)

    async def _part(self) -> None:
        """All is written: end our direction, give the peer time to read if it needs it, then close."""
        if isinstance(self._stream, trio.SocketStream):
            await self._stream.send_eof()
        if self._protocol.lingers:
            with trio.move_on_after(LINGER_S):
                await self._peer_left.wait()
        await self._stream.aclose()
