"""A connection in memory whose reader is as slow as a test wants, and one client of either era on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Peer
from probe.server.endpoints.lines import LineWire

from ..support.evidence import check_modern
from ..support.pipes import Pipe
from ..support.probe import Probe

Json = dict[str, Any]


class Slow(Pipe):
    """A client whose server writes only while it reads. `gone` is set when the server has done with the connection."""

    def __init__(self, stream: trio.StapledStream) -> None:
        super().__init__(stream)
        self.gone = trio.Event()
        self._ours = stream
        self._asked: dict[Any, dict[str, Any]] = {}

    def modern(self, *args: Any, **options: Any) -> dict[str, Any]:
        """A request of the modern era."""
        request = super().modern(*args, **options)
        self._asked[request["id"]] = request
        return request

    def check(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message, checked by its schema; a response also by the request that it answers."""
        asked = None if "method" in message else self._asked.get(message.get("id"))
        if asked is not None:
            check_modern(message, asked)
            return message
        return super().check(message)

    async def end_input(self) -> None:
        """Say that nothing more will come; what the server says can be read."""
        await self._ours.send_stream.aclose()

    async def stop_reading(self) -> None:
        """Close its end of what the server writes, and go on writing."""
        await self._ours.receive_stream.aclose()

    async def rest(self) -> list[dict[str, Any]]:
        """Everything until the server closes."""
        found = []
        try:
            while True:
                found.append(await self.hear())
        except (EOFError, trio.ClosedResourceError, trio.BrokenResourceError):
            return found


@asynccontextmanager
async def slow_pipe(
    probe: Probe, *, transport: str = "stdio", selection: str = "all", address: str = "127.0.0.1"
) -> AsyncIterator[Slow]:
    """A connection to the engine. What the client says is read at once; what the server says waits to be read."""
    to_client, from_server = lockstep_stream_pair()
    to_server, from_client = memory_stream_pair()
    client = Slow(trio.StapledStream(to_server, to_client))
    server = trio.StapledStream(from_server, from_client)

    async def serve() -> None:
        wire = LineWire(server, server, max_bytes=probe.engine.settings.limits.max_body_bytes)
        client.ending = await serve_pipe(probe.engine, wire, Peer(transport, address, "http://127.0.0.1", selection))
        client.gone.set()
        await server.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        try:
            yield client
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await client.drop()


class Talk:
    """A connection with a request of its era. `heard` of `client` has everything in order."""

    def __init__(self, client: Slow, era: str) -> None:
        self.client = client
        self.era = era

    def request(self, method: str, params: Json | None = None, *, id: Any = None, token: Any = None) -> Json:
        """A request."""
        if self.era == "modern":
            meta = {} if token is None else {"progressToken": token}
            return self.client.modern(method, params, meta=meta, id=id)
        said = {**(params or {}), **({} if token is None else {"_meta": {"progressToken": token}})}
        return self.client.legacy(method, said or None, id=id)

    def call(self, name: str, arguments: Json | None = None, *, id: Any = "it", token: Any = None) -> Json:
        return self.request("tools/call", {"name": name, "arguments": arguments or {}}, id=id, token=token)

    def steps(self, count: int = 10, ms: int = 1000, *, id: Any = "it", token: Any = "token") -> Json:
        """A call that reports `count` steps, and takes so long for each."""
        return self.call("progress", {"steps": count, "step_ms": ms}, id=id, token=token)

    def trifle(self, id: Any = "trifle") -> Json:
        return self.request("tools/call", {"name": "chatty"}, id=id)

    async def hear_for(self, seconds: float) -> list[Json]:
        """What is heard within so many seconds."""
        heard = []
        with trio.move_on_after(seconds):
            while True:
                heard.append(await self.client.hear())
        return heard

    async def answered(self, *requests: Json) -> dict[Any, Json]:
        """Send requests, and hear until each has its response; by id."""
        for request in requests:
            await self.client.say(request)
        found: dict[Any, Json] = {}
        while len(found) < len(requests):
            message = await self.client.hear()
            if "method" not in message:
                assert message["id"] not in found, "answered twice"
                found[message["id"]] = message
        return found


@asynccontextmanager
async def talking(probe: Probe, era: str, *, transport: str = "stdio", **options: Any) -> AsyncIterator[Talk]:
    """A connection on which `initialize` is over, if the era has it."""
    async with slow_pipe(probe, transport=transport, **options) as client:
        if era == "legacy":
            await client.initialize()
        yield Talk(client, era)


def steps_of(messages: list[Json]) -> list[Any]:
    return [message["params"]["progress"] if "method" in message else message["id"] for message in messages]


async def settle() -> None:
    await wait_all_tasks_blocked()
