"""A client that has ended its own direction and waits for its answers gets them, except where closing cancels."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from ..support.probe import Probe, running
from .peers import PATIENCE_S, Dialer
from .servers import Start

HEADERS = "host: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"


def post(message: dict[str, Any], headers: str = HEADERS) -> bytes:
    body = json.dumps(message).encode()
    return f"POST /mcp?tools=all HTTP/1.1\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body


async def session(dial: Dialer, port: int) -> str:
    """A legacy session; the headers of its requests."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    wire = await dial.wire(port)
    await wire.send(post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
    head = (await wire.read_until(b"\r\n\r\n")).decode().lower()
    id = head.partition("mcp-session-id: ")[2].partition("\r\n")[0]
    headers = f"{HEADERS}mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n"
    await wire.send(post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers))
    await wire.read_until(b"202")
    return headers


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def answered(dial: Dialer, port: int, request: bytes) -> bytes:
    """What comes for a request behind which the client has ended its direction at once."""
    wire = await dial.wire(port)
    await wire.send(request)
    await wire.stream.send_eof()
    return await wire.read_to_end()


@pytest.mark.parametrize("path", ["/health", "/metrics", "/api/calls", "/dashboard"])
async def test_pages_are_answered(start: Start, dial: Dialer, path: str) -> None:
    async with running() as probe:
        received = await answered(
            dial, await start(probe.app), f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
        )
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 ")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
        assert int(length[0].split()[1]) == len(body)


@pytest.mark.parametrize("arguments", [{"delayMs": 0}, {"delayMs": 300}], ids=["at-once", "later"])
async def test_legacy_requests_are_answered(start: Start, dial: Dialer, arguments: dict[str, Any]) -> None:
    async with running(tools="all") as probe:
        port = await start(probe.app)
        headers = await session(dial, port)
        received = await answered(dial, port, post(call("simple_tool", arguments), headers))
        assert b'"result"' in received
        assert received.endswith(b"0\r\n\r\n")


async def test_a_legacy_stream_of_a_client_that_has_closed_is_let_go(start: Start, dial: Dialer) -> None:
    """Its call goes on. The comment that asks whether anybody reads is answered with a reset."""
    async with running(tools="all") as probe:
        port = await start(probe.app)
        headers = await session(dial, port)
        wire = await dial.wire(port)
        await wire.send(post(call("simple_tool", {"delayMs": 1500}), headers))
        await wire.read_until(b"text/event-stream")
        await wire.close()
        await until(lambda: closed(probe) == ["client"])
        assert probe.events("call.settled") == []
        await until(lambda: [event["outcome"] for event in probe.events("call.settled")] == ["completed"])


def closed(probe: Probe) -> list[str]:
    return [event["by"] for event in probe.events("http.closed") if event["stream"] is not None]


async def until(condition: Any) -> None:
    with trio.fail_after(PATIENCE_S):
        while not condition():
            await wait_all_tasks_blocked(0.01)
