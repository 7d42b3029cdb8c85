"""Limits on real sockets: who is let in by address, what comes too slowly, and floods of frames.

Every client here is this machine, which has no limit by address: they come through a proxy that is trusted, or the
listener is told to count them.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import hyperframe.frame
import pytest
import trio

from probe.core.budgets import SMALL_BYTES
from probe.core.clients import networks
from probe.server.listener import server as listening
from probe.server.listener.transport import Incomplete

from ..sockets.apps import Recorder
from ..sockets.conftest import certificate, dial, server, start  # noqa: F401 - fixtures
from ..sockets.peers import PATIENCE_S, Dialer, Wire
from ..support.probe import running
from ..support.until import until
from ..support.websocket import BINARY, CONTINUATION, TEXT, Reader, frame, upgrade
from .strangers import ANN, BEN

GET = b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def status(wire: Wire) -> int:
    return int((await wire.read_until(b"\r\n\r\n")).split()[1])


# -- connections


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "client_key", lambda address: address)


async def test_connections_of_one_address_are_a_part_of_all(start, dial, counted, caplog) -> None:  # noqa: F811
    port = await start(Recorder({}), max_connections=8)
    first, second = await dial.http1(port), await dial.http1(port)
    await first.ask()
    await second.ask()
    assert await (await dial.wire(port)).read() == b""
    assert [record.args for record in caplog.records] == [(2, 1)]
    await first.wire.close()
    with trio.fail_after(PATIENCE_S):
        while not await served(dial, port):
            pass


async def served(dial: Dialer, port: int) -> bool:  # noqa: F811
    wire = await dial.wire(port)
    await wire.send(GET % b"/")
    return (await wire.read()).startswith(b"HTTP/1.1 200")


async def test_a_trusted_proxy_may_have_all(start, dial, counted) -> None:  # noqa: F811
    port = await start(Recorder({}), max_connections=4, trusted_proxies="127.0.0.0/8")
    for _ in range(4):
        assert (await (await dial.http1(port)).ask()).status == 200
    assert await (await dial.wire(port)).read() == b""


async def test_so_may_this_machine(start, dial) -> None:  # noqa: F811
    port = await start(Recorder({}), max_connections=4)
    for _ in range(4):
        assert (await (await dial.http1(port)).ask()).status == 200


def test_the_listener_takes_the_same_list_as_the_rate_limiter() -> None:
    assert listening.networks is networks


# -- requests, through a proxy


@pytest.fixture
async def proxied(start) -> AsyncIterator[Any]:  # noqa: F811
    """`await begin(**settings)`: the whole application behind a trusted proxy; its port and the probe."""
    async with trio.open_nursery() as nursery:
        over = trio.Event()

        async def run(values: dict[str, Any], task_status: Any) -> None:
            async with running(trusted_proxies="127.0.0.1", **values) as probe:
                task_status.started(probe)
                await over.wait()

        async def begin(**values: Any) -> tuple[int, Any]:
            probe = await nursery.start(run, values)
            return await start(probe.app, trusted_proxies="127.0.0.1", **values), probe

        yield begin
        over.set()


FEW: dict[str, Any] = {"requests_per_second": 0.1, "request_burst": 3}


async def test_http1_and_http2_have_one_rate_for_one_client(proxied, dial) -> None:  # noqa: F811
    port, _ = await proxied(**FEW)
    one, two = await dial.http1(port), await dial.http2(port)
    said = [("x-forwarded-for", ANN)]
    assert [(await one.ask("/ws", headers=said)).status for _ in range(2)] == [426] * 2
    assert (await two.answer(await two.request("/ws", headers=said))).status == 426
    refused = [await one.ask("/ws", headers=said), await two.answer(await two.request("/ws", headers=said))]
    for answer in refused:
        assert (answer.status, int(answer.headers[b"retry-after"]) in range(1, 11)) == (429, True)
        assert "requests_per_second" in json.loads(answer.body)["detail"]
    assert (await one.ask("/ws", headers=[("x-forwarded-for", BEN)])).status == 426, "the connection goes on"
    assert {(await one.ask("/health", headers=said)).status for _ in range(5)} == {200}


async def test_a_post_that_is_refused_unread_leaves_the_next_connection_alone(proxied, dial) -> None:  # noqa: F811
    port, _ = await proxied(**FEW)
    one = await dial.http1(port)
    said = [("x-forwarded-for", ANN)]
    for _ in range(3):
        await one.ask("/ws", headers=said)
    headers = [*said, ("mcp-protocol-version", "2025-11-25"), ("content-type", "application/json")]
    answer = await (await dial.http1(port)).ask("/mcp", headers=headers, body=b"x" * 3_000_000)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (429, -32000)
    assert (await one.ask("/ws", headers=[("x-forwarded-for", BEN)])).status == 426


async def joined(dial: Dialer, port: int, address: str) -> tuple[Wire, int]:  # noqa: F811
    wire = await dial.wire(port)
    await wire.send(upgrade(host="localhost", sec_websocket_protocol="mcp", x_forwarded_for=address))
    return wire, await status(wire)


async def test_websockets_of_one_address_are_a_part_of_all(proxied, dial) -> None:  # noqa: F811
    port, probe = await proxied(max_websockets=8)
    first, found = await joined(dial, port, ANN)
    assert [found, (await joined(dial, port, ANN))[1]] == [101, 101]
    wire = await dial.wire(port)
    await wire.send(upgrade(host="localhost", sec_websocket_protocol="mcp", x_forwarded_for=ANN))
    refused = (await wire.read_to_end()).decode()
    assert refused.startswith("HTTP/1.1 429")
    assert "retry-after: 5" in refused.lower()
    assert "its share of max_websockets is 2 (address_share)" in refused
    assert (await joined(dial, port, BEN))[1] == 101
    await first.close()
    await until(lambda: probe.engine.services.shares.held("max_websockets", ANN) < 2)
    assert (await joined(dial, port, ANN))[1] == 101


async def test_a_handshake_beyond_the_rate_is_429(proxied, dial) -> None:  # noqa: F811
    port, _ = await proxied(**FEW)
    assert [(await joined(dial, port, ANN))[1] for _ in range(4)] == [101, 101, 101, 429]


# -- what comes too slowly


async def test_a_head_that_comes_byte_by_byte_ends_with_its_time(start, dial) -> None:  # noqa: F811
    """Bytes are no request: they do not keep a connection."""
    app = Recorder({})
    wire = await dial.wire(await start(app, idle_connection_s=1))
    await dribble(wire, b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
    assert not app.calls


async def test_nor_does_one_after_a_request(start, dial) -> None:  # noqa: F811
    one = await dial.http1(await start(Recorder({}), idle_connection_s=1))
    assert (await one.ask()).status == 200
    await dribble(one.wire, b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ")


async def test_nor_does_an_http2_head_that_never_ends(start, dial) -> None:  # noqa: F811
    peer = await dial.http2(await start(Recorder({}), idle_connection_s=1))
    head = hyperframe.frame.HeadersFrame(1, data=b"\x82")
    await peer.wire.send(head.serialize())
    while await peer.receive():
        pass


async def test_nor_do_pings(start, dial) -> None:  # noqa: F811
    peer = await dial.http2(await start(Recorder({}), idle_connection_s=1))
    ping = hyperframe.frame.PingFrame(0, opaque_data=b"still up").serialize()
    await dribble(peer.wire, ping * 200, piece=len(ping))


async def dribble(wire: Wire, data: bytes, piece: int = 1) -> None:
    """Send piece by piece, then as bytes for ever, until the server closes."""
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until_closed, wire, nursery.cancel_scope)
            at = 0
            while True:
                try:
                    await wire.stream.send_all(data[at : at + piece] or b"x")
                except trio.BrokenResourceError:
                    await trio.sleep_forever()
                at += piece
                await trio.sleep(0.05)  # real time: the pace of the client, against a limit of one second


async def _until_closed(wire: Wire, scope: trio.CancelScope) -> None:
    while await wire.read():
        pass
    scope.cancel()


class Shaking:
    """A client of TLS that stops at some point of its handshake."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.state = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def go_on(self) -> bytes:
        """What the client says next."""
        with suppress(ssl.SSLWantReadError):
            self.state.do_handshake()
        return self.outgoing.read()


