"""`serve`: accepts connections until it is cancelled, chooses the protocol of each, and enforces their limits."""

from __future__ import annotations

import errno
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NoReturn

import trio

from ...core.budgets import Shares
from ...core.clients import client_key, is_within, networks
from ...settings import Settings
from .calls import LOG, App, Contained, Message, Receive, Send
from .http1.connection import Http1Connection
from .outbox import CALLS_END_S, FLUSH_S
from .sockets import tls_context, urls
from .transport import NO_HOOKS, READ_PIECE, Address, Hooks, Incomplete, ServedConnection, Service, Transport

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 section 3.4: the first bytes of a client with prior knowledge of HTTP/2."""

_NO_FIRST_BYTES = "nothing came that tells a protocol"
"""The reason for an end without first bytes: the peer has left, or was silent for too long."""

CHECKS_PER_LIMIT = 4
"""The checks within the shortest limit: no limit is exceeded by more than a quarter."""


async def converse(service: Service, accepted: trio.SocketStream) -> None:
    """Serve one accepted connection until it is over. The caller closes `accepted` and contains the errors.

    If cancelled, the connection ends within `CALLS_END_S` and `FLUSH_S` seconds, whatever its peer does.
    """
    try:
        # Raises if the peer has gone.
        peer, here = (_address(name()) for name in (accepted.socket.getpeername, accepted.socket.getsockname))
    except OSError:
        return
    number, by, requests = next(service.numbers), _NO_FIRST_BYTES, 0
    if service.hooks.log is not None:
        service.hooks.log.opened(number, *(peer or ("", None)))
    try:
        opened = await _open(service, accepted)
        if opened is not None:
            connection = _protocol_of(service, Transport(opened[0], peer, here, opened[1], number))
            try:
                await serve_connection(service, connection)
            finally:
                by, requests = connection.ended_by, connection.requests
    finally:
        if service.hooks.log is not None:
            service.hooks.log.closed(number, by, requests)


def _protocol_of(service: Service, transport: Transport) -> ServedConnection:
    if not (_alpn_is_h2(transport.stream) or transport.first.startswith(PREFACE)):
        return Http1Connection(service, transport)
    # It takes 0.2 s to load, and most servers never need it.
    from .http2.connection import Http2Connection

    return Http2Connection(service, transport)


async def serve_connection(service: Service, connection: ServedConnection) -> None:
    """Run one connection until it is over. It is one of `service.running` meanwhile, so `watch` enforces its limits."""
    service.running.add(connection)
    try:
        await connection.run()
    finally:
        service.running.discard(connection)
        service.ended.unpark_all()


async def watch(service: Service) -> NoReturn:
    """Enforce the limits of all connections until cancelled; then close their sockets in time.

    A task for each would cost two kilobytes, and a timer around each write time for each message.
    """
    settings = service.settings
    pause_s = min(settings.write_timeout_s, settings.idle_connection_s, settings.ws_ping_s) / CHECKS_PER_LIMIT
    try:
        while True:
            await trio.sleep(pause_s)
            now = trio.current_time()
            for connection in list(service.running):
                # A connection may end while another one is closed.
                if connection in service.running:
                    with Contained("the limits of a connection"):
                        await connection.check(now)
    finally:
        # An application call that resists cancellation does not keep its socket.
        with trio.move_on_after(CALLS_END_S + FLUSH_S, shield=True):
            await service.wait_ended()
        # Closing a stream has a checkpoint, but does not wait.
        with trio.CancelScope(shield=True):
            for connection in list(service.running):
                await connection.abort()


async def _open(service: Service, accepted: trio.SocketStream) -> tuple[trio.abc.Stream, bytes] | None:
    """The stream, with TLS if it is set, and its first bytes; None for a peer that has gone or sends none in time."""
    with trio.move_on_after(service.settings.idle_connection_s):
        try:
            stream = await _secured(accepted, service)
            return stream, await _first_bytes(stream)
        except (trio.BrokenResourceError, EOFError, OSError):
            return None
    return None


def _address(name: Any) -> Address:
    """Host and port of a socket's name, which has two more members for IPv6."""
    return (name[0], name[1]) if isinstance(name, tuple) else None


