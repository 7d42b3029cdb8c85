"""Every endpoint of a server, and how a request to each of them ends when nothing is wrong with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import trio

from probe.web.api import listing
from probe.wire.toolhost import SUBPROTOCOL

from ..support.hosts import SECRET
from ..support.http import http_scope
from ..support.modern import VERSION

HOST = "127.0.0.1:8000"
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
FIXED = ("/", "/dashboard", "/dashboard/live", "/dashboard/assets/nope.js", "/nope", "/interaction/nope")
PAGES = (*FIXED, *(page.path.replace("{seq}", "1").replace("{id}", "c1") for page in (*listing.API, listing.FEED)))


@dataclass(frozen=True)
class Endpoint:
    """A request; `socket` is a WebSocket handshake."""

    name: str
    path: str
    method: str = "GET"
    socket: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


MCP = (
    Endpoint("mcp-post", "/mcp", "POST", headers={**JSON, "mcp-protocol-version": VERSION}),
    Endpoint("mcp-get", "/mcp", headers={"accept": "text/event-stream", "mcp-session-id": "unknown"}),
    Endpoint("mcp-delete", "/mcp", "DELETE", headers={"mcp-session-id": "unknown"}),
    Endpoint("mcp-options", "/mcp", "OPTIONS"),
)
SOCKETS = (
    Endpoint("ws", "/ws", socket=True),
    Endpoint("toolhost", "/toolhost", socket=True, headers={"authorization": f"Bearer {SECRET}"}),
)
SIDE = tuple(Endpoint(path, path) for path in PAGES)
CONFIRMING = Endpoint("confirm", "/interaction/nope", "POST")
GUARDED = (*MCP, *SOCKETS, *SIDE, CONFIRMING)
"""Those that look at Host and Origin."""
OPEN = tuple(Endpoint(name, name) for name in ("/health", "/ready"))
"""Those that anybody may ask under any name; what they answer depends on nothing that a client has sent."""


@dataclass(frozen=True)
class Answer:
    """Status, headers and the beginning of the body; the status of an accepted WebSocket is 101."""

    status: int
    headers: dict[str, str]
    body: bytes


async def ask(app: Any, endpoint: Endpoint, headers: list[tuple[str, str]], *, scheme: str = "http") -> Answer:
    """One request with these headers beside the endpoint's own; whoever is answered with a stream hangs up."""
    scope = http_scope(endpoint.method, endpoint.path, [*endpoint.headers.items(), *headers])
    scope["scheme"] = scheme
    if endpoint.socket:
        protocol = SUBPROTOCOL if endpoint.path == "/toolhost" else "mcp"
        scope = {**scope, "type": "websocket", "scheme": "ws", "subprotocols": [protocol]}
        del scope["method"]
    head: dict[str, Any] = {}
    body, over = bytearray(), trio.Event()
    first: list[dict[str, Any]] = [{"type": "websocket.connect"} if endpoint.socket else _request()]

    async def receive() -> dict[str, Any]:
        if first:
            return first.pop()
        await over.wait()
        return {"type": "websocket.disconnect", "code": 1000} if endpoint.socket else {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        await trio.lowlevel.checkpoint()
        if event["type"].endswith("response.start"):
            head.update(event)
        elif event["type"] == "websocket.accept":
            head.update(status=101, headers=[])
            over.set()
        elif event["type"].endswith("response.body"):
            body.extend(event.get("body", b""))
            # That of a stream goes on until its client hangs up.
            over.set()

    with trio.fail_after(60):
        await app(scope, receive, send)
    named = {key.decode("latin-1"): value.decode("latin-1") for key, value in head["headers"]}
    assert len(named) == len(head["headers"]), f"a header stands twice: {head['headers']}"
    return Answer(head["status"], named, bytes(body))


def _request() -> dict[str, Any]:
    return {"type": "http.request", "body": b"{}", "more_body": False}
