"""trio-websocket, an independent client of RFC 6455, against a server process: both eras at `/ws`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trio_websocket

from ..support.evidence import call_records, check_emitted, events_of, last_event, misuses
from ..support.lines import MODERN
from ..support.process import served, served_to_clients
from ..support.until import until
from ..support.websocket import connected, refused

pytestmark = [
    # trio-websocket leaves the socket of a connection that was refused to the garbage collector
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"),
]

Json = dict[str, Any]
BOUND_S = 30.0
both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The `/mcp` URL of a process. At its end, what it sent fits the schemas, and clients did only what they were told.

    A worker may have run nothing but refused handshakes, so that its server has sent no message.
    """
    with served_to_clients("--event-log-events", "100000", "--max-body-bytes", "65536") as url:
        yield url
        events = events_of(url)
        check_emitted(events)
        kinds = {what.partition(":")[0] for what in misuses(events)}
        assert kinds <= {"not JSON", "request before notifications/initialized", "cancellation without effect"}


@pytest.fixture
def since(server: str) -> Callable[..., list[Json]]:
    """The events of some kinds since the test began."""
    begun = last_event(server)
    return lambda *kinds: [event for event in events_of(server, begun) if event["kind"] in kinds]


class Socket:
    """A connection of one era."""

    def __init__(self, connection: trio_websocket.WebSocketConnection, era: str) -> None:
        self.connection = connection
        self.era = era
        self._ids = count(1)

    async def say(self, value: Any) -> None:
        """Send any JSON value."""
        await self.connection.send_message(json.dumps(value))

    async def send(self, method: str, params: Json | None = None, *, token: Any = None, id: Any = None) -> Any:
        """Send a request; its id."""
        id = next(self._ids) if id is None else id
        meta = {**(MODERN if self.era == "modern" else {}), **({} if token is None else {"progressToken": token})}
        said = {**(params or {}), **({"_meta": meta} if meta else {})}
        await self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": said})
        return id

    async def call(self, name: str, arguments: Json | None = None, **more: Any) -> Any:
        """Send a tool call; its id."""
        return await self.send("tools/call", {"name": name, "arguments": arguments or {}}, **more)

    async def hear(self) -> Json:
        """The next message."""
        text = await self.connection.get_message()
        assert isinstance(text, str)
        return dict(json.loads(text))

    async def answer(self, id: Any) -> Json:
        """The response to a request."""
        while "method" in (message := await self.hear()) or message.get("id") != id:
            pass
        return message

    async def closed(self) -> tuple[int, str]:
        """Code and reason of the server's close."""
        try:
            while True:
                await self.connection.get_message()
        except trio_websocket.ConnectionClosed as ended:
            assert ended.reason is not None
            return ended.reason.code, str(ended.reason.reason)


def address(url: str) -> tuple[int, str]:
    """The port of a server, and the path of MCP over WebSocket beside this `/mcp` URL."""
    parts = urlsplit(url)
    assert parts.port is not None
    return parts.port, parts.path.removesuffix("/mcp") + "/ws"


@asynccontextmanager
async def speaking(url: str, era: str, query: str = "") -> AsyncIterator[Socket]:
    """A connection, with a session in the legacy era."""
    port, path = address(url)
    with trio.fail_after(BOUND_S):
        async with connected(port, path + query, subprotocols=["something", "mcp"]) as connection:
            assert connection.subprotocol == "mcp"
            socket = Socket(connection, era)
            if era == "legacy":
                info = {"name": "trio-websocket", "version": "0"}
                params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info}
                assert "result" in await socket.answer(await socket.send("initialize", params))
                await socket.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield socket


async def settled(url: str, tool: str, count: int = 1) -> list[Json]:
    """The newest records of a tool, once those calls are over."""

    def newest() -> list[Json]:
        return [record for record in call_records(url) if record["tool"] == tool][:count]

    await until(lambda: None not in [record["outcome"] for record in newest()])
    return newest()


@both_eras
async def test_calls_with_progress_are_answered(server: str, era: str, since: Callable[..., list[Json]]) -> None:
    async with speaking(server, era) as socket:
        id = await socket.call("progress", {"steps": 3, "step_ms": 5}, token="t")
        heard = [await socket.hear() for _ in range(4)]
        assert [message["params"]["progress"] for message in heard[:3]] == [1, 2, 3]
        assert (heard[3]["id"], heard[3]["result"]["structuredContent"]["done"]) == (id, True)
    closed = await until(lambda: since("connection.closed"))
    (opened,) = since("connection.opened")
    assert (opened["transport"], closed[0]["code"], closed[0]["by"]) == ("websocket", 1000, "client")
    assert since("client.misuse") == []


