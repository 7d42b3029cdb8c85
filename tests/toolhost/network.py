"""A server of tool hosts that does what a test says, on streams in memory."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import trio
from trio.testing import MemoryReceiveStream, MemorySendStream, memory_stream_pair
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream

from probe.toolhost import Host

URL = "ws://probe.test:8000/toolhost?x=1"
SECRET = "0123456789abcdef"
SUBPROTOCOL = "mcp-probe.toolhost.v1"
# virtual seconds in most tests: more than any timeout of the host
PATIENCE_S = 120.0

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "tool-hosts.schema.json").read_text())


def check(direction: str, message: Any) -> None:
    """Assert that a message fits the published schema."""
    definition = SCHEMA["$defs"][direction.replace("%20", " ")]
    jsonschema.Draft202012Validator({**definition, "$defs": SCHEMA["$defs"]}).validate(message)


class Peer:
    """The server's end of one connection. What the host sends is checked by the published schemas."""

    def __init__(self, websocket: WebSocketConnection, stream: trio.abc.Stream) -> None:
        self.websocket = websocket
        self.stream = stream

    async def read(self) -> Any:
        """The next message of the host."""
        with trio.fail_after(PATIENCE_S):
            text = await self.websocket.get_message()
        assert isinstance(text, str)
        message = json.loads(text)
        check("from host", message)
        return message

    async def read_until_answer(self, id: str) -> list[Any]:
        """All messages up to the answer with this id, which is the last."""
        messages = [await self.read()]
        while messages[-1].get("id") != id:
            messages.append(await self.read())
        return messages

    async def send(self, message: Any) -> None:
        check("from server", message)
        await self.websocket.send_message(json.dumps(message))

    async def register(self, *, message_bytes: int = 100_000) -> Any:
        """Take the host's registration, whatever it is; returns its params."""
        request = await self.read()
        assert request["method"] == "host.register"
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": accepted(request["params"], message_bytes)})
        return request["params"]

    async def refuse(self, code: int, message: str = "no") -> None:
        """Refuse the request that comes next."""
        request = await self.read()
        await self.send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})

    async def dispatch(self, id: str, tool: str, **arguments: Any) -> None:
        params = {"tool": tool, "arguments": arguments, "idleMs": 30_000, "ceilingMs": 300_000}
        await self.send({"jsonrpc": "2.0", "id": id, "method": "tool.dispatch", "params": params})

    async def cancel(self, id: str, cause: str = "notification") -> None:
        params = {"dispatch": id, "cause": cause, "reason": None}
        await self.send({"jsonrpc": "2.0", "method": "tool.cancel", "params": params})

    async def ping(self) -> list[Any]:
        """Everything that the host says before it answers a ping: it has read all that was sent before."""
        await self.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        *before, answer = await self.read_until_answer("ping")
        assert answer["result"] == {}
        return before

    async def silent(self, seconds: float = 5.0) -> None:
        """Assert that the host says nothing for some time."""
        with trio.move_on_after(seconds):
            raise AssertionError(f"the host said {await self.websocket.get_message()!r}")

    async def closed(self) -> int:
        """Wait until the host has closed; returns its code. Messages before that are dropped."""
        try:
            with trio.fail_after(PATIENCE_S):
                while True:
                    await self.websocket.get_message()
        except ConnectionClosed as closed:
            assert closed.reason is not None
            return closed.reason.code

    async def die(self) -> None:
        """End without a word, as a process that was killed."""
        await trio.aclose_forcefully(self.stream)


def accepted(params: Any, message_bytes: int = 100_000, host: str = "demo") -> Any:
    """The result of a registration or an update."""
    limits = {"dispatches": 25, "messageBytes": message_bytes, "tools": 100}
    return {"host": host, "tools": [f"{host}__{tool['name']}" for tool in params["tools"]], "limits": limits}


class Network:
    """Where the host's connections come out. `refused` are the errors of the next attempts, in order."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.attempts: list[tuple[str, int, float]] = []
        self.refused: list[OSError] = []
        self.headers: dict[bytes, bytes] = {}
        self.path = ""
        self.streams: list[trio.StapledStream[MemorySendStream, MemoryReceiveStream]] = []
        self._nursery = nursery
        self._tried = trio.lowlevel.ParkingLot()
        self._arrived, self._arriving = trio.open_memory_channel[trio.abc.Stream](math.inf)

    async def open_tcp_stream(self, host: str, port: int) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        self.attempts.append((host, port, trio.current_time()))
        self._tried.unpark_all()
        if self.refused:
            raise self.refused.pop(0)
        ours, theirs = memory_stream_pair()
        self.streams.append(ours)
        self._arrived.send_nowait(theirs)
        return ours

    def stall(self) -> Callable[[], None]:
        """Let the newest connection take nothing, as if its peer read nothing, until what is returned is called."""
        stream, released = self.streams[-1].send_stream, trio.Event()
        passes = stream.send_all_hook
        assert passes is not None

        async def wait_and_pass() -> None:
            await released.wait()
            await passes()

        stream.send_all_hook = wait_and_pass
        return released.set

    async def attempted(self, times: int) -> None:
        """Wait until the host has tried so often to connect."""
        with trio.fail_after(PATIENCE_S):
            while len(self.attempts) < times:
                await self._tried.park()

    async def arrival(self) -> trio.abc.Stream:
        """The next connection, before any handshake."""
        with trio.fail_after(PATIENCE_S):
            return await self._arriving.receive()

    async def accept(self, subprotocol: str | None = SUBPROTOCOL) -> Peer:
        """The next connection, after its handshake."""
        stream = await self.arrival()
        request = await wrap_server_stream(self._nursery, stream)
        self.headers, self.path = dict(request.headers), request.path
        assert request.proposed_subprotocols == (SUBPROTOCOL,)
        return Peer(await request.accept(subprotocol=subprotocol), stream)

    async def registered(self) -> Peer:
        """The next connection, after its registration."""
        peer = await self.accept()
        await peer.register()
        return peer

    async def answer(self, status: int, body: bytes = b"") -> None:
        """Refuse the next connection's handshake."""
        stream = await self.arrival()
        request = await wrap_server_stream(self._nursery, stream)
        await request.reject(status, body=body)


@asynccontextmanager
async def serving(host: Host) -> AsyncIterator[None]:
    """The host serves; leaving ends it while its peers are still there."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.serve, URL, SECRET)
        yield
        nursery.cancel_scope.cancel()
