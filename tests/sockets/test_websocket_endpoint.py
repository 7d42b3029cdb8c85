"""`/ws`: who is let in, what a connection carries, how it is closed, and what the event log learns of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
import trio_websocket

from probe.engine.pipes.wires import Closed, Peer, WireBrokenError
from probe.server.endpoints.websocket import Serve, WebSocketEndpoint, WebSocketWire

from ..support.probe import Probe, running
from ..support.websocket import BINARY, CLOSE, PING, PONG, TEXT, Frame, Reader, close, connected, frame
from ..support.websocket import upgrade as asking
from .peers import PATIENCE_S, Dialer, Wire, soon


def _unpaced(scope: Any, size: int) -> float:
    return 0.0


@dataclass
class Ending:
    """What the tests' `serve` returns."""

    code: int
    why: str


@dataclass
class Serving:
    """In place of the pipe: says what it hears, until its peer goes, or until `leave` is set."""

    ending: Ending = field(default_factory=lambda: Ending(1000, "as told"))
    upgraded: list[Peer] = field(default_factory=list)
    wires: list[WebSocketWire] = field(default_factory=list)
    began: trio.Event = field(default_factory=trio.Event)
    leave: trio.Event = field(default_factory=trio.Event)
    over: trio.Event = field(default_factory=trio.Event)

    async def __call__(self, wire: WebSocketWire, upgraded: Peer) -> Ending:
        self.upgraded.append(upgraded)
        self.wires.append(wire)
        self.began.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, wire, nursery.cancel_scope)
            await self.leave.wait()
            nursery.cancel_scope.cancel()
        self.over.set()
        return self.ending

    async def _listen(self, wire: WebSocketWire, over: trio.CancelScope) -> None:
        try:
            while (message := await wire.receive()) is not None:
                await wire.send(message)
        except WireBrokenError as broken:
            self.ending = Ending(broken.code, broken.why)
        over.cancel()


Begin = Callable[..., Awaitable[tuple[int, Probe]]]


@asynccontextmanager
async def serving(start: Any, serve: Serve, **values: Any) -> AsyncIterator[tuple[int, Probe]]:
    """The endpoint behind a real socket: its port, and the engine."""
    async with running(**values) as probe:
        endpoint = WebSocketEndpoint(probe.engine, serve, _unpaced)
        yield await start(endpoint, **values), probe
        with trio.fail_after(PATIENCE_S):
            await endpoint.wait_idle()
        assert endpoint.open == 0


Asked = tuple[Wire, int, dict[str, str], bytes]


async def asked(dial: Dialer, port: int, target: str = "/ws", **headers: Any) -> Asked:
    """Shake hands by hand: the connection, status, headers and, where it was refused, the body."""
    wire, reader = await dial.wire(port), Reader()
    await wire.send(asking(target, **{"host": f"127.0.0.1:{port}", "sec_websocket_protocol": "mcp", **headers}))
    while (head := reader.head()) is None:
        reader.feed(await wire.read())
    status, named = head
    return wire, status, named, b"" if status == 101 else reader.rest + await wire.read_to_end()


async def first_frame(wire: Wire) -> Frame:
    reader = Reader()
    while (found := reader.frame()) is None:
        reader.feed(await wire.read())
    return found


async def last_frame(wire: Wire) -> Frame:
    reader, last = Reader(), None
    reader.feed(await wire.read_to_end())
    while (found := reader.frame()) is not None:
        last = found
    assert last is not None
    return last


# -- who is let in


async def test_a_client_with_the_subprotocol_is_let_in(start) -> None:
    serve = Serving()
    async with serving(start, serve) as (port, probe):
        async with connected(port, "/ws?tools=features,probe", subprotocols=["other", "mcp"]) as client:
            assert client.subprotocol == "mcp"
            await client.send_message('{"é":1}')
            assert await client.get_message() == '{"é":1}'
        (upgraded,) = serve.upgraded
        exchange = upgraded.request.context.exchange
        assert (upgraded.selection, upgraded.address) == ("features,probe", "127.0.0.1")
        assert upgraded.origin == f"http://127.0.0.1:{port}"
        (request,), (response,) = probe.events("http.request"), probe.events("http.response")
        assert (request["exchange"], request["client"]) == (exchange, upgraded.client)
        assert (request["method"], request["path"], request["query"]) == ("GET", "/ws", "tools=features,probe")
        assert ["sec-websocket-protocol", "[redacted], mcp"] in [list(pair) for pair in request["headers"]]
        assert (response["exchange"], response["status"], response["problem"]) == (exchange, 101, None)
        assert not probe.events("http.closed")


