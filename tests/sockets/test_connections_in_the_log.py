"""The event log names the connections below HTTP, and the frames of WebSockets, as the listener tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import h2.config
import h2.connection
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.server import listener
from probe.settings import build
from probe.web.paths import Paths
from probe.wire.jsonrpc import encode

from ..support.probe import Probe, running
from ..support.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, close, frame, upgrade

MISSING = b"GET /missing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@asynccontextmanager
async def served(**values: Any) -> AsyncIterator[tuple[Probe, int]]:
    """A probe behind the listener, which tells its log of connections; and the port."""
    async with running(**values) as probe, trio.open_nursery() as nursery:
        settings = build({"port": 0, **values})
        sockets = listener.open_sockets(settings)
        paths = Paths(probe.engine)
        await nursery.start(partial(listener.serve, paths, settings, sockets, hooks=listener.Hooks(paths.sockets)))
        with trio.fail_after(30):
            yield probe, int(sockets[0].getsockname()[1])
        nursery.cancel_scope.cancel()


async def event(probe: Probe, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """The entries of a kind, once there are so many."""
    while len(found := probe.events(kind)) < count:
        await probe.engine.log.wait_beyond(probe.engine.log.last)
    return found


async def test_requests_name_their_connection_and_its_end_counts_them() -> None:
    async with served() as (probe, port):
        for _ in range(2):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            for _ in range(2):
                await stream.send_all(MISSING)
                await stream.receive_some()
            await stream.aclose()
        closed = await event(probe, "socket.closed", 2)
        opened = probe.events("socket.opened")
    assert [entry["connection"] for entry in opened] == ["tcp1", "tcp2"]
    assert [(entry["connection"], entry["by"], entry["requests"]) for entry in closed] == [
        ("tcp1", "client", 2), ("tcp2", "client", 2)
    ]  # fmt: skip
    assert [entry["cause"] for entry in closed] == [entry["seq"] for entry in opened]
    assert [(entry["connection"], entry["stream_id"]) for entry in probe.events("http.request")] == [
        ("tcp1", None), ("tcp1", None), ("tcp2", None), ("tcp2", None)
    ]  # fmt: skip


async def test_the_end_of_the_server_is_why_a_connection_closed() -> None:
    async with running() as probe:
        settings = build({"port": 0})
        sockets, paths = listener.open_sockets(settings), Paths(probe.engine)
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                serve = partial(listener.serve, paths, settings, sockets, hooks=listener.Hooks(paths.sockets))
                await nursery.start(serve)
                stream = await trio.open_tcp_stream("127.0.0.1", int(sockets[0].getsockname()[1]))
                await stream.send_all(MISSING)
                await stream.receive_some()
                await wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        await stream.aclose()
        assert [(entry["by"], entry["requests"]) for entry in probe.events("socket.closed")] == [
            ("the server closed it", 1)
        ]


MALFORMED = {
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n": (400, "a malformed head: Invalid header token"),
    b"GET / HTTP/1.1\r\n\r\n": (400, "no Host field"),
    b"GET / HTTP/2.0\r\nHost: a\r\n\r\n": (505, "a version other than HTTP/1.x"),
}


@pytest.mark.parametrize("sent", MALFORMED, ids=[why for _, why in MALFORMED.values()])
async def test_what_is_no_http_is_refused_and_recorded(sent: bytes) -> None:
    status, why = MALFORMED[sent]
    async with served() as (probe, port):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(sent)
        assert b" %d " % status in await stream.receive_some()
        (refused,) = await event(probe, "socket.refused")
        await stream.aclose()
        (closed,) = await event(probe, "socket.closed")
    assert (refused["connection"], refused["status"], refused["why"]) == ("tcp1", status, why)
    assert (closed["by"], closed["requests"]) == ("no valid HTTP request", 0)


async def test_a_body_that_is_no_http_is_refused_and_recorded() -> None:
    head = MISSING.replace(b"GET /missing", b"POST /mcp").removesuffix(b"\r\n")
    head += b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    async with served() as (probe, port):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(head + b"Transfer-Encoding: chunked\r\n\r\n")
        await event(probe, "http.request")
        await stream.send_all(b"zz\r\n")
        assert b" 400 " in await stream.receive_some()
        await stream.aclose()
        (closed,) = await event(probe, "socket.closed")
    (refused,) = probe.events("socket.refused")
    assert (refused["status"], refused["why"]) == (400, "a malformed body: Invalid character in chunk size")
    assert (closed["by"], closed["requests"]) == ("no valid HTTP request", 1)


async def test_what_is_no_http2_is_refused_with_its_error_code() -> None:
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    async with served() as (probe, port):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        # RFC 9113 section 6.1: DATA on stream 0 is a connection error of type PROTOCOL_ERROR.
        await stream.send_all(client.data_to_send() + bytes(9))
        while await stream.receive_some():
            pass
        await stream.aclose()
        (closed,) = await event(probe, "socket.closed")
    (refused,) = probe.events("socket.refused")
    assert (refused["connection"], refused["status"], refused["why"]) == ("tcp1", None, "HTTP/2 PROTOCOL_ERROR")
    assert (closed["by"], closed["requests"]) == ("no valid HTTP/2", 0)


@pytest.mark.parametrize("behind", [MISSING, b""], ids=["another", "nothing"])
async def test_requests_behind_one_that_is_cancelled_are_dropped_and_recorded(behind: bytes) -> None:
    """The client has ended its own direction, which cancels a modern call. Nothing behind it can be answered."""
    async with served(tools="all") as (probe, port):
        client = probe.modern()
        call = client.request("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 5000}}, id=1)
        body, fields = encode(call), client.headers(call)
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + f"content-length: {len(body)}\r\n"
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body + behind)
        await event(probe, "call.started")
        await stream.send_eof()
        assert await stream.receive_some() == b""
        await stream.aclose()
        (closed,) = await event(probe, "socket.closed")
    refused = [(entry["status"], entry["why"]) for entry in probe.events("socket.refused")]
    assert refused == ([(None, "it came behind a request that is not answered")] if behind else [])
    assert closed["requests"] == 1


async def test_an_idle_connection_is_closed_by_the_server() -> None:
    async with served(idle_connection_s=1) as (probe, port):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(MISSING)
        (closed,) = await event(probe, "socket.closed")
        await stream.aclose()
    assert (closed["by"], closed["requests"]) == ("idle", 1)


async def test_a_connection_of_an_observer_is_not_recorded() -> None:
    async with served() as (probe, port):
        for request in (MISSING.replace(b"/missing", b"/health"), MISSING):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(request)
            await stream.receive_some()
            await stream.aclose()
        (closed,) = await event(probe, "socket.closed")
    assert closed["connection"] == "tcp2"
    assert [entry["connection"] for entry in probe.events("socket.opened")] == ["tcp2"]


async def test_a_connection_without_a_request_is_recorded_at_its_end() -> None:
    async with served() as (probe, port):
        await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
        (closed,) = await event(probe, "socket.closed")
    assert (closed["connection"], closed["requests"]) == ("tcp1", 0)


async def test_requests_on_http2_name_their_stream() -> None:
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    head = [(":method", "GET"), (":path", "/missing"), (":scheme", "http"), (":authority", "127.0.0.1")]
    for id in (1, 3):
        client.send_headers(id, head, end_stream=True)
    async with served() as (probe, port):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(client.data_to_send())
        requests = await event(probe, "http.request", 2)
        await stream.aclose()
        (closed,) = await event(probe, "socket.closed")
    assert [(entry["connection"], entry["stream_id"]) for entry in requests] == [("tcp1", 1), ("tcp1", 3)]
    assert (closed["by"], closed["requests"]) == ("client", 2)


async def test_the_frames_of_a_websocket_and_who_closed_first() -> None:
    async with served(max_body_bytes=1024) as (probe, port):
        for last in (close(1000, "bye"), frame(TEXT, b"x" * 2000)):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(upgrade(sec_websocket_protocol="mcp"))
            await stream.receive_some()
            await stream.send_all(frame(PING, b"12345") + last)
            while await stream.receive_some():
                pass
            await stream.aclose()
        closed = await event(probe, "connection.closed", 2)
    first, second = closed[0]["connection"], closed[1]["connection"]
    frames = [
        (entry["connection"], entry["direction"], entry["opcode"], entry["size"], entry["refused"] is not None)
        for entry in probe.events("websocket.frame")
    ]
    assert frames == [
        (first, "received", "ping", 5, False),
        (first, "sent", "pong", 5, False),
        (first, "received", "close", 5, False),
        (first, "sent", "close", 5, False),
        (second, "received", "ping", 5, False),
        (second, "sent", "pong", 5, False),
        (second, "received", "text", 2000, True),
        (second, "sent", "close", frames[-1][3], False),
    ]


REFUSED = {
    "too large": (frame(BINARY, length=2000), "binary", 2000),
    "too large together": (frame(BINARY, b"x" * 1000, fin=False) + frame(CONTINUATION, length=25), "continuation", 25),
    "a ping in pieces": (frame(PING, b"x", fin=False), "ping", 1),
    "an opcode that is none": (frame(0x3, b"xy"), "reserved", 2),
    "not UTF-8": (frame(TEXT, b"x", fin=False) + frame(CONTINUATION, b"\xffyz"), "continuation", 3),
    "half a close code": (frame(CLOSE, b"\x03"), "close", 1),
}


@pytest.mark.parametrize(("sent", "opcode", "size"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_frame_is_recorded_as_what_it_was(sent: bytes, opcode: str, size: int) -> None:
    """Frames before it and behind it, in the same piece of data, are not taken for it."""
    async with served(max_body_bytes=1024) as (probe, port):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(upgrade(sec_websocket_protocol="mcp"))
        await stream.receive_some()
        await stream.send_all(frame(PONG) + sent + frame(TEXT, b"not looked at"))
        while await stream.receive_some():
            pass
        await stream.aclose()
        await event(probe, "connection.closed")
    (refused,) = [entry for entry in probe.events("websocket.frame") if entry["refused"] is not None]
    assert (refused["direction"], refused["opcode"], refused["size"]) == ("received", opcode, size)
