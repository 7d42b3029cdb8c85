"""What the floods say, as bytes: requests of both eras from any address, and WebSocket frames.

The server under load trusts this machine as a proxy, so `X-Forwarded-For` makes each client somebody else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from hpack import Encoder
from hyperframe.frame import DataFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

PREFIX = "io.modelcontextprotocol/"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
CLOCK_URI = "probe://clock"

_NAMES = {"name": "load", "version": "1"}
_CODE = re.compile(rb'"error":\{"code":(-?\d+)')
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SOMEBODY = b"100.100.100.100"
RESETS = 100
_PING = b"all sent"
PONG = b"\0\0\x08\x06\x01\0\0\0\0" + _PING
"""The answer to the ping of `resets` (RFC 9113 section 6.7)."""
_MASK = b"\0\0\0\0"
"""A key that changes nothing: a frame has to have one, and this load is no proxy that could be poisoned."""


class Client(NamedTuple):
    """A client: its address, and what stands before the paths of its server, such as `/r/ROOM`."""

    address: str
    prefix: str = ""

    @classmethod
    def numbered(cls, number: int, prefix: str = "") -> Self:
        """Another address for each number below 16 million."""
        return cls(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", prefix)


def post(message: Mapping[str, Any], client: Client, headers: Mapping[str, str]) -> bytes:
    """A POST of a message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return post_head(client, len(body), headers) + body


def post_head(client: Client, length: int, headers: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """The head of a POST with a body of so many bytes."""
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return request("POST", client, {**usual, "content-length": str(length), **headers})


def request(method: str, client: Client, headers: Mapping[str, str], path: str = "/mcp") -> bytes:
    """The head of an HTTP request."""
    lines = [f"{method} {client.prefix}{path} HTTP/1.1", "host: 127.0.0.1", f"x-forwarded-for: {client.address}"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()


def new_room(client: Client) -> bytes:
    """The request for a room."""
    return request("POST", client, {"content-length": "0"}, "/api/rooms")


def modern(method: str, params: Mapping[str, Any], client: Client, id: int, *, tasks: bool = False) -> bytes:
    """A request of the era without sessions."""
    mirrored = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        mirrored["mcp-name"] = params["name"]
    return post(modern_message(method, params, id, tasks=tasks), client, mirrored)


def modern_message(method: str, params: Mapping[str, Any], id: int, *, tasks: bool = False) -> dict[str, Any]:
    """The message of such a request; each asks for progress under its id."""
    meta = {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientInfo": _NAMES,
        PREFIX + "clientCapabilities": {"extensions": {PREFIX + "tasks": {}}} if tasks else {},
        "progressToken": id,
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


def initialize(client: Client, *, streams: bool = False) -> bytes:
    """The request that opens a session, whose answers may come on draft streams."""
    capabilities: dict[str, Any] = {"experimental": {"streams": {}}} if streams else {}
    params = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": _NAMES}
    return post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, client, {})


def in_session(session: str) -> dict[str, str]:
    """The headers of a request in a session."""
    return {"mcp-session-id": session, "mcp-protocol-version": LEGACY}


def tool(name: str, arguments: Mapping[str, Any], id: int, **more: Any) -> dict[str, Any]:
    """A legacy `tools/call`."""
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": id}, **more}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def upgrade(client: Client) -> bytes:
    """The request that opens a WebSocket."""
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-protocol": "mcp",
    }
    return request("GET", client, headers, "/ws")


def frame(message: Mapping[str, Any]) -> bytes:
    """A text frame of a client (RFC 6455 section 5.2)."""
    body = json.dumps(message, separators=(",", ":")).encode()
    size = bytes([0x80 | len(body)]) if len(body) < 126 else bytes([0x80 | 126]) + len(body).to_bytes(2)
    return b"\x81" + size + _MASK + body


def resets(number: int, prefix: str) -> bytes:
    """A whole HTTP/2 connection: calls whose streams are reset as soon as they are complete, then a ping.

    Its client is another one for each number. Of the same one most would be refused by its rate, which costs less.
    """
    parts = (100 + number // 100**place % 100 for place in (3, 2, 1, 0))
    return _resets(prefix).replace(_SOMEBODY, ".".join(map(str, parts)).encode())


@cache
def _resets(prefix: str) -> bytes:
    call = modern("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 60_000}}, Client(""), 1)
    head, _, body = call.partition(b"\r\n\r\n")
    fields = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
    pseudo = [(":method", "POST"), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", f"{prefix}/mcp")]
    headers = pseudo + [(name, value) for name, value in fields if name not in ("host", "x-forwarded-for")]
    encoder = Encoder()
    sent = [_PREFACE, SettingsFrame(0).serialize()]
    for stream in range(1, 2 * RESETS, 2):
        # RFC 7541 section 6.2.2: a literal that no table keeps, and not in Huffman's code, so that it can be replaced.
        name = b"x-forwarded-for"
        who = bytes([0, len(name)]) + name + bytes([len(_SOMEBODY)]) + _SOMEBODY
        sent.append(HeadersFrame(stream, encoder.encode(headers) + who, flags=["END_HEADERS"]).serialize())
        sent.append(DataFrame(stream, body, flags=["END_STREAM"]).serialize())
        sent.append(RstStreamFrame(stream, 8).serialize())
    return b"".join([*sent, PingFrame(0, _PING).serialize()])


def fault(status: int, body: bytes) -> str | None:
    """What kind of error an answer is: its HTTP status, or the code of a JSON-RPC error; None for none."""
    if status >= 400:
        return str(status)
    found = _CODE.search(body)
    return None if found is None else f"error {found[1].decode()}"