async def _secured(accepted: trio.SocketStream, service: Service) -> trio.abc.Stream:
    if service.tls is None:
        return accepted
    # https_compatible: a peer may close without close_notify, as browsers do.
    stream = trio.SSLStream(accepted, service.tls, server_side=True, https_compatible=True)
    await stream.do_handshake()
    return stream


async def _first_bytes(stream: trio.abc.Stream) -> bytes:
    """The bytes that distinguish HTTP/2 with prior knowledge from HTTP/1.1; empty if ALPN has chosen the protocol."""
    data = b""
    while not _alpn_is_h2(stream) and len(data) < len(PREFACE) and PREFACE.startswith(data):
        piece = await stream.receive_some(READ_PIECE)
        if not piece:
            raise EOFError
        data += piece
    return data


def _alpn_is_h2(stream: trio.abc.Stream) -> bool:
    return isinstance(stream, trio.SSLStream) and stream.selected_alpn_protocol() == "h2"


SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""Errors of accept(2): the limit of open files of the process or the system, or no memory for a socket."""

PAUSE_S = 0.1
"""The pause after a shortage, in seconds. Connections that end meanwhile free descriptors."""

AT_ONCE = 64
"""The most connections that are accepted in one pass of the scheduler.

With one in each pass, a busy server accepts only a few a second, since its passes are long. The kernel's queue then
overflows, and resets connections that have already sent a request.
"""

QUIET_S = 60.0
"""The shortest time between two log lines about a shortage, in seconds."""

_KIND = "max_connections"


class Shortage:
    """Logs that connections cannot be accepted, for all listening sockets of a server."""

    def __init__(self) -> None:
        self._logged_at = -inf

    def note(self, error: OSError) -> None:
        """Log one line, without a traceback, unless there was one in the last `QUIET_S` seconds."""
        now = trio.current_time()
        if now - self._logged_at >= QUIET_S:
            self._logged_at = now
            LOG.error("no connection can be accepted now: %s", error.strerror)


@dataclass(frozen=True, slots=True)
class Places:
    """The connections that may be accepted together: those waiting in `sock`, at most `free()` of them.

    `expect` counts an accepted connection, whose task starts a pass later.
    """

    sock: socket.socket
    free: Callable[[], int]
    expect: Callable[[], None]


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """A listening socket that goes on after a shortage. Owns `listener` and closes it."""

    def __init__(
        self, listener: trio.abc.Listener[trio.SocketStream], shortage: Shortage, places: Places | None = None
    ) -> None:
        self._listener = listener
        self._shortage = shortage
        self._places = places
        self._accepted: deque[socket.socket] = deque()

    async def accept(self) -> trio.SocketStream:
        """The next connection. Raises the errors of `trio.SocketListener`, but none of `SHORTAGES`.

        Other tasks run meanwhile, unless the connection was accepted together with an earlier one.
        """
        if self._accepted:
            await trio.lowlevel.checkpoint_if_cancelled()
            return trio.SocketStream(trio.socket.from_stdlib_socket(self._accepted.popleft()))
        while True:
            try:
                first = await self._listener.accept()
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                self._shortage.note(error)
            else:
                self._accept_others()
                return first
            await trio.sleep(PAUSE_S)

    def _accept_others(self) -> None:
        """Accept the connections behind the first one. An error is left to the next `accept`, which gets it again."""
        places = self._places
        if places is not None:
            places.expect()
            with suppress(OSError):
                while len(self._accepted) < AT_ONCE - 1 and places.free() > 0:
                    self._accepted.append(places.sock.accept()[0])
                    places.expect()

    async def aclose(self) -> None:
        """Close the listening socket, and the accepted connections that were not returned."""
        while self._accepted:
            self._accepted.popleft().close()
        await self._listener.aclose()


class ConnectionLimit:
    """Accepts at most `max_connections`, and of one address its share. Trusted proxies have no share.

    Beyond that there are `reserved_connections`, on which `reserve` answers (an ASGI application, or None for no such
    connections). The oldest of them is closed for the next one: so a client that holds all of them without a request
    does not keep out a health probe.
    """

    def __init__(self, service: Service, reserve: App | None) -> None:
        limits = service.settings.limits
        self._app = service.app
        self._reserve = service.app if reserve is None else reserve
        self._service = service
        self._reserving = replace(service, app=self._answer)
        self._most = limits.max_connections
        self._most_reserved = 0 if reserve is None else limits.reserved_connections
        self._shares = Shares(limits.address_share)
        self._inside = 0
        self._expected = 0
        self._refused = 0
        # Connections closed for a new one are not among these, but count until they have ended.
        self._beyond: deque[trio.CancelScope] = deque()

    def free(self) -> int:
        """The number of free places, without those of expected connections."""
        return self._most - self._inside - self._expected

    def expect(self) -> None:
        self._expected += 1

    async def serve(self, transport: trio.SocketStream) -> None:
        self._expected -= 1
        try:
            holder = self._holder(transport)
        except OSError:
            # The peer has gone already.
            return
        if not self._shares.has_room(_KIND, holder, self._most):
            self._refuse()
            return
        if self._inside >= self._most + 2 * self._most_reserved:
            self._refuse()
            return
        with Contained("a connection"):
            self._shares.take(_KIND, holder)
            self._inside += 1
            try:
                if self._inside <= self._most:
                    await converse(self._service, transport)
                else:
                    await self._serve_reserved(transport)
            finally:
                self._inside -= 1
                self._shares.give_back(_KIND, holder)

    async def _serve_reserved(self, transport: trio.SocketStream) -> None:
        if len(self._beyond) >= self._most_reserved:
            self._beyond.popleft().cancel()
            self._refuse()
        with trio.CancelScope() as scope:
            self._beyond.append(scope)
            try:
                await converse(self._reserving, transport)
            finally:
                if not scope.cancel_called:
                    self._beyond.remove(scope)

    def _holder(self, transport: trio.SocketStream) -> str | None:
        address = str(transport.socket.getpeername()[0])
        return None if is_within(address, self._service.trusted) else client_key(address)

    def _answer(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        app = self._app if self._inside <= self._most else self._reserve
        return app(scope, receive, send)

    def _refuse(self) -> None:
        self._refused += 1
        if self._refused.bit_count() == 1:
            # Only powers of two, so that one client does not fill the log.
            LOG.warning("%d connections are open; refused %d so far", self._inside, self._refused)


async def serve(
    app: App,
    settings: Settings,
    sockets: Sequence[socket.socket],
    *,
    reserve: App | None = None,
    hooks: Hooks = NO_HOOKS,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> NoReturn:
    """Serve `app` on listening `sockets` until cancelled. `task_status.started` receives the base URLs.

    `reserve` answers instead of `app` on the `reserved_connections`; without it connections beyond `max_connections`
    are closed at once.

    Takes over `sockets` and closes them. When cancelled, they are closed at once, the application calls are cancelled,
    and every connection ends within a second, whatever its peer does.

    Raises `ListenError` if the certificate cannot be used, and `NetworksError`. Errors of connections and calls are
    logged to `probe.listener` and not raised.
    """
    shortage = Shortage()
    try:
        tls = tls_context(settings)
        incomplete = Incomplete(settings.limits.max_incoming_bytes, settings.limits.address_share)
        trusted = networks(settings.trusted_proxies.split(","))
        service = Service(app, settings, tls, incomplete, trusted, hooks)
        limit = ConnectionLimit(service, reserve)
        places = [Places(found, limit.free, limit.expect) for found in sockets]
        listeners = [PatientListener(_listener(each.sock), shortage, each) for each in places]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, service)
            task_status.started(urls(sockets, secure=tls is not None))
            await trio.serve_listeners(limit.serve, listeners)
    finally:
        for found in sockets:
            found.close()


def _listener(found: socket.socket) -> trio.SocketListener:
    return trio.SocketListener(trio.socket.from_stdlib_socket(found))