@pytest.mark.parametrize("stop", ["before-a-byte", "within-the-hello", "after-the-hello", "before-the-end", "after-it"])
async def test_a_tls_handshake_that_is_never_finished_ends(start, dial, certificate, stop) -> None:  # noqa: F811
    app = Recorder({})
    files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile}
    wire = await dial.wire(await start(app, idle_connection_s=1, **files))
    client = Shaking(certificate.client())
    hello = client.go_on()
    if stop == "within-the-hello":
        await wire.send(hello[:100])
    elif stop != "before-a-byte":
        await wire.send(hello)
    if stop in ("before-the-end", "after-it"):
        client.incoming.write(await wire.read())
        finished = client.go_on()
        while not finished:
            client.incoming.write(await wire.read())
            finished = client.go_on()
        await wire.send(finished if stop == "after-it" else finished[:-10])
    await wire.read_to_end()
    assert not app.calls


async def test_half_open_connections_hold_no_place_for_long(start, dial) -> None:  # noqa: F811
    """As many as there may be, of which none says a word: others get in when their time is over."""
    port = await start(Recorder({}), max_connections=5, idle_connection_s=1)
    for _ in range(5):
        await dial.wire(port)
    with trio.fail_after(PATIENCE_S):
        while not await served(dial, port):
            pass


