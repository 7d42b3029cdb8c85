"""`serve`: accepts connections until it is cancelled."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import NoReturn

import trio

from ...core.clients import networks
from ...settings import Settings
from .accepting import PatientListener, Places, Shortage
from .calls import App
from .connection import watch
from .door import Door
from .incomplete import Incomplete
from .sockets import tls_context, urls
from .transport import NO_HOOKS, Hooks, Service


async def serve(
    app: App,
    settings: Settings,
    sockets: Sequence[socket.socket],
    *,
    reserve: App | None = None,
    hooks: Hooks = NO_HOOKS,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> NoReturn:
    """Serve `app` on listening `sockets` until cancelled, which is the only way to stop it.

    `task_status.started` receives the base URLs. `app` is called for the scopes `http` and `websocket`, without
    `lifespan`: the caller starts what the application needs before `serve`, and stops it afterwards. `reserve` answers
    instead of `app` on the `reserved_connections`; without it connections beyond `max_connections` are closed at once.

    Resource handling: takes over `sockets` and closes them. When cancelled, the listening sockets are closed at once,
    the application calls are cancelled, and every connection ends within a second, whatever its peer does.

    Error handling: raises `ListenError` if the certificate cannot be used, and `NetworksError`. Errors of connections
    and application calls are logged to `probe.listener` and not raised.
    """
    shortage = Shortage()
    try:
        tls = tls_context(settings)
        incomplete = Incomplete(settings.limits.max_incoming_bytes, settings.limits.address_share)
        trusted = networks(settings.trusted_proxies.split(","))
        service = Service(app, settings, tls, incomplete, trusted, hooks)
        door = Door(service, reserve)
        places = [Places(found, door.free, door.expect) for found in sockets]
        listeners = [PatientListener(_listener(each.sock), shortage, each) for each in places]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, service)
            task_status.started(urls(sockets, secure=tls is not None))
            await trio.serve_listeners(door.enter, listeners)
    finally:
        for found in sockets:
            found.close()


def _listener(found: socket.socket) -> trio.SocketListener:
    return trio.SocketListener(trio.socket.from_stdlib_socket(found))
