"""The application is plain ASGI: it runs on hypercorn and on anycorn as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from ..support.modern import Modern
from ..support.probe import running
from ..support.websocket import connected
from .peers import PATIENCE_S, Dialer, Http1
from .servers import Server, Start, fallback, stock


@pytest.fixture(params=[stock, fallback], ids=["hypercorn", "anycorn"])
def server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.param
    return server


def messages(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: {")]


async def post(peer: Http1, message: dict[str, Any]) -> bytes:
    """POST a message; the body of its answer."""
    headers = [(name, value) for name, value in Modern.headers(message).items() if name != "host"]
    answer = await peer.ask("/mcp?tools=all", headers=headers, body=json.dumps(message).encode())
    assert answer.status == 200
    return answer.body


async def test_calls_pages_and_websockets(start: Start, dial: Dialer) -> None:
    async with running(tools="all") as probe:
        port, client = await start(probe.app), probe.modern()
        steps = {"name": "progress", "arguments": {"steps": 3, "step_ms": 10}}
        request = client.request("tools/call", steps, id=1, meta={"progressToken": "t"})
        found = messages(await post(await dial.http1(port), request))
        assert [message.get("id") for message in found] == [None, None, None, 1]
        at_once = client.request("tools/call", {"name": "long_output", "arguments": {"blocks": 1, "chars": 9}}, id=2)
        assert b'"result"' in await post(await dial.http1(port), at_once)
        for path in ("/health", "/api/calls"):
            assert (await (await dial.http1(port)).ask(path)).status == 200
        async with connected(port, "/ws", subprotocols=["mcp"]) as socket:
            with trio.fail_after(PATIENCE_S):
                await socket.send_message(json.dumps(client.request("server/discover", {}, id=3)))
                assert json.loads(await socket.get_message())["id"] == 3
