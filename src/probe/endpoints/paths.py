"""Which endpoint a request belongs to, by its path."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import trio

from ..core.inbound import HostPolicy, HttpHead
from ..engine.engine import Engine
from ..wire.errors import Rejection
from ..wire.jsonrpc import encode
from .asgi import App, Receive, Scope, Send, respond
from .health import Health
from .mcp_http import McpHttp


def _load_pages(engine: Engine) -> App:
    # Quart is most of this program's import time and no part of the protocol, so the first page asked for pays for it.
    from .api import create

    return cast("App", create(engine))


class Paths:
    """The ASGI application of one engine. `mcp` is its protocol endpoint."""

    def __init__(self, engine: Engine, load_pages: Callable[[Engine], App] = _load_pages) -> None:
        settings = engine.settings
        self.mcp = McpHttp(engine)
        self._health = Health(lambda: not engine.draining)
        self._policy = HostPolicy.of(
            settings.host, settings.allowed_hosts.split(","), settings.allowed_origins.split(",")
        )
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
            content_type = (b"content-type", b"application/json")
            await respond(send, rejection.refusal.status, [content_type], encode(rejection.body()))
            return
        pages = await self._loaded_pages()
        await pages(scope, receive, send)

    async def _loaded_pages(self) -> App:
        async with self._loading:
            if self._pages is None:
                self._pages = await trio.to_thread.run_sync(self._load_pages, self._engine)
        return self._pages
