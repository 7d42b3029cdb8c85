"""A client on one connection that carries everything, in memory: newline-delimited JSON over a pair of streams.

Every message it gets is checked against the schema of the revision of the request that it answers or belongs to.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio
from trio.testing import memory_stream_pair

from probe.engine.engine import Engine
from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import ConnectionEnd, Peer
from probe.server.endpoints.lines import LineWire

from .legacy import ALL_CAPABILITIES, RpcError
from .modern import PREFIX, VERSION, WITH_TASKS
from .schemas import schema

Stapled = trio.StapledStream[Any, Any]
STREAMS = {**ALL_CAPABILITIES, "experimental": {"streams": {}}}
MARK = "mcp-probe/stream"


class Pipe:
    """One connection. `heard` has every message in order of arrival; `ending` is how the server says it ended."""

    def __init__(self, stream: Stapled, ids: Any = None) -> None:
        self._stream = stream
        self._rest = bytearray()
        self.ids = ids or count(1)
        self.revision = VERSION
        self.heard: list[dict[str, Any]] = []
        self.ending: ConnectionEnd | None = None
        self._methods: dict[Any, tuple[str, str, bool]] = {}

    async def say(self, value: Any) -> None:
        """Send any JSON value as one line."""
        await self.send_bytes(json.dumps(value).encode() + b"\n")

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self._stream.send_all(data)

    def legacy(self, method: str, params: Mapping[str, Any] | None = None, id: Any = None) -> dict[str, Any]:
        """A request of the legacy era."""
        id = next(self.ids) if id is None else id
        task = "task" in (params or {}) and method == "tools/call"
        self._methods[id] = (self.revision, method, task)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        return message if params is None else {**message, "params": dict(params)}

    def modern(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        id: Any = None,
        capabilities: Mapping[str, Any] = WITH_TASKS,
    ) -> dict[str, Any]:
        """A request of the modern era."""
        id = next(self.ids) if id is None else id
        self._methods[id] = (VERSION, method, False)
        said = {
            PREFIX + "protocolVersion": VERSION,
            PREFIX + "clientInfo": {"name": "test-client", "version": "1.2.3"},
            PREFIX + "clientCapabilities": dict(capabilities),
            **(meta or {}),
        }
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": said}}

    async def initialize(
        self, revision: str = "2025-11-25", capabilities: Mapping[str, Any] = ALL_CAPABILITIES
    ) -> dict[str, Any]:
        """The legacy handshake; returns the result."""
        self.revision = revision
        params = {
            "protocolVersion": revision,
            "capabilities": dict(capabilities),
            "clientInfo": {"name": "test-client", "version": "1.2.3"},
        }
        result = await self.call(self.legacy("initialize", params))
        await self.notify("notifications/initialized")
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        await self.say(message if params is None else {**message, "params": dict(params)})

    async def cancel(self, id: Any, reason: str | None = None) -> None:
        """Send `notifications/cancelled`."""
        told = {} if reason is None else {"reason": reason}
        await self.notify("notifications/cancelled", {"requestId": id, **told})

    async def answer(self, id: Any, result: Mapping[str, Any]) -> None:
        """Answer a request of the server."""
        await self.say({"jsonrpc": "2.0", "id": id, "result": dict(result)})

    async def hear(self) -> dict[str, Any]:
        """The next message. Raises `EOFError` when the server has closed its direction."""
        while (end := self._rest.find(b"\n")) < 0:
            piece = await self._stream.receive_some()
            if not piece:
                raise EOFError(bytes(self._rest))
            self._rest += piece
        message: dict[str, Any] = json.loads(self._rest[:end])
        del self._rest[: end + 1]
        self.heard.append(message)
        return self.check(message)

    async def hear_until(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Messages up to the first that is wanted, with that."""
        messages = [await self.hear()]
        while not wanted(messages[-1]):
            messages.append(await self.hear())
        return messages

    async def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its result; what comes before is in `heard`. Raises `RpcError`."""
        await self.say(request)
        return await self.result_of(request["id"])

    async def result_of(self, id: Any) -> dict[str, Any]:
        """Wait for the result of a request. Raises `RpcError`."""
        *_, last = await self.hear_until(lambda message: "method" not in message and message.get("id") == id)
        if "error" in last:
            raise RpcError(last["error"])
        return dict(last["result"])

    def check(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message from the server, checked against the schema of its revision."""
        unknown = (self.revision, None, False)
        revision, method, task = unknown if "method" in message else self._methods.get(message.get("id"), unknown)
        schema(revision).check_message(message, method=method, task=task)
        return message

    async def finish(self) -> None:
        """Say that nothing more will come, and go on reading."""
        await self._stream.send_eof()

    async def drop(self) -> None:
        """Go, in both directions, without a word; what has not been read is lost."""
        await self._stream.aclose()


@asynccontextmanager
async def pipe(
    engine: Engine,
    *,
    transport: str = "stdio",
    origin: str = "http://127.0.0.1:8000",
    selection: str = "all",
    ids: Any = None,
    pair: Callable[[], tuple[Stapled, Stapled]] = memory_stream_pair,
) -> AsyncIterator[Pipe]:
    """A connection to the engine; the block's end drops it and waits until the server is done with it.

    With `trio.testing.lockstep_stream_pair` as `pair`, the server has sent what this client has begun to read.
    """
    ours, theirs = pair()
    client = Pipe(ours, ids)

    async def serve() -> None:
        wire = LineWire(theirs, theirs, max_bytes=engine.settings.limits.max_body_bytes)
        client.ending = await serve_pipe(engine, wire, Peer(transport, "127.0.0.1", origin, selection))
        await theirs.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        try:
            yield client
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await client.drop()