@both_eras
async def test_a_hundred_calls_of_which_every_second_is_cancelled(server: str, era: str) -> None:
    async with speaking(server, era) as socket:
        ids = [await socket.call("simple_tool", {"delayMs": 1500}) for _ in range(100)]
        for id in ids[::2]:
            params = {"requestId": id}
            await socket.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        heard = [(await socket.hear())["id"] for _ in ids[1::2]]
        assert sorted(heard) == ids[1::2]
        await socket.answer(await socket.call("chatty"))
        records = await settled(server, "simple_tool", 100)
        outcomes = {record["request_id"]: record["outcome"] for record in records}
        assert outcomes == {id: "cancelled" if id in ids[::2] else "completed" for id in ids}


@both_eras
@pytest.mark.parametrize("politely", [True, False])
async def test_who_leaves_has_cancelled_everything(server: str, era: str, politely: bool) -> None:
    async with speaking(server, era) as socket:
        for _ in range(3):
            await socket.call("progress", {"steps": 100, "step_ms": 1000})
        await socket.answer(await socket.call("chatty"))
        if politely:
            await socket.connection.aclose(1000)
        else:
            await trio.aclose_forcefully(socket.connection._stream)
        records = await settled(server, "progress", 3)
        assert {(record["outcome"], record["cancelled_by"]) for record in records} == {("disconnected", "disconnect")}


@both_eras
@pytest.mark.parametrize(("message", "code"), [(b"{}", 1003), ("x" * 65537, 1009)])
async def test_frames_that_are_refused_end_the_connection(server: str, era: str, message: Any, code: int) -> None:
    async with speaking(server, era) as socket:
        await socket.connection.send_message(message)
        assert (await socket.closed())[0] == code


@both_eras
async def test_a_message_of_just_the_size_is_read(server: str, era: str) -> None:
    async with speaking(server, era) as socket:
        await socket.connection.send_message(json.dumps("é" * 10).ljust(65536))
        assert (await socket.hear())["error"]["code"] == -32600


@both_eras
@pytest.mark.parametrize(("text", "code"), [("{", -32700), ("", -32700), ("[]", -32600), ("5", -32600)])
async def test_what_is_no_message_is_answered_and_the_connection_goes_on(
    server: str, era: str, text: str, code: int
) -> None:
    async with speaking(server, era) as socket:
        await socket.connection.send_message(text)
        refusal = await socket.hear()
        assert ("id" in refusal, refusal["error"]["code"]) == (False, code)
        assert "result" in await socket.answer(await socket.call("chatty"))


async def test_a_question_is_asked_and_answered(server: str) -> None:
    async with speaking(server, "legacy") as socket:
        id = await socket.call("elicit_simple_form")
        question = await socket.hear()
        await socket.say({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert (await socket.answer(id))["result"]["structuredContent"]["action"] == "decline"


@pytest.mark.parametrize(
    ("subprotocols", "query", "headers", "status", "said"),
    [
        (None, "", {}, 400, "mcp"),
        (["MCP"], "", {}, 400, "mcp"),
        (["mcp"], "?tools=no_such_tool", {}, 400, "conformance"),
        (["mcp"], "", {"Origin": "https://elsewhere.example"}, 403, "Origin"),
    ],
)
async def test_a_handshake_that_is_refused_says_why(
    server: str, subprotocols: Any, query: str, headers: dict[str, str], status: int, said: str
) -> None:
    port, path = address(server)
    with trio.fail_after(BOUND_S):
        rejected = await refused(port, path + query, subprotocols=subprotocols, headers=headers)
    assert rejected.status_code == status
    assert rejected.body is not None
    assert said in rejected.body.decode()


async def test_the_url_selects_the_tools(server: str) -> None:
    async with speaking(server, "modern", "?tools=chatty,streaming") as socket:
        listed = (await socket.answer(await socket.send("tools/list")))["result"]["tools"]
        assert {tool["name"] for tool in listed} == {"progress", "long_output", "chatty"}


@both_eras
async def test_a_server_that_stops_lets_calls_finish_and_says_goodbye(era: str) -> None:
    with ExitStack() as running:
        url = running.enter_context(served("--grace-s", "10"))
        async with speaking(url, era) as socket, trio.open_nursery() as nursery:
            id = await socket.call("progress", {"steps": 5, "step_ms": 200}, token="t")
            assert (await socket.hear())["method"] == "notifications/progress"
            # sends the signal, and waits for the end of the process
            nursery.start_soon(trio.to_thread.run_sync, running.close)
            assert (await socket.answer(id))["result"]["structuredContent"]["done"] is True
            assert (await socket.closed())[0] == 1001
