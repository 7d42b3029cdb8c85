"""A server with clients on every transport, as bytes: what they send, and what they got when all was over."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import h2.events

from ..sockets.peers import Http2, Wire
from ..support.websocket import TEXT, Frame, Reader, frame, upgrade

PREFIX = "io.modelcontextprotocol/"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
_JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

Json = dict[str, Any]


def modern(method: str, params: Json | None = None, id: Any = "it", *, tasks: bool = False) -> Json:
    """A request of the era without sessions; its id is its progress token."""
    meta = {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientInfo": {"name": "t", "version": "1"},
        PREFIX + "clientCapabilities": {"extensions": {PREFIX + "tasks": {}}} if tasks else {},
        "progressToken": id,
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": meta}}


def call(name: str, arguments: Json | None = None, id: Any = "it", **more: Any) -> Json:
    return modern("tools/call", {"name": name, "arguments": arguments or {}}, id, **more)


def steps(count: int, step_ms: int, id: Any = "it") -> Json:
    return call("progress", {"steps": count, "step_ms": step_ms}, id)


def headers(message: Json) -> dict[str, str]:
    """The headers of a modern request."""
    name = message["params"].get("name")
    mirrored = {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
    return {**_JSON, **mirrored, **({"mcp-name": name} if name else {})}


def post(message: Json, fields: dict[str, str] | None = None) -> bytes:
    """A POST of HTTP/1.1, with the headers of a modern request unless others are given."""
    body = json.dumps(message).encode()
    return head("POST", {**(headers(message) if fields is None else fields), "content-length": str(len(body))}) + body


def head(method: str, fields: dict[str, str], path: str = "/mcp?tools=all") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def post2(peer: Http2, message: Json) -> int:
    """A POST of a modern request over HTTP/2; its stream."""
    body = json.dumps(message).encode()
    fields = [*headers(message).items(), ("content-length", str(len(body)))]
    stream_id = await peer.request("/mcp?tools=all", end=False, headers=fields)
    await peer.data(stream_id, body, end=True)
    return stream_id


async def session(wire: Wire, **capabilities: Any) -> dict[str, str]:
    """Open a legacy session over a wire; the headers of its requests."""
    params = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}
    await wire.send(post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, _JSON))
    answer = (await wire.read_until(b'"serverInfo"')).decode()
    (id,) = [line.partition(": ")[2] for line in answer.split("\r\n") if line.lower().startswith("mcp-session-id")]
    fields = {**_JSON, "mcp-session-id": id, "mcp-protocol-version": LEGACY}
    await wire.send(post({"jsonrpc": "2.0", "method": "notifications/initialized"}, fields))
    await wire.read_until(b" 202 ")
    return fields


def legacy_steps(count: int, step_ms: int, id: Any = "it") -> Json:
    params = {"name": "progress", "arguments": {"steps": count, "step_ms": step_ms}, "_meta": {"progressToken": id}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def events(body: bytes) -> list[Json]:
    """The messages of an event stream, chunk framing and all."""
    lines = [line for line in body.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line[len(b"data: ") :]) for line in lines]


def is_complete(body: bytes) -> bool:
    """Whether a response of HTTP/1.1 in chunks has its last one."""
    return (b"\r\n" + body).endswith(b"\r\n0\r\n\r\n")


async def read2(peer: Http2) -> None:
    while await peer.receive():
        pass


def ended2(peer: Http2, stream_id: int) -> bool:
    """Whether a response over HTTP/2 came to its proper end, and the connection said goodbye."""
    goodbye = peer.find(h2.events.ConnectionTerminated)
    complete = peer.find(h2.events.StreamEnded, stream_id) is not None
    return complete and goodbye is not None and goodbye.error_code == 0


class Socket:
    """A WebSocket on a wire, whose frames are read when the test wants to."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._reader = Reader()

    async def open(self) -> int:
        """Do the handshake; its status."""
        await self.wire.send(upgrade("/ws?tools=all", sec_websocket_protocol="mcp"))
        while (answer := self._reader.head()) is None:
            self._reader.feed(await self.wire.read())
        return answer[0]

    async def say(self, message: Json) -> None:
        await self.wire.send(frame(TEXT, json.dumps(message).encode()))

    async def hear(self) -> Frame | None:
        """The next frame, None at the end."""
        while (found := self._reader.frame()) is None:
            data = await self.wire.read()
            if not data:
                return None
            self._reader.feed(data)
        return found

    async def hear_all(self) -> list[Frame]:
        """All frames until the end."""
        found = []
        while (one := await self.hear()) is not None:
            found.append(one)
        return found


def rows(path: Path) -> dict[Any, Json]:
    """The rows of an audit file by the ids of their requests."""
    with closing(sqlite3.connect(path)) as database:
        found = [json.loads(row) for (row,) in database.execute("SELECT row FROM rows")]
    return {row["request_id"]: row for row in found}