# -- floods of frames


async def test_http2_continuations_without_end_end_the_connection(start, dial) -> None:  # noqa: F811
    app = Recorder({})
    peer = await dial.http2(await start(app, max_header_bytes=1024))
    await peer.wire.send(hyperframe.frame.HeadersFrame(1, data=b"\x82").serialize())
    more = hyperframe.frame.ContinuationFrame(1, data=b"\x82" * 100).serialize()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until_closed, peer.wire, nursery.cancel_scope)
            while True:
                try:
                    await peer.wire.stream.send_all(more)
                except trio.BrokenResourceError:
                    await trio.sleep_forever()
    assert not app.calls


async def test_http2_settings_without_end_are_not_read_from_who_reads_nothing(start, dial) -> None:  # noqa: F811
    """Each is answered, so a flood of them would otherwise pile up answers."""
    app = Recorder({})
    port = await start(app, write_timeout_s=1)
    peer = await dial.http2(port, receive_buffer=4096)
    settings = hyperframe.frame.SettingsFrame(0, settings={}).serialize() * 1000
    with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
        await _send_for_ever(peer.wire, settings)
    assert (await (await dial.http1(port)).ask()).status == 200


async def _send_for_ever(wire: Wire, data: bytes) -> None:
    while True:
        await wire.stream.send_all(data)


# -- WebSocket messages that are not complete


