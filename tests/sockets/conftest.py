"""Fixtures of the socket tests."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from probe.server import listener
from probe.settings import build

from .peers import Dialer
from .servers import Server, Start, contained


@pytest.fixture
def server() -> Server:
    """The listener; `on_both` runs a test on anycorn as well."""
    return contained


@pytest.fixture
async def start(server: Server) -> AsyncIterator[Start]:
    """`await start(app, **settings)` starts the server under test on a free port of this machine; the port."""
    async with trio.open_nursery() as nursery:

        async def begin(app: listener.App, **values: Any) -> int:
            settings = build({"port": 0, **values})
            sockets = listener.open_sockets(settings)
            await nursery.start(partial(server, app, settings, sockets))
            return int(sockets[0].getsockname()[1])

        yield begin
        nursery.cancel_scope.cancel()


SHUTDOWN_S = 3.0
"""The promise is one second; the rest is for a busy machine. Every stall of these tests lasts an hour."""


@pytest.fixture
async def stoppable() -> AsyncIterator[Callable[..., Awaitable[tuple[int, Callable[[], Awaitable[None]]]]]]:
    """`begin(app, **settings)` starts the listener; the port, and a function that stops it and waits."""
    async with trio.open_nursery() as nursery:

        async def begin(app: listener.App, **values: Any) -> tuple[int, Callable[[], Awaitable[None]]]:
            settings = build({"port": 0, "write_timeout_s": 3600, "idle_connection_s": 3600, **values})
            sockets = listener.open_sockets(settings)
            port, scope, ended = sockets[0].getsockname()[1], trio.CancelScope(), trio.Event()

            async def run(task_status: trio.TaskStatus[list[str]]) -> None:
                with scope:
                    await contained(app, settings, sockets, task_status=task_status)
                ended.set()

            async def stop() -> None:
                scope.cancel()
                with trio.fail_after(SHUTDOWN_S):
                    await ended.wait()

            await nursery.start(run)
            return port, stop

        yield begin
        nursery.cancel_scope.cancel()


@pytest.fixture
async def dial() -> AsyncIterator[Dialer]:
    """Connections that are closed after the test."""
    dialer = Dialer()
    yield dialer
    await dialer.hang_up()


class Certificate:
    """A certificate for localhost: its file for the server, its trust for a client."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        self.certfile, self.keyfile = str(folder / "cert.pem"), str(folder / "key.pem")
        Path(self.certfile).write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        Path(self.keyfile).write_bytes(issued.private_key_pem.bytes())
        self._authority = authority

    def client(self, *protocols: str) -> ssl.SSLContext:
        """A client context that offers `protocols` by ALPN."""
        context = ssl.create_default_context()
        self._authority.configure_trust(context)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("tls"))
