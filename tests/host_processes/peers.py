"""Who takes part: clients that speak over sockets, hosts in processes, a host by hand, and what the server tells."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket

from probe.wire.toolhost import SUBPROTOCOL

from ..support.evidence import check_emitted, events_of, last_event
from ..support.hosts import SECRET, Host
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.process import PATIENCE_S, Program, followed
from ..support.until import until

Json = dict[str, Any]
PROGRAMS = Path(__file__).parent / "programs"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "tool-hosts.schema.json").read_text())
ENVIRONMENT = {"MCP_PROBE_TOOLHOST_SECRET": SECRET}
WITH_HOSTS = ("--toolhost-secret", SECRET)


class Remote:
    """An application that is somewhere else: it passes requests on over sockets, so that every client can use it."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self.versions: set[str] = set()
        self._origin = url.removesuffix("/mcp")
        self._http = http

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request. A connection that breaks is an answer that ends, or none at all."""
        body = (await receive())["body"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hang_up, receive, nursery.cancel_scope)
            with suppress(httpx2.TransportError):
                await self._pass_on(scope, body, send)
            nursery.cancel_scope.cancel()

    @staticmethod
    async def _hang_up(receive: Any, scope: trio.CancelScope) -> None:
        assert (await receive())["type"] == "http.disconnect"
        scope.cancel()

    async def _pass_on(self, scope: Any, body: bytes, send: Any) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
        target = f"{self._origin}{scope['path']}?{scope['query_string'].decode()}"
        async with self._http.stream(scope["method"], target, headers=headers, content=body) as response:
            self.versions.add(response.http_version)
            await send({"type": "http.response.start", "status": response.status_code, "headers": response.headers.raw})
            async for piece in response.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


@dataclass
class Place:
    """A server, as its clients and whoever watches it see it. `begun` is where the test's events begin."""

    url: str
    app: Remote
    begun: int

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/mcp").rpartition(":")[2])

    @property
    def for_hosts(self) -> str:
        return f"ws://127.0.0.1:{self.port}/toolhost"

    def modern(self) -> Modern:
        return Modern(self.app, "/mcp?tools=all")

    async def legacy(self) -> Legacy:
        """A session with all tools."""
        client = Legacy(self.app, "/mcp?tools=all")
        await client.initialize()
        return client

    def events(self, kind: str, **members: Any) -> list[Json]:
        """The events of a kind since the test began that have these members."""
        return [
            event
            for event in events_of(self.url, self.begun)
            if event["kind"] == kind and all(event[name] == value for name, value in members.items())
        ]

    async def event(self, kind: str, **members: Any) -> Json:
        return dict((await until(lambda: self.events(kind, **members)))[0])


@asynccontextmanager
async def visiting(url: str, **http: Any) -> AsyncIterator[Place]:
    """The clients of a server that runs. Raises `trio.TooSlowError` when the block lasts beyond any reason."""
    with trio.fail_after(3 * PATIENCE_S):
        async with httpx2.AsyncClient(timeout=None, **http) as client:
            yield Place(url, Remote(url, client), 0)


def arrived(place: Place) -> Place:
    return Place(place.url, place.app, last_event(place.url))


async def listed(client: Legacy | Modern, host: str) -> list[str]:
    """The tools of a host that a client is offered, on whichever page."""
    names: list[str] = []
    cursor: Json = {}
    while True:
        page = await client.call("tools/list", cursor)
        names += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            return sorted(name for name in names if name.startswith(f"{host}__"))
        cursor = {"cursor": page["nextCursor"]}


class HostProcess:
    """A process that runs `programs/host.py`. A key names one piece of work."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name

    def tool(self, name: str = "work") -> str:
        return f"{self.name}__{name}"

    async def registered(self) -> None:
        await self.program.said("registered as")

    async def says(self, what: str, key: str) -> float:
        """Wait until it says this of its work; when that was, by `time.monotonic`."""
        return float(json.loads(await self.program.said(f'"what": "{what}", "key": "{key}"'))["at"])

    def has_said(self, what: str, key: str) -> bool:
        return any(f'"what": "{what}", "key": "{key}"' in line for line in self.program.lines)

    async def release(self, *keys: str) -> None:
        for key in keys:
            await self.program.tell(key)


@asynccontextmanager
async def host_process(name: str, url: str, **environment: str) -> AsyncIterator[HostProcess]:
    """A host of its own process; it may not have registered yet."""
    command = [sys.executable, str(PROGRAMS / "host.py"), name, url]
    async with followed(command, {**ENVIRONMENT, **environment}) as program:
        yield HostProcess(program, name)


@asynccontextmanager
async def by_hand(port: int, instance: str) -> AsyncIterator[Host]:
    """A host whose every frame is the test's, over a socket. What it hears is checked as in memory."""
    host = Host(instance)
    authorization = [(b"Authorization", f"Bearer {SECRET}".encode())]
    connect = open_websocket(
        "127.0.0.1", port, "/toolhost", use_ssl=False, subprotocols=[SUBPROTOCOL], extra_headers=authorization
    )
    async with connect as socket, trio.open_nursery() as nursery:
        nursery.start_soon(_to_server, host, socket)
        nursery.start_soon(_to_host, host, socket)
        yield host
        nursery.cancel_scope.cancel()


async def _to_server(host: Host, socket: WebSocketConnection) -> None:
    async for event in host.for_server:
        with suppress(ConnectionClosed, trio.BrokenResourceError):
            if event["type"] == "bytes":
                await socket._stream.send_all(event["bytes"])
            else:
                await socket.send_message(event["text"])


async def send_bytes(host: Host, data: bytes) -> None:
    """Have a host by hand send these bytes, frames or not, as they are."""
    await host.to_server.send({"type": "bytes", "bytes": data})


async def _to_host(host: Host, socket: WebSocketConnection) -> None:
    try:
        while True:
            await host.reads.wait()
            await host.from_server.send({"type": "websocket.send", "text": await socket.get_message()})
    except ConnectionClosed as closed:
        code, reason = (1006, "") if closed.reason is None else (closed.reason.code, closed.reason.reason or "")
        await host.from_server.send({"type": "websocket.close", "code": code, "reason": reason})


def judge(url: str) -> None:
    """Everything that the server sent fits its schemas, and so does what hosts sent that broke no rules."""
    events = events_of(url)
    assert check_emitted(events), "clients talked to this server"
    rude = {event["connection"] for event in events if event["kind"] == "host.misuse"}
    spoken = [event for event in events if event["kind"] == "host.message"]
    for event in spoken:
        if event["direction"] == "sent":
            _fits("from server", event["message"])
        elif event["connection"] not in rude:
            message = event["message"]
            if message.get("method") == "host.register":
                # what a host is known by does not stand in the log
                message["params"]["instance"] = "x" * 16
            _fits("from host", message)


def _fits(direction: str, message: Any) -> None:
    validator = jsonschema.Draft202012Validator({**SCHEMA["$defs"][direction], "$defs": SCHEMA["$defs"]})
    validator.validate(message)
