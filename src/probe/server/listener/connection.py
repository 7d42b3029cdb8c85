"""The protocol of an accepted connection, and the task that enforces the limits of all connections."""

from __future__ import annotations

from typing import Any, NoReturn

import trio

from .calls import Contained
from .http1.connection import Http1Connection
from .outbox import CALLS_END_S, FLUSH_S
from .transport import READ_PIECE, Address, ServedConnection, Service, Transport

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 section 3.4: the first bytes of a client with prior knowledge of HTTP/2."""

_NO_FIRST_BYTES = "nothing came that tells a protocol"
"""The reason for the end of a connection without first bytes: its peer has left, or was silent for too long."""

CHECKS_PER_LIMIT = 4
"""The checks of all connections within the shortest limit, so that no limit is exceeded by more than a quarter."""


async def converse(service: Service, accepted: trio.SocketStream) -> None:
    """Serve one accepted connection until it is over. The caller closes `accepted` and contains the errors.

    If cancelled, the connection ends within `CALLS_END_S` and `FLUSH_S` seconds, whatever its peer does.
    """
    try:
        # Before all else: if the peer has gone, this raises an error of the system.
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
                await _serve(service, connection)
            finally:
                by, requests = connection.ended_by, connection.requests
    finally:
        if service.hooks.log is not None:
            service.hooks.log.closed(number, by, requests)


async def serve_transport(service: Service, transport: Transport) -> None:
    """Serve one connection on any stream: HTTP/2 if `transport.first` has its preface, else HTTP/1.1."""
    await _serve(service, _protocol_of(service, transport))


def _protocol_of(service: Service, transport: Transport) -> ServedConnection:
    if not _is_http2(transport):
        return Http1Connection(service, transport)
    # hypercorn takes 0.2 s to load, once, and most servers never need it.
    from .http2.connection import Http2Connection

    return Http2Connection(service, transport)


async def _serve(service: Service, connection: ServedConnection) -> None:
    service.running.add(connection)
    try:
        await connection.run()
    finally:
        service.running.discard(connection)
        service.ended.unpark_all()


async def watch(service: Service) -> NoReturn:
    """Enforce the limits of all connections until cancelled; then close their sockets in time.

    One task serves all connections: a task for each would cost two kilobytes, and a timer around each write would cost
    time for each message.
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
        # The connections are cancelled too. An application call that resists cancellation does not keep its socket.
        with trio.move_on_after(CALLS_END_S + FLUSH_S, shield=True):
            await service.wait_ended()
        # Closing a stream has a checkpoint, but does not wait.
        with trio.CancelScope(shield=True):
            for connection in list(service.running):
                await connection.abort()


async def _open(service: Service, accepted: trio.SocketStream) -> tuple[trio.abc.Stream, bytes] | None:
    """The stream, with TLS if it is set, and its first bytes.

    Returns None for a peer that has gone, or has not sent its first bytes in time.
    """
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


def _is_http2(transport: Transport) -> bool:
    return _alpn_is_h2(transport.stream) or transport.first.startswith(PREFACE)