async def test_each_connection_is_an_exchange(start) -> None:
    serve = Serving()
    async with serving(start, serve) as (port, probe):
        for _ in range(2):
            async with connected(port, subprotocols=["mcp"]):
                pass
        one, two = (upgraded.request.context.exchange for upgraded in serve.upgraded)
        assert one < two < next(probe.engine.services.exchanges)
        assert serve.upgraded[0].selection == probe.engine.settings.tools


async def test_where_the_peer_reaches_the_pages(start, certificate) -> None:
    serve = Serving()
    files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile}
    async with serving(start, serve, **files) as (port, _):
        url = f"wss://localhost:{port}/ws"
        async with trio_websocket.open_websocket_url(url, certificate.client(), subprotocols=["mcp"]):
            pass
    public = serving(start, serve, public_url="https://probe.test/")
    async with public as (other, _), connected(other, subprotocols=["mcp"]):
        pass
    assert [upgraded.origin for upgraded in serve.upgraded] == [f"https://localhost:{port}", "https://probe.test"]


REFUSED = {
    "another-host": ({"host": "evil.test"}, 403, "allowed_hosts"),
    "no-host-of-ours-but-ours-as-origin": ({"host": "evil.test", "origin": "http://localhost"}, 403, "allowed_hosts"),
    "another-origin": ({"origin": "http://evil.test"}, 403, "allowed_origins"),
    "a-sandboxed-page": ({"origin": "null"}, 403, "allowed_origins"),
    "two-origins": ({"origin": ["http://localhost", "http://evil.test"]}, 400, "origin"),
    "another-subprotocol": ({"sec_websocket_protocol": "graphql"}, 400, '"mcp"'),
    "no-subprotocol": ({"leave_out": "sec-websocket-protocol"}, 400, '"mcp"'),
    "unknown-tools": ({"target": "/ws?tools=probe,nonsense"}, 400, "nonsense"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_who_is_refused_learns_why(start, dial, case) -> None:
    changed, status, word = REFUSED[case]
    serve = Serving()
    async with serving(start, serve) as (port, probe):
        _, found, headers, body = await asked(dial, port, **changed)
        assert (found, headers["content-type"], headers["connection"]) == (status, "application/json", "close")
        message = json.loads(body)
        assert message["jsonrpc"] == "2.0"
        assert word in message["error"]["message"]
        assert not serve.upgraded
        (response,) = probe.events("http.response")
        assert (response["status"], response["problem"]) == (status, message["error"]["message"])
        assert len(probe.events("http.request")) == 1


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://my.page"])
async def test_pages_that_are_allowed(start, dial, origin) -> None:
    serve = Serving()
    async with serving(start, serve, allowed_origins="https://my.page") as (port, _):
        wire, status, _, _ = await asked(dial, port, origin=origin)
        assert status == 101
        await wire.send(close())


async def test_one_too_many_is_refused_until_another_goes(start, dial) -> None:
    serve = Serving()
    async with serving(start, serve, max_websockets=2) as (port, probe):
        wires = [(await asked(dial, port))[0] for _ in range(2)]
        _, status, headers, body = await asked(dial, port)
        assert (status, headers["retry-after"]) == (503, "5")
        assert "max_websockets" in json.loads(body)["error"]["message"]
        (limit,) = probe.events("limit.reached")
        assert (limit["limit"], limit["value"]) == ("max_websockets", 2)
        await wires[0].send(close())
        assert (await last_frame(wires[0])).code == 1000
        another, status, _, _ = await asked(dial, port)
        assert status == 101
        for wire in (wires[1], another):
            await wire.send(close())


async def test_a_server_that_shuts_down_lets_nobody_in(start, dial) -> None:
    async with serving(start, Serving()) as (port, probe):
        probe.engine.draining = True
        _, status, headers, body = await asked(dial, port)
        assert (status, headers["retry-after"]) == (503, "5")
        assert "shutting down" in json.loads(body)["error"]["message"]
        assert not probe.events("limit.reached")


async def test_a_request_that_is_no_handshake(start, dial) -> None:
    async with serving(start, Serving()) as (port, probe):
        answer = await (await dial.http1(port)).ask("/ws")
        assert (answer.status, answer.headers[b"upgrade"]) == (426, b"websocket")
        assert "WebSocket" in json.loads(answer.body)["detail"]
        peer = await dial.http2(port)
        other = await peer.answer(await peer.request("/ws"))
        assert (other.status, b"upgrade" in other.headers) == (426, False)
        assert not probe.events("http.request")


async def test_a_client_that_leaves_before_it_is_let_in(start, dial) -> None:
    serve = Serving()
    async with running() as probe:
        endpoint, reached, go_on = WebSocketEndpoint(probe.engine, serve, _unpaced), trio.Event(), trio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            reached.set()
            await go_on.wait()
            await endpoint(scope, receive, send)

        wire = await dial.wire(await start(slow))
        await wire.send(asking(host="localhost", sec_websocket_protocol="mcp"))
        await soon(reached)
        await wire.close()
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        (closed,) = probe.events("http.closed")
        assert (closed["by"], closed["messages"]) == ("client", 0)
        assert not serve.upgraded
        assert not probe.events("http.response")


# -- how it is closed


async def test_a_client_that_closes(start, dial) -> None:
    serve = Serving()
    async with serving(start, serve) as (port, _):
        wire = (await asked(dial, port))[0]
        await wire.send(close(3001, "enough"))
        assert (await last_frame(wire)).code == 3001
    assert serve.wires[0].closed == Closed(3001, "client")


@pytest.mark.parametrize(("code", "why"), [(1001, "idle"), (1008, "é" * 100)])
async def test_the_pipe_closes(start, dial, code, why) -> None:
    serve = Serving(Ending(code, why))
    async with serving(start, serve) as (port, _):
        wire = (await asked(dial, port))[0]
        await soon(serve.began)
        serve.leave.set()
        found = await first_frame(wire)
        assert (found.opcode, found.code) == (CLOSE, code)
        assert found.reason == why[:61]
        await wire.send(frame(TEXT, b"was on its way") + frame(BINARY, b"this too") + close(code))
        assert await wire.read_to_end() == b""
    assert serve.wires[0].closed == Closed(code, why)


async def test_what_nobody_has_read_does_not_matter_when_the_pipe_closes(start, dial) -> None:
    leave, wires = trio.Event(), list[WebSocketWire]()

    async def deaf(wire: WebSocketWire, upgraded: Peer) -> Ending:
        wires.append(wire)
        await leave.wait()
        return Ending(1001, "idle")

    async with serving(start, deaf) as (port, _):
        wire = (await asked(dial, port))[0]
        await wire.send(frame(TEXT, b"unread") + frame(BINARY, b"this too") + frame(PING))
        assert (await first_frame(wire)).opcode == PONG
        leave.set()
        assert (await first_frame(wire)).code == 1001
        await wire.send(close(1001))
    assert wires[0].closed == Closed(1001, "idle")


async def test_a_binary_frame_closes(start, dial) -> None:
    serve = Serving()
    async with serving(start, serve) as (port, _):
        wire = (await asked(dial, port))[0]
        await wire.send(frame(BINARY, b"{}"))
        found = await first_frame(wire)
        await wire.send(close(1003))
        assert (found.code, "binary" in found.reason) == (1003, True)


async def test_who_breaks_the_rules_ends_the_connection_by_the_server(start, dial) -> None:
    serve = Serving()
    async with serving(start, serve, max_body_bytes=1024) as (port, _):
        wire = (await asked(dial, port))[0]
        await wire.send(frame(TEXT, b"x" * 1025))
        found = await last_frame(wire)
    assert found.code == 1009
    assert serve.wires[0].closed == Closed(1009, found.reason)


async def test_who_is_cut_off_is_told_from_who_leaves(start, dial) -> None:
    serve = Serving()
    async with serving(start, serve, ws_ping_s=0.1) as (port, _):
        wire = (await asked(dial, port))[0]
        await wire.read_to_end()
    assert serve.wires[0].closed == Closed(1006, "dead peer")


async def test_sending_to_who_has_left_is_an_error_of_the_system(start, dial) -> None:
    serve = Serving()
    async with serving(start, serve) as (port, _):
        wire = (await asked(dial, port))[0]
        await wire.send(close())
        await last_frame(wire)
        with pytest.raises(OSError, match="closed"):
            await serve.wires[0].send(b"{}")
        assert await serve.wires[0].receive() is None
