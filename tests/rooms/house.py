"""A server with rooms, in memory: the engine of the process, its rooms, and their application."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Any

import trio

from probe.cli.parts import live_judge
from probe.engine.engine import Engine, Randomness
from probe.engine.services import ALONE, SharedLimits
from probe.judge.live import JudgeTurns
from probe.rooms.endpoint import RoomsEndpoint
from probe.rooms.rooms import Rooms
from probe.settings import Settings, build
from probe.tools.catalogue import TOOLSETS
from probe.web.paths import Paths

from ..support.hosts import scope
from ..support.http import http_scope
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.probe import EPOCH

LOCAL = {"host": "127.0.0.1:8000"}
REMOTE = ("198.51.100.7", 4711)
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Reply:
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Below:
    """The application of a server as the clients of one room reach it: `/mcp` is `/r/ROOM/mcp`."""

    def __init__(self, app: Any, id: str) -> None:
        self._app = app
        self._prefix = f"/r/{id}"

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """Serve one request."""
        path = self._prefix + scope["path"]
        result: Awaitable[None] = self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
        return result


@dataclass
class MachineClock:
    """The clock of the machine: it is set `ahead_s` seconds ahead of that of the engine."""

    ahead_s: float = 0.0


@dataclass
class House:
    """The server under test. `engine` is that of the process; each engine has ids that no other one has."""

    engine: Engine
    rooms: Rooms
    app: RoomsEndpoint
    clock: MachineClock

    async def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] = LOCAL,
        body: bytes = b"",
        client: tuple[str, int] = ("127.0.0.1", 50000),
    ) -> Reply:
        """One request with its whole response."""
        return await ask(self.app, method, target, headers, body, client)

    async def make(self) -> dict[str, Any]:
        """The addresses of a room, which is not open yet."""
        reply = await self.ask("POST", "/api/rooms")
        assert reply.status == 201, reply
        return dict(reply.json)

    async def open(self) -> Room:
        """A room."""
        made = await self.make()
        reply = await self.ask("GET", f"/r/{made['id']}/api/room")
        assert reply.status == 200, reply
        return Room(self, made["id"], made["read_only"]["api"].partition("/r/")[2].removesuffix("/api"))


@dataclass
class Room:
    """A room as its owner has it: its `id`, and that of its read-only address."""

    house: House
    id: str
    reading: str

    @property
    def app(self) -> Any:
        """The application of its clients."""
        return Below(self.house.app, self.id)

    @property
    def engine(self) -> Engine:
        """Its engine."""
        return self.house.rooms._by_id[self.id].room.engine

    async def legacy(self) -> Legacy:
        """A session of a legacy client."""
        client = Legacy(self.app, "/mcp?tools=all")
        await client.initialize()
        return client

    def modern(self) -> Modern:
        """A modern client."""
        return Modern(self.app, "/mcp?tools=all")

    async def ask(self, method: str, path: str, headers: Mapping[str, str] = LOCAL, body: bytes = b"") -> Reply:
        """A request for a path of the room."""
        return await self.house.ask(method, f"/r/{self.id}{path}", headers, body)

    async def show(self, path: str, method: str = "GET", headers: Mapping[str, str] = LOCAL) -> Reply:
        """A request for a path of its read-only address."""
        return await self.house.ask(method, f"/r/{self.reading}{path}", headers)


class Hosted:
    """The application as a tool host with the secret of a room reaches it."""

    def __init__(self, room: Room, secret: str) -> None:
        self._app = room.app
        self._secret = secret

    async def __call__(self, given: Any, receive: Any, send: Any) -> None:
        """Serve the connection."""
        headers = [(k, f"Bearer {self._secret}".encode() if k == b"authorization" else v) for k, v in given["headers"]]
        await self._app({**given, "headers": headers}, receive, send)


class Socket:
    """A session over a WebSocket."""

    def __init__(self) -> None:
        self.to_server, self.for_server = trio.open_memory_channel[dict[str, Any]](100)
        self.from_server, self.for_client = trio.open_memory_channel[dict[str, Any]](100)

    async def say(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        await self.to_server.send({"type": "websocket.receive", "text": json.dumps(message), "bytes": None})

    async def ask(self, method: str, params: Mapping[str, Any], id: int = 1) -> dict[str, Any]:
        """The response to a request."""
        await self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        async for event in self.for_client:
            text = event.get("text") or (event.get("bytes") or b"{}").decode()
            message: dict[str, Any] = json.loads(text)
            if message.get("id") == id and "method" not in message:
                return message
        raise EOFError


@asynccontextmanager
async def socket(
    room: Room, client: tuple[str, int] = ("127.0.0.1", 50000), capabilities: Mapping[str, Any] | None = NOTHING
) -> AsyncIterator[Socket]:
    """A WebSocket with a legacy session; without one for `capabilities` None."""
    talk = Socket()
    await talk.to_server.send({"type": "websocket.connect"})
    asked = {**scope(None, ["mcp"]), "path": "/ws", "query_string": b"tools=all", "client": client}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.app, asked, talk.for_server.receive, talk.from_server.send)
        assert (await talk.for_client.receive())["type"] == "websocket.accept"
        if capabilities is not None:
            named = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "ws", "version": "1"}}
            assert "result" in await talk.ask("initialize", {**named, "capabilities": dict(capabilities)}, 0)
            await talk.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield talk
        await talk.to_server.send({"type": "websocket.disconnect", "code": 1000})


async def ask(
    app: Any,
    method: str,
    target: str,
    headers: Mapping[str, str] = LOCAL,
    body: bytes = b"",
    client: tuple[str, int] = ("127.0.0.1", 50000),
) -> Reply:
    """One request with its whole response."""
    asked, head, parts = iter([{"type": "http.request", "body": body, "more_body": False}]), dict[str, Any](), []

    async def receive() -> Any:
        event = next(asked, None)
        if event is None:
            await trio.sleep_forever()
        return event

    async def send(event: Any) -> None:
        if event["type"] == "http.response.start":
            head.update(event)
        else:
            parts.append(bytes(event.get("body", b"")))

    with trio.fail_after(100):
        # As from the listener, for a body that has come with its head.
        extensions = {"probe.whole_body": {}}
        await app({**http_scope(method, target, headers), "client": client, "extensions": extensions}, receive, send)
    named = {key.decode("latin-1"): value.decode("latin-1") for key, value in head["headers"]}
    return Reply(head["status"], named, b"".join(parts))


@asynccontextmanager
async def house(**values: Any) -> AsyncIterator[House]:
    """A server that has rooms while the block lasts; only rooms, unless `rooms` is "on"."""
    numbers, settings = count(1), build({"judge": False, "rooms": "only", **values})

    def random_bytes(size: int) -> bytes:
        return sha256(next(numbers).to_bytes(8)).digest()[:size]

    turns = JudgeTurns()

    def made(settings: Settings, shared: SharedLimits = ALONE) -> Engine:
        return Engine(
            settings,
            TOOLSETS,
            epoch=EPOCH + trio.current_time() - began,
            randomness=Randomness(lambda: f"id-{next(numbers):04}-0123456789abcdef", random_bytes),
            new_judge=partial(live_judge, turns=turns) if settings.judge else None,
            shared=shared,
        )

    began = trio.current_time()
    engine = made(settings)
    clock = MachineClock()
    only = settings.rooms == "only"
    paths = Paths(engine, pages_only=only)
    rooms = Rooms(engine, made, random_bytes, lambda: engine.clock.wall() + clock.ahead_s, paths.pages)
    app = RoomsEndpoint(rooms, engine, paths, only=only)
    with trio.fail_after(100_000):
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.serve)
            await nursery.start(rooms.serve)
            yield House(engine, rooms, app, clock)
            nursery.cancel_scope.cancel()
