"""WebSocket is a custom transport: what the specification asks of one, with a real server and a client of others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio
import trio_websocket

from ..support.evidence import check_modern
from ..support.modern import PREFIX, VERSION
from ..support.process import served
from ..support.schemas import schema
from ..support.websocket import connected

Json = dict[str, Any]
LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
CALL = {"name": "progress", "arguments": {"steps": 3, "step_ms": 1}}
MODERN = {
    PREFIX + "protocolVersion": VERSION,
    PREFIX + "clientInfo": {"name": "test-client", "version": "1"},
    PREFIX + "clientCapabilities": {},
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server."""
    with served("--tools", "all") as url:
        found = httpx2.URL(url).port
        assert found is not None
        yield found


class Frames:
    """A client on a WebSocket, where a message is a text frame."""

    def __init__(self, connection: trio_websocket.WebSocketConnection) -> None:
        self._connection = connection

    async def say(self, method: str, params: Json | None = None, **id: Any) -> Json:
        """Send a request, or without an id a notification."""
        message = {"jsonrpc": "2.0", **id, "method": method, "params": params or {}}
        await self._connection.send_message(json.dumps(message))
        return message

    async def hear(self) -> Json:
        """The next message."""
        frame = await self._connection.get_message()
        assert isinstance(frame, str)
        message: Json = json.loads(frame)
        return message

    async def ask(self, method: str, params: Json | None = None, *, id: Any) -> list[Json]:
        """Send a request; everything up to its response."""
        await self.say(method, params, id=id)
        heard = [await self.hear()]
        while heard[-1].get("id") != id:
            heard.append(await self.hear())
        return heard


@asynccontextmanager
async def frames(port: int) -> AsyncIterator[Frames]:
    """A connection."""
    with trio.fail_after(30):
        async with connected(port, subprotocols=["mcp"]) as connection:
            yield Frames(connection)


@pytest.mark.proves("2025-11-25/transports/33")
@pytest.mark.parametrize("revision", LEGACY)
async def test_messages_and_lifecycle_of_a_session_are_kept(revision: str, port: int) -> None:
    """Negotiation, operation, and the end of the session with the connection."""
    who = {"name": "test-client", "version": "1"}
    asked = {"protocolVersion": revision, "capabilities": {}, "clientInfo": who}
    async with frames(port) as client:
        (early,) = await client.ask("tools/list", id="early")
        assert early["error"]["code"] == -32602, "initialize comes first"
        (answer,) = await client.ask("initialize", asked, id=1)
        assert answer["result"]["protocolVersion"] == revision
        await client.say("notifications/initialized")
        call = {**CALL, "_meta": {"progressToken": "t"}}
        heard = [answer, *await client.ask("tools/call", call, id="1"), *await client.ask("ping", id=2)]
        for message in heard:
            schema(revision).check_message(message)
        assert [message.get("id", message.get("method")) for message in heard] == [
            1, *["notifications/progress"] * 3, "1", 2,
        ]  # fmt: skip
        (again,) = await client.ask("initialize", asked, id=3)
        assert again["error"]["code"] == -32600
    async with frames(port) as client:
        (unknown,) = await client.ask("tools/list", id=4)
        assert unknown["error"]["code"] == -32602, "a session does not outlive its connection"


@pytest.mark.proves("2026-07-28/transports/3", "2026-07-28/transports/2", "2026-07-28/patterns/1")
async def test_messages_patterns_and_metadata_of_the_modern_era_are_kept(port: int) -> None:
    """A call with progress, a question in a result, and a subscription; each request says its version itself."""
    async with frames(port) as client:
        call = {**CALL, "_meta": {**MODERN, "progressToken": "t"}}
        heard = await client.ask("tools/call", call, id=1)
        for message in heard:
            check_modern(message, {"id": 1, "method": "tools/call", "params": call})
        assert [message["params"]["progress"] for message in heard[:-1]] == [1, 2, 3]
        able = {**MODERN, PREFIX + "clientCapabilities": {"elicitation": {"form": {}}}}
        (asked,) = await client.ask("tools/call", {"name": "elicit_form", "_meta": able}, id=2)
        assert asked["result"]["resultType"] == "input_required"
        (refused,) = await client.ask("tools/call", {"name": "elicit_form", "_meta": MODERN}, id=3)
        assert refused["error"]["code"] == -32021, "what the last request declared is nothing to this one"
        listen = {"notifications": {"toolsListChanged": True}, "_meta": MODERN}
        await client.say("subscriptions/listen", listen, id=4)
        told = await client.hear()
        check_modern(told, {"id": 4, "method": "subscriptions/listen", "params": listen})
        assert told["method"] == "notifications/subscriptions/acknowledged"
