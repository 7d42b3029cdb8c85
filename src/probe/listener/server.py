"""`serve`: accepts connections, counts them, and contains each one."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import NoReturn

import trio
from hypercorn.config import Config

from ..core.addresses import client_key, is_within, networks
from ..core.shares import Shares
from ..settings import Settings
from .calls import LOG, App, contained
from .connection import converse, watch
from .incomplete import Incomplete
from .sockets import tls_context, urls
from .transport import Service

UNLIMITED = 10**9
"""hypercorn ends an HTTP/2 connection at the request that reaches its keep-alive limit, with streams still open."""

_KIND = "max_connections"


async def serve(
    app: App,
    settings: Settings,
    sockets: Sequence[socket.socket],
    *,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> NoReturn:
    """Serve `app` on listening `sockets` until cancelled, which is the only way to stop it.

    `task_status.started` receives the base URLs. `app` is called for the scopes `http` and `websocket`; there is no
    `lifespan`, because whoever calls `serve` has started what the application needs and will stop it.

    Resource handling: takes over `sockets` and closes them. When cancelled, the listening sockets are closed at once,
    the application calls are cancelled, and every connection ends within a second, whatever its peer does.

    Error handling: raises `ListenError` when the certificate cannot be used, and `NetworksError`. No error of a
    connection or of an application call gets out; it is logged to `probe.listener`.
    """
    listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(found)) for found in sockets]
    try:
        tls = tls_context(settings)
        incomplete = Incomplete(settings.limits.max_incoming_bytes, settings.limits.address_share)
        trusted = networks(settings.trusted_proxies.split(","))
        service = Service(app, settings, _config(settings), tls, incomplete, trusted)
        task_status.started(urls(sockets, secure=tls is not None))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, service)
            await trio.serve_listeners(_Door(service).enter, listeners)
    finally:
        for listener in listeners:
            listener.socket.close()


def _config(settings: Settings) -> Config:
    """What hypercorn's protocol classes read; everything about sockets, workers and timeouts is ours."""
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.keep_alive_max_requests = UNLIMITED
    return config


class _Door:
    """Lets in at most `max_connections` at a time, and of one address its share: but a proxy's has all clients."""

    def __init__(self, service: Service) -> None:
        settings = service.settings
        self._service = service
        self._most = settings.limits.max_connections
        self._shares = Shares(settings.limits.address_share)
        self._trusted = service.trusted
        self._inside = 0
        self._refused = 0

    async def enter(self, transport: trio.SocketStream) -> None:
        """Serve one connection, or close it at once when there are too many."""
        try:
            holder = self._holder(transport)
        except OSError:
            # The peer has gone already.
            return
        if self._inside >= self._most or not self._shares.has_room(_KIND, holder, self._most):
            self._refuse()
            return
        self._inside += 1
        try:
            with contained("a connection"), self._shares.holding(_KIND, holder):
                await converse(self._service, transport)
        finally:
            self._inside -= 1

    def _holder(self, transport: trio.SocketStream) -> str | None:
        address = str(transport.socket.getpeername()[0])
        return None if is_within(address, self._trusted) else client_key(address)

    def _refuse(self) -> None:
        self._refused += 1
        if self._refused.bit_count() == 1:
            # Powers of two only: who opens connections in a loop does not fill the log as well.
            LOG.warning("%d connections are open; refused %d so far", self._inside, self._refused)
