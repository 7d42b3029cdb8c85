"""What only real sockets and real processes show: TLS, signals, and a server that is not there."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trustme
from trio_websocket import WebSocketRequest, serve_websocket

from probe.toolhost import Host, tool

from .network import SECRET, SUBPROTOCOL, Peer


@tool
async def echo(text: str) -> str:
    return text


@asynccontextmanager
async def listening(
    handle: Callable[[Peer], object], context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, int]]:
    """A server for tool hosts; gives its name and port."""

    async def accept(request: WebSocketRequest) -> None:
        websocket = await request.accept(subprotocol=SUBPROTOCOL)
        await handle(Peer(websocket, websocket._stream))  # type: ignore[misc]

    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve_websocket, accept, "127.0.0.1", 0, context))
        yield "127.0.0.1", server.port
        nursery.cancel_scope.cancel()


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def test_tls(authority: trustme.CA) -> None:
    answered: list[object] = []
    codes: list[int] = []
    gone = trio.Event()

    async def handle(peer: Peer) -> None:
        await peer.register()
        await peer.dispatch("d1", "echo", text="x" * 50_000)
        answered.append((await peer.read())["result"])
        codes.append(await peer.closed())
        gone.set()

    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with trio.fail_after(60):
        async with listening(handle, server_context(authority)) as (name, port):
            async with trio.open_nursery() as nursery:
                serve = partial(Host("demo", [echo]).serve, ssl_context=trusting)
                names = await nursery.start(serve, f"wss://{name}:{port}/toolhost", SECRET)
                while not answered:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                nursery.cancel_scope.cancel()
            await gone.wait()
    assert (names, codes) == (["demo__echo"], [1000])
    assert answered == [{"text": "x" * 50_000}]


async def test_a_certificate_that_nobody_vouches_for(authority: trustme.CA, caplog: pytest.LogCaptureFixture) -> None:
    async def handle(peer: Peer) -> None:
        raise AssertionError("never reached")

    with caplog.at_level(logging.WARNING, "probe.toolhost"):
        async with listening(handle, server_context(authority)) as (name, port):
            with trio.move_on_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(Host("demo", [echo]).serve, f"wss://{name}:{port}/toolhost", SECRET)
                    while not caplog.records:
                        await trio.testing.wait_all_tasks_blocked(0.01)
                    nursery.cancel_scope.cancel()
    assert "certificate verify failed" in caplog.text


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_host_that_waits_for_its_server(number: signal.Signals) -> None:
    url = f"ws://127.0.0.1:{closed_port()}/toolhost"
    command = [sys.executable, "-m", "probe", "toolhost-demo", "--url", url, "--toolhost-secret", SECRET]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "Connection refused; trying again" in process.stderr.readline()
            process.send_signal(number)
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, rest) == (0, "")


def test_a_signal_does_not_wait_for_a_thread() -> None:
    """The handler sleeps for ten minutes and does not look."""
    code = f"""
import trio
from functools import partial
from probe.toolhost import demo, run, Host
from trio_websocket import serve_websocket
from tests.toolhost.network import Peer, SUBPROTOCOL
import os, signal

async def accept(request):
    peer = Peer(await request.accept(subprotocol=SUBPROTOCOL), None)
    await peer.register()
    await peer.dispatch("d1", "slow_in_thread", seconds=600, when_cancelled="goes_on")
    await peer.ping()
    os.kill(os.getpid(), signal.SIGTERM)
    await peer.closed()

class Beside(Host):
    async def serve(self, url, secret, **options):
        async with trio.open_nursery() as nursery:
            server = await nursery.start(partial(serve_websocket, accept, "127.0.0.1", 0, None))
            await super().serve(f"ws://127.0.0.1:{{server.port}}/toolhost", secret, **options)

run(Beside("demo", demo.TOOLS), "", {SECRET!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    # Who has set up no logging sees what the library logs, and nothing else.
    assert "registered as demo" in done.stderr
    assert "Traceback" not in done.stderr
