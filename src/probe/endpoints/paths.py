"""Which endpoint a request belongs to, by its path."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import trio

from ..core.inbound import HostPolicy, HttpHead
from ..engine.engine import Engine
from ..wire.errors import Rejection
from ..wire.jsonrpc import encode
from .asgi import NOSNIFF, App, Headers, Receive, Scope, Send, respond
from .call_tail import CallTail
from .dashboard import Dashboard
from .feed import Feed
from .health import Health
from .mcp_http import McpHttp

_REFUSAL_HEADERS: Headers = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NOSNIFF,
)


def _load_pages(engine: Engine, mcp: McpHttp, feed: Feed) -> App:
    # Quart is most of this program's import time and no part of the protocol, so the first page asked for pays for it.
    from .pages.app import create
    from .pages.server import Beside

    return cast("App", create(engine, Beside(lambda: mcp.unsent_bytes, lambda: feed.readers)))


class Paths:
    """The ASGI application of one engine. `mcp` is its protocol endpoint, `feed` what its dashboards read."""

    def __init__(self, engine: Engine, load_pages: Callable[[Engine, McpHttp, Feed], App] = _load_pages) -> None:
        settings = engine.settings
        self.mcp = McpHttp(engine)
        self.feed = Feed(engine)
        self._call_tail = CallTail(engine, self.feed)
        self._health = Health(lambda: not engine.draining)
        self._policy = HostPolicy.of(
            settings.host, settings.allowed_hosts.split(","), settings.allowed_origins.split(",")
        )
        self._dashboard = Dashboard()
        self._engine = engine
        self._load_pages = load_pages
        self._pages: App | None = None
        self._loading = trio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of any kind."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["path"] == "/mcp":
            await self.mcp(scope, receive, send)
        elif scope["path"] in ("/health", "/ready"):
            await self._health(scope, receive, send)
        else:
            await self._page(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        try:
            self._policy.check(HttpHead(scope["method"], headers))
        except Rejection as rejection:
            await respond(send, rejection.refusal.status, _REFUSAL_HEADERS, encode(rejection.body()))
            return
        if scope["path"] == "/dashboard/events":
            await self.feed(scope, receive, send)
        elif scope["path"] == "/api/calls/live":
            await self._call_tail(scope, receive, send)
        elif scope["path"] == "/" or f"{scope['path']}/".startswith("/dashboard/"):
            await self._dashboard(scope, receive, send)
        else:
            pages = await self._loaded_pages()
            await pages(scope, receive, send)

    async def _loaded_pages(self) -> App:
        async with self._loading:
            if self._pages is None:
                self._pages = await trio.to_thread.run_sync(self._load_pages, self._engine, self.mcp, self.feed)
        return self._pages
