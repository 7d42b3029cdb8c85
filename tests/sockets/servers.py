"""The servers under test, behind one signature: the listener, and others on which the application has to run, too."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

import anycorn.config
import anycorn.run
import anycorn.utils
import hypercorn.config
import hypercorn.trio.run
import hypercorn.utils
import pytest
import trio

from probe.server import listener
from probe.settings import Settings


class Server(Protocol):
    """Serve `app` on `sockets` until cancelled; started with the URLs."""

    async def __call__(
        self,
        app: listener.App,
        settings: Settings,
        sockets: list[socket.socket],
        *,
        task_status: trio.TaskStatus[list[str]],
    ) -> None:
        """Serve until cancelled."""


async def contained(
    app: listener.App,
    settings: Settings,
    sockets: list[socket.socket],
    *,
    task_status: trio.TaskStatus[list[str]],
) -> None:
    await listener.serve(app, settings, sockets, task_status=task_status)


async def fallback(
    app: listener.App,
    settings: Settings,
    sockets: list[socket.socket],
    *,
    task_status: trio.TaskStatus[list[str]],
) -> None:
    """anycorn with the settings it knows. It calls the application for `lifespan`, so that is answered here."""
    config = anycorn.config.Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.graceful_timeout = 0
    config.keep_alive_timeout = config.ssl_handshake_timeout = settings.idle_connection_s
    config.h11_max_incomplete_size = settings.limits.max_header_bytes
    config.keep_alive_max_requests = 10**9
    config.h2_max_concurrent_streams = settings.limits.max_streams_per_connection
    config.certfile, config.keyfile = settings.certfile or None, settings.keyfile or None
    secure, plain = (sockets, []) if settings.certfile else ([], sockets)
    await anycorn.run.worker_serve(
        anycorn.utils.wrap_app(_with_lifespan(app), config.wsgi_max_body_size, "asgi"),
        config,
        sockets=anycorn.config.Sockets(secure, plain, []),
        task_status=task_status,
    )


async def stock(
    app: listener.App,
    settings: Settings,
    sockets: list[socket.socket],
    *,
    task_status: trio.TaskStatus[list[str]],
) -> None:
    """hypercorn as it is, on trio."""
    config = hypercorn.config.Config()
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0
    config.keep_alive_max_requests = 10**9
    await hypercorn.trio.run.worker_serve(
        hypercorn.utils.wrap_app(_with_lifespan(app), config.wsgi_max_body_size, "asgi"),
        config,
        sockets=hypercorn.config.Sockets([], sockets, []),
        task_status=task_status,
    )


def _with_lifespan(app: listener.App) -> listener.App:
    async def served(scope, receive, send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})

    return served


on_both = pytest.mark.parametrize("server", [contained, fallback])
"""For tests of the application, which must not depend on one server."""

Start = Callable[..., Awaitable[int]]
