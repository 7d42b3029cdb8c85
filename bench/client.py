"""The part of a legacy MCP client that the load needs: a session, and its requests as bytes with room for an id."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .http1 import Connection

REVISION = "2025-11-25"

FIRST_ID = 1_000_000
"""Ids have seven digits, so that a request made once has the right Content-Length for all of them."""

_ID = b"7654321"


class WrongAnswerError(Exception):
    """A server answered something else than the benchmark asked for: its speed would mean nothing."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A call to measure."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """An initialized session of one server. Requests of it may go over any connection."""

    port: int
    id: bytes

    def call(self, tool: Tool, id: int, *, token: bool = False) -> bytes:
        """A `tools/call`; with `token`, its id is its progress token too."""
        return self.calls(tool, token=token).replace(_ID, b"%d" % id)

    def calls(self, tool: Tool, *, token: bool = False) -> bytes:
        """A `tools/call` to be numbered by `numbered`."""
        params: dict[str, Any] = {"name": tool.name, "arguments": tool.arguments}
        if token:
            params["_meta"] = {"progressToken": int(_ID)}
        return self.post({"jsonrpc": "2.0", "id": int(_ID), "method": "tools/call", "params": params})

    def cancel(self, id: int) -> bytes:
        """The notification that cancels a request of this session."""
        params = {"requestId": id, "reason": "benchmark"}
        return self.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def post(self, message: dict[str, Any]) -> bytes:
        """The request that brings a message."""
        session = b"mcp-session-id: " + self.id + b"\r\n"
        return _post(self.port, message, session + b"mcp-protocol-version: " + REVISION.encode() + b"\r\n")


def numbered(request: bytes, id: int) -> bytes:
    """A request of `Session.calls` with an id of its own, from `FIRST_ID` on."""
    return request.replace(_ID, b"%d" % id)


async def open_session(connection: Connection, port: int) -> Session:
    """Initialize over a connection. Raises `WrongAnswerError`."""
    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    head, body = await connection.exchange(_post(port, request))
    id = head.get(b"mcp-session-id")
    if head.status != 200 or id is None:
        raise WrongAnswerError(f"initialize was answered {head.status} {body[:300]!r}")
    session = Session(port, id)
    await connection.exchange(session.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    return session


async def call_json(connection: Connection, session: Session, tool: Tool, id: int) -> Any:
    """Call a tool whose text is JSON. Raises `WrongAnswerError`."""
    _, body = await connection.exchange(session.call(tool, id))
    start, end = body.find(b'{"'), body.rfind(b"}")
    try:
        return json.loads(json.loads(body[start : end + 1])["result"]["content"][0]["text"])
    except (ValueError, LookupError) as error:
        raise WrongAnswerError(f"{tool.name} was answered {body[:300]!r}") from error


async def get_json(port: int, path: str) -> Any:
    """A JSON document of a server. Raises `WrongAnswerError`."""
    async with Connection(port) as connection:
        host = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"
        head, body = await connection.exchange(host.encode())
    if head.status != 200:
        raise WrongAnswerError(f"{path} was answered {head.status} {body[:300]!r}")
    return json.loads(body)


def _post(port: int, message: dict[str, Any], headers: bytes = b"") -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n"
    )
    return head.encode() + headers + b"\r\n" + body
