"""The choice of a protocol for an accepted connection, and the one task that holds all connections to their limits."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

import trio

from .calls import Contained
from .http1.connection import Http1Connection
from .times import FLUSH_S, LAST_WORDS_S
from .transport import READ_PIECE, Address, Service, Transport, WatchedConnection

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 section 3.4: what a client with prior knowledge of HTTP/2 sends first."""

_SAID_NOTHING = "nothing came that tells a protocol"
"""Why a connection is closed whose peer has left, or was silent for too long, before its first bytes."""

CHECKS_PER_LIMIT = 4
"""How often within the shortest limit connections are looked at, so that a limit is exceeded by a quarter at most."""


class Connection(WatchedConnection, Protocol):
    """A connection of one protocol."""

    async def run(self) -> None:
        """Serve until it is over."""


async def converse(service: Service, accepted: trio.SocketStream) -> None:
    """Serve one accepted connection until it is over. The caller closes `accepted` and contains the errors.

    Cancelled, the connection ends within `LAST_WORDS_S` and `FLUSH_S` seconds, whatever its peer does. The limits of
    its peer's idleness need `watch` to run.
    """
    try:
        # Asked first: for a peer that has gone meanwhile it is an error of the system.
        peer, here = (_address(name()) for name in (accepted.socket.getpeername, accepted.socket.getsockname))
    except OSError:
        return
    number, by, requests = next(service.numbers), _SAID_NOTHING, 0
    if service.hooks.log is not None:
        service.hooks.log.opened(number, *(peer or ("", None)))
    try:
        opened = await _open(service, accepted)
        if opened is not None:
            connection = await _protocol_of(service, Transport(opened[0], peer, here, opened[1], number))
            try:
                await _serve(service, connection)
            finally:
                by, requests = connection.ended_by, connection.requests
    finally:
        if service.hooks.log is not None:
            service.hooks.log.closed(number, by, requests)


async def serve_transport(service: Service, transport: Transport) -> None:
    """Serve one connection on any stream. It begins with HTTP/2 by prior knowledge if `transport.first` says so."""
    await _serve(service, await _protocol_of(service, transport))


async def _protocol_of(service: Service, transport: Transport) -> Connection:
    if not _is_http2(transport):
        return Http1Connection(service, transport)
    # hypercorn takes 0.2 s to load.
    http2 = await service.late.get("http2.connection")
    connection: Connection = http2.Http2Connection(service, transport)
    return connection


async def _serve(service: Service, connection: Connection) -> None:
    service.running.add(connection)
    try:
        await connection.run()
    finally:
        service.running.discard(connection)
        service.ended.unpark_all()


async def watch(service: Service) -> NoReturn:
    """Hold all connections to their limits, until cancelled; then see to it that their sockets are closed in time.

    One task for all of them: a task of each would cost two kilobytes, and a timer around each write costs time with
    each message.
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
        # They are cancelled, too. A call that does not let itself be cancelled does not keep its socket.
        with trio.move_on_after(LAST_WORDS_S + FLUSH_S, shield=True):
            await service.wait_ended()
        # To close a stream is a checkpoint, and waits for nothing.
        with trio.CancelScope(shield=True):
            for connection in list(service.running):
                await connection.abort()


async def _open(service: Service, accepted: trio.SocketStream) -> tuple[trio.abc.Stream, bytes] | None:
    """The stream, behind TLS if there is any, and its first bytes.

    None for a peer that has not said enough to be understood in time, or has gone.
    """
    with trio.move_on_after(service.settings.idle_connection_s):
        try:
            stream = await _secured(accepted, service)
            return stream, await _first_bytes(stream)
        except (trio.BrokenResourceError, EOFError, OSError):
            return None
    return None


def _address(name: Any) -> Address:
    """Host and port of a socket's name; for IPv6 it has two more parts."""
    return (name[0], name[1]) if isinstance(name, tuple) else None


async def _secured(accepted: trio.SocketStream, service: Service) -> trio.abc.Stream:
    if service.tls is None:
        return accepted
    # https_compatible: a peer may close without close_notify, as browsers do.
    stream = trio.SSLStream(accepted, service.tls, server_side=True, https_compatible=True)
    await stream.do_handshake()
    return stream


async def _first_bytes(stream: trio.abc.Stream) -> bytes:
    """Enough to tell HTTP/2 with prior knowledge from HTTP/1.1; nothing where ALPN has told already."""
    data = b""
    while not _alpn_is_h2(stream) and len(data) < len(PREFACE) and PREFACE.startswith(data):
        piece = await stream.receive_some(READ_PIECE)
        if not piece:
            raise EOFError
        data += piece
    return data


def _alpn_is_h2(stream: trio.abc.Stream) -> bool:
    return isinstance(stream, trio.SSLStream) and stream.selected_alpn_protocol() == "h2"


def _is_http2(transport: Transport) -> bool:
    return _alpn_is_h2(transport.stream) or transport.first.startswith(PREFACE)
