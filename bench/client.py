"""The part of an MCP client that the load needs, in either era: requests as bytes, with room for an id."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from .http1 import Connection

Era = Literal["legacy", "modern"]

REVISIONS: dict[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}

FIRST_ID = 1_000_000
"""Ids have seven digits, so that a request made once has the right Content-Length for all of them."""

_ID = b"7654321"
_NAMES = {"name": "bench", "version": "1"}
_PREFIX = "io.modelcontextprotocol/"


class WrongAnswerError(Exception):
    """A server answered something else than the benchmark asked for: its speed would mean nothing."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A call to measure."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Client(ABC):
    """A client of one server. Its requests may go over any connection."""

    port: int
    _: KW_ONLY
    prefix: str = ""
    """What stands before the path, such as `/r/ROOM`."""

    def call(self, tool: Tool, id: int, *, token: bool = False) -> bytes:
        """A `tools/call`; with `token`, its id is its progress token too."""
        return _numbered(self._call(tool, token=token), id)

    def numberless(self, tool: Tool) -> tuple[bytes, bytes]:
        """What stands before and behind the id of a `tools/call`."""
        before, _, behind = self._call(tool, token=False).partition(_ID)
        return before, behind

    def _call(self, tool: Tool, *, token: bool) -> bytes:
        meta = {"progressToken": int(_ID)} if token else {}
        return self._request("tools/call", {"name": tool.name, "arguments": tool.arguments}, meta)

    @abstractmethod
    def _request(self, method: str, params: dict[str, Any], meta: dict[str, Any]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Session(Client):
    """A legacy client: an initialized session."""

    id: bytes

    def cancel(self, id: int) -> bytes:
        """The notification that cancels a request of this session."""
        params = {"requestId": id, "reason": "benchmark"}
        return self.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def post(self, message: dict[str, Any]) -> bytes:
        """The request that brings a message."""
        session = b"mcp-session-id: " + self.id + b"\r\n"
        return _post(self, message, session + b"mcp-protocol-version: " + REVISIONS["legacy"].encode() + b"\r\n")

    def _request(self, method: str, params: dict[str, Any], meta: dict[str, Any]) -> bytes:
        said = {**params, "_meta": meta} if meta else params
        return self.post({"jsonrpc": "2.0", "id": int(_ID), "method": method, "params": said})


@dataclass(frozen=True, slots=True)
class Sessionless(Client):
    """A modern client: every request says all that there is to know about it, in `_meta` and in headers."""

    def listen(self, uri: str, id: int) -> bytes:
        """A `subscriptions/listen` on one resource."""
        params = {"notifications": {"resourceSubscriptions": [uri]}}
        return _numbered(self._request("subscriptions/listen", params, {}), id)

    def _request(self, method: str, params: dict[str, Any], meta: dict[str, Any]) -> bytes:
        said = {
            _PREFIX + "protocolVersion": REVISIONS["modern"],
            _PREFIX + "clientInfo": _NAMES,
            _PREFIX + "clientCapabilities": {},
            **meta,
        }
        mirrored = {"mcp-protocol-version": REVISIONS["modern"], "mcp-method": method}
        if "name" in params:
            mirrored["mcp-name"] = params["name"]
        headers = "".join(f"{name}: {value}\r\n" for name, value in mirrored.items())
        message = {"jsonrpc": "2.0", "id": int(_ID), "method": method, "params": {**params, "_meta": said}}
        return _post(self, message, headers.encode())


def _numbered(request: bytes, id: int) -> bytes:
    """The request with an id of its own, from `FIRST_ID` on."""
    return request.replace(_ID, b"%d" % id)


async def open_client(connection: Connection, port: int, era: Era) -> Client:
    """A client that may call at once; a legacy one initializes over the connection. Raises `WrongAnswerError`."""
    return Sessionless(port) if era == "modern" else await _open_session(connection, port)


async def _open_session(connection: Connection, port: int) -> Session:
    params = {"protocolVersion": REVISIONS["legacy"], "capabilities": {}, "clientInfo": _NAMES}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    head, body = await connection.exchange(_post(Sessionless(port), request))
    id = head.get(b"mcp-session-id")
    if head.status != 200 or id is None:
        raise WrongAnswerError(f"initialize was answered {head.status} {body[:300]!r}")
    session = Session(port, id)
    await connection.exchange(session.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    return session


async def call_json(connection: Connection, client: Client, tool: Tool, id: int) -> Any:
    """Call a tool whose text is JSON. Raises `WrongAnswerError`."""
    _, body = await connection.exchange(client.call(tool, id))
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


def _post(client: Client, message: dict[str, Any], headers: bytes = b"") -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    head = (
        f"POST {client.prefix}/mcp HTTP/1.1\r\nhost: 127.0.0.1:{client.port}\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n"
    )
    return head.encode() + headers + b"\r\n" + body