@pytest.fixture
async def echo_of(proxied, dial) -> Any:  # noqa: F811
    """A connection that is a WebSocket, and how to make more."""

    async def connect(port: int, address: str = "127.0.0.1") -> Wire:
        wire = await dial.wire(port)
        said = {} if address == "127.0.0.1" else {"x_forwarded_for": address}
        await wire.send(upgrade(host="localhost", sec_websocket_protocol="mcp", **said))
        assert (await wire.read_until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        return wire

    return connect


@pytest.fixture
def incomplete(monkeypatch: pytest.MonkeyPatch) -> list[Incomplete]:
    """What each listener counts."""
    made: list[Incomplete] = []

    class Kept(Incomplete):
        def __init__(self, most: int, share: float) -> None:
            super().__init__(most, share)
            made.append(self)

    monkeypatch.setattr(listening, "Incomplete", Kept)
    return made


async def falls(incomplete: list[Incomplete], to: int) -> None:
    await until(lambda: incomplete[0].bytes <= to)
    assert incomplete[0].bytes == to


async def empty(incomplete: list[Incomplete], wires: list[Wire]) -> None:
    """Nothing is counted when all have gone."""
    for wire in wires:
        await wire.close()
    await falls(incomplete, 0)
    assert len(incomplete[0]._shares) == 0


async def last_close(wire: Wire) -> tuple[int | None, str]:
    reader, last = Reader(), None
    reader.feed(await wire.read_to_end())
    while (found := reader.frame()) is not None:
        last = found
    assert last is not None
    return last.code, last.reason


async def test_messages_on_their_way_are_bounded_over_all(proxied, echo_of, incomplete) -> None:
    """Seven of 4 MiB without their last byte fill what large ones may have of 32 MiB; one that is small has room."""
    size = 4 * 1024 * 1024
    port, _ = await proxied(max_incoming_bytes=8 * size)
    wires, large = [await echo_of(port) for _ in range(8)], frame(TEXT, b" " * size, fin=False)
    for wire in wires[:7]:
        await wire.send(large)
        # The server has taken it all: it answers what comes behind.
        await wire.send(frame(0x9, b"there?"))
        await wire.read_until(b"there?")
    small = await echo_of(port)
    with trio.fail_after(PATIENCE_S):
        await small.send(frame(TEXT, b" " * (SMALL_BYTES - 1), fin=False) + frame(CONTINUATION, b"x"))
        assert b"-32700" in await small.read()
    await wires[7].send(frame(TEXT, b" " * (SMALL_BYTES + 1), fin=False))
    code, why = await last_close(wires[7])
    assert code == 1013
    assert "max_incoming_bytes" in why
    await falls(incomplete, 7 * size)
    await wires[0].close()
    await falls(incomplete, 6 * size)
    wire = await echo_of(port)
    with trio.fail_after(PATIENCE_S):
        await wire.send(frame(TEXT, b" " * (2 * SMALL_BYTES), fin=False) + frame(CONTINUATION, b"x"))
        assert b"-32700" in await wire.read(), "there is room again"
    await empty(incomplete, [*wires, small, wire])


async def test_messages_on_their_way_are_bounded_for_each_address(proxied, echo_of, incomplete) -> None:
    """Two of 4 MiB are a quarter of 32; one byte more of the same address is too much, and none of another."""
    size = 4 * 1024 * 1024
    port, _ = await proxied(max_incoming_bytes=8 * size, requests_per_second=1e6, request_burst=10**6)
    wires = [await echo_of(port, ANN) for _ in range(3)]
    for wire in wires[:2]:
        await wire.send(frame(TEXT, b" " * size, fin=False) + frame(0x9, b"there?"))
        await wire.read_until(b"there?")
    await wires[2].send(frame(TEXT, b" ", fin=False))
    code, why = await last_close(wires[2])
    assert (code, "8388608 bytes of this address" in why, "address_share" in why) == (1013, True, True)
    other, same = await echo_of(port, BEN), await echo_of(port, ANN)
    with trio.fail_after(PATIENCE_S):
        await other.send(frame(TEXT, b" " * size, fin=False) + frame(0x9, b"there?"))
        await other.read_until(b"there?")
        await same.send(frame(TEXT, b"x"))
        assert b"-32700" in await same.read(), "what comes whole is not on its way"
    await empty(incomplete, [*wires, other, same])


async def test_one_message_may_be_larger_than_the_share_of_its_address(proxied, echo_of) -> None:
    size = 4 * 1024 * 1024
    port, _ = await proxied(
        max_incoming_bytes=8 * size, address_share=0.1, requests_per_second=1e6, request_burst=10**6
    )
    large, small = await echo_of(port, ANN), await echo_of(port, ANN)
    await large.send(frame(TEXT, b" " * size, fin=False) + frame(0x9, b"there?"))
    await large.read_until(b"there?")
    await small.send(frame(TEXT, b" ", fin=False))
    assert (await last_close(small))[0] == 1013


async def test_half_a_message_is_forgotten_when_the_server_closes(proxied, echo_of, incomplete) -> None:
    port, _ = await proxied()
    wire = await echo_of(port)
    await wire.send(frame(BINARY, b"not text") + frame(TEXT, b" " * 1000, fin=False))
    with trio.fail_after(PATIENCE_S):
        assert b"messages are text" in await wire.read(), "and our answer to the close is still waited for"
    assert incomplete[0].bytes == 0
    await empty(incomplete, [wire])


async def test_a_message_that_is_never_complete_ends_its_connection(proxied, echo_of) -> None:
    """Though its peer sends more of it all the time, and answers pings."""
    port, probe = await proxied(idle_connection_s=1)
    wire = await echo_of(port)
    await wire.send(frame(TEXT, b"x"))
    assert b"-32700" in await wire.read(), "it is heard, and so may be idle for long"
    await dribble(wire, frame(TEXT, b" ", fin=False) + frame(CONTINUATION, b" ", fin=False) * 1000, piece=7)
    await until(lambda: probe.events("connection.closed"))
    assert [event["by"] for event in probe.events("connection.closed")] == ["a message is not complete in time"]


async def test_empty_fragments_without_end_take_no_memory(proxied, echo_of) -> None:
    port, _ = await proxied()
    wire = await echo_of(port)
    await wire.send(frame(TEXT, b"", fin=False))
    for _ in range(20):
        await wire.send(frame(CONTINUATION, b"", fin=False) * 1000)
    await wire.send(frame(CONTINUATION, b"x"))
    assert b"-32700" in await wire.read()
