"""Clients that hold up what they can when a signal comes: the server ends in time all the same, with exit code 0."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from ..sockets.conftest import Certificate
from ..sockets.peers import Dialer, Wire
from ..support.process import serving
from ..support.websocket import TEXT, frame, upgrade
from .peers import Socket, call, head, headers, legacy_steps, modern, post, post2, session, steps

GRACE_S = 0.5
LARGE = {"blocks": 50, "chars": 65536}
TINY = 4096
"""A receive buffer that makes a peer that does not read felt early."""

Stall = Callable[[Dialer, int, Any], Awaitable[object]]


async def never_reads_an_answer(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port, tls=tls, receive_buffer=TINY)
    await wire.send(post(call("long_output", LARGE)))


async def never_reads_a_stream(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port, tls=tls, receive_buffer=TINY)
    await wire.send(post(call("chatty", {"count": 1000})))
    await wire.send(post(steps(100, 5)))


async def never_reads_a_session(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port, tls=tls, receive_buffer=TINY)
    fields = await session(wire)
    await wire.send(post(legacy_steps(100, 50), fields))


async def grants_no_window(dial: Dialer, port: int, tls: Any) -> None:
    peer = await dial.http2(port, grants=False, receive_buffer=TINY)
    for number in range(5):
        await post2(peer, call("long_output", LARGE, number))
    await post2(peer, modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l"))


async def half_a_head(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port, tls=tls)
    await wire.send(b"POST /mcp HTTP/1.1\r\nhost: loc")


async def half_a_body(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port, tls=tls)
    await wire.send(head("POST", {**headers(call("chatty")), "content-length": "1000"}) + b'{"jsonrpc"')


async def half_a_body2(dial: Dialer, port: int, tls: Any) -> None:
    peer = await dial.http2(port)
    stream = await peer.request("/mcp", end=False, headers=[*headers(call("chatty")).items()])
    await peer.data(stream, b'{"jsonrpc"')


async def says_nothing(dial: Dialer, port: int, tls: Any) -> None:
    await dial.wire(port)


async def half_a_handshake(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port)
    await wire.send(b"\x16\x03\x01\x02\x00\x01")


async def never_reads_a_websocket(dial: Dialer, port: int, tls: Any) -> None:
    socket = Socket(await dial.wire(port, tls=tls, receive_buffer=TINY))
    assert await socket.open() == 101
    for number in range(3):
        await socket.say(call("long_output", LARGE, number))
    await socket.say(steps(100, 5000))


async def half_a_frame(dial: Dialer, port: int, tls: Any) -> None:
    socket = Socket(await dial.wire(port, tls=tls))
    assert await socket.open() == 101
    await socket.wire.send(frame(TEXT, b"{" * 5000)[:1000])


async def half_an_upgrade(dial: Dialer, port: int, tls: Any) -> None:
    wire = await dial.wire(port, tls=tls)
    await wire.send(upgrade("/ws", sec_websocket_protocol="mcp")[:60])


PLAIN: dict[str, Stall] = {
    "an answer that nobody reads": never_reads_an_answer,
    "a stream that nobody reads": never_reads_a_stream,
    "a session that nobody reads": never_reads_a_session,
    "HTTP/2 without a window": grants_no_window,
    "half a head": half_a_head,
    "half a body": half_a_body,
    "half a body over HTTP/2": half_a_body2,
    "a connection that says nothing": says_nothing,
    "a WebSocket that nobody reads": never_reads_a_websocket,
    "half a frame": half_a_frame,
    "half an upgrade": half_an_upgrade,
}
SECURE = {
    "an answer that nobody reads": never_reads_an_answer,
    "a stream that nobody reads": never_reads_a_stream,
    "half a body": half_a_body,
    "half a handshake": half_a_handshake,
    "a WebSocket that nobody reads": never_reads_a_websocket,
}


async def stops(server: Any, number: signal.Signals = signal.SIGTERM) -> None:
    """Send the signal; the process ends of itself with code 0, far sooner than a write or the grace period may last."""
    server.program.signal(number)
    assert await server.program.ended() == 0, server.program.lines


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_all_of_them_together_hold_nothing_up(dial: Dialer, certificate: Certificate, secure: bool) -> None:
    """One server for all, and a good client beside them, whose call may finish."""
    files = ("--certfile", certificate.certfile, "--keyfile", certificate.keyfile) if secure else ()
    tls = certificate.client("http/1.1") if secure else None
    async with serving("--grace-s", str(GRACE_S), "--write-timeout-s", "3600", *files) as server:
        for stall in (SECURE if secure else PLAIN).values():
            await stall(dial, server.port, tls)
        good = await dial.wire(server.port, tls=tls)
        await good.send(post(steps(3, 20)))
        assert b'"progress":1' in await good.read_until(b'"done":true')
        await stops(server)


async def test_a_flood_of_new_connections_during_the_drain(dial: Dialer) -> None:
    """Each is let in and refused, or finds nobody; none of it keeps the server, and what runs has its answer."""
    async with serving("--grace-s", "20") as server:
        runs = await dial.wire(server.port)
        await runs.send(post(steps(60, 50)))
        await runs.read_until(b'"progress":1')
        server.program.signal(signal.SIGTERM)
        await server.program.said("stopping:")
        refused: list[bytes] = []
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(flood, server.port, refused)
            assert b'"done":true' in await runs.read_to_end()
            # The drain is over with the last call, whoever still knocks.
            assert await server.program.ended() == 0
            nursery.cancel_scope.cancel()
        assert len(refused) > 20
        assert {answer[:12] for answer in refused} == {b"HTTP/1.1 503"}


async def flood(port: int, refused: list[bytes]) -> None:
    """Ask on a new connection again and again, until nobody listens any more."""
    dial = Dialer()
    try:
        while True:
            wire: Wire = await dial.wire(port)
            try:
                await wire.send(post(call("chatty")))
                answer = await wire.read()
                refused += [answer] * bool(answer)
            finally:
                await wire.close()
    except (OSError, trio.BrokenResourceError):
        # Nobody listens any more, and what was half way is reset.
        await trio.sleep_forever()


async def test_a_second_signal_waits_for_none_of_them(dial: Dialer) -> None:
    async with serving("--grace-s", "600", "--write-timeout-s", "3600") as server:
        for stall in PLAIN.values():
            await stall(dial, server.port, None)
        runs = await dial.wire(server.port)
        await runs.send(post(steps(100, 2000)))
        await runs.read_until(b'"progress":1')
        server.program.signal(signal.SIGTERM)
        await server.program.said("stopping:")
        await stops(server, signal.SIGINT)
