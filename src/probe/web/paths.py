"""Finds the endpoint of a request by its path, and counts the answers of pages until a socket has taken them.

Orchestrators probe `/health` and `/ready` without a Host name of this server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from ..core.budgets import SMALL_BYTES
from ..core.inbound import HttpHead
from ..engine.engine import Engine
from ..engine.pipes.pipe import serve_pipe
from ..engine.services import ByteLimit
from ..log.context import Recorder
from ..log.events import LimitReached
from ..log.ndjson import OpenedFile
from ..server.endpoints.asgi import (
    App,
    ClientGoneError,
    Receive,
    RefusedError,
    Scope,
    Send,
    before_upgrade,
    despite_half_close,
    holder_of,
    host_policy,
    http_head,
    is_private,
    read_unused_body,
    refuse,
    respond,
)
from ..server.endpoints.browsers import Browsers, check_purpose
from ..server.endpoints.exchange import CONNECTION, EndpointExchanges, HttpExchange
from ..server.endpoints.mcp_http import McpHttp
from ..server.endpoints.rate_limit import RateLimiter, refuse_unread
from ..server.endpoints.socket_facts import SocketFacts
from ..server.endpoints.websocket import Pace, WebSocketEndpoint, tool_host_endpoint
from ..server.forwarding.collector import forwarding_endpoint
from ..wire.errors import Rejection, busy
from .dashboard import Dashboard
from .feed.feed import Feed
from .opened_files import FilePages, OpenedFiles

if TYPE_CHECKING:
    from ..telemetry.counters import MetricsText
    from .api.app import Shown, SidePages

_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Health:
    """`/health` and `/ready`; `ready` returns whether the server takes new work."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
        elif scope["path"] == "/health":
            await respond(send, 200, _HEADERS, b'{"status":"alive"}')
        else:
            ready = self._ready()
            body = b'{"status":"ready"}' if ready else b'{"status":"draining"}'
            await respond(send, 200 if ready else 503, _HEADERS, body)


class Metrics:
    """`/metrics` of one engine."""

    def __init__(self, page: MetricsText) -> None:
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
            return
        headers = [(b"content-type", self._page.content_type.encode()), (b"cache-control", b"no-store")]
        await respond(send, 200, headers, self._page.text())


RESERVED: Final = SMALL_BYTES
"""The least bytes that an answer holds, also while its page is made.

Most pieces are smaller: so an answer is refused at its beginning, and not cut off later.
"""


class PageAnswer:
    """The answer of one page: it holds the bytes of its largest part, and `RESERVED` at least.

    A head with a Content-Length is sent with the body, so that a large body can still be refused. `answered` is set
    with the first part of a body.
    """

    def __init__(self, unsent: ByteLimit, holder: str | None, recorder: Recorder, send: Send) -> None:
        self._unsent = unsent
        self._holder = holder
        self._recorder = recorder
        self._send = send
        self._held = 0
        self._head: MutableMapping[str, Any] | None = None
        self._begun = False
        self._refused: Rejection | None = None
        self._scope = trio.CancelScope()
        self.answered = trio.Event()

    async def serve(self, app: App, scope: Scope, receive: Receive) -> None:
        """Let an application answer; its `send` waits and raises as that of the server does.

        Raises `Rejection` before any byte is sent if other answers hold too much. A later piece without room cuts the
        answer off.
        """
        try:
            self._hold(RESERVED)
            with self._scope:
                await app(scope, receive, self._pass)
        finally:
            self._unsent.release(self._holder, self._held)
            self.answered.set()
        if self._refused is not None:
            raise self._refused

    def _hold(self, size: int) -> None:
        """Raises `Rejection`."""
        if size > self._held:
            self._unsent.reserve(self._holder, self._recorder, size - self._held, self._held)
            self._held = size

    async def _pass(self, message: MutableMapping[str, Any]) -> None:
        if _has_length(message):
            self._head = message
            return
        try:
            self._hold(len(message.get("body", b"")))
        except Rejection as rejection:
            self._refused = None if self._begun else rejection
            self._scope.cancel()
            await trio.sleep_forever()
        self._begun = True
        if self._head is not None:
            head, self._head = self._head, None
            await self._send(head)
        if message["type"] == "http.response.body":
            self.answered.set()
        await self._send(message)


def _has_length(message: MutableMapping[str, Any]) -> bool:
    return any(name == b"content-length" for name, _ in message.get("headers", ()))


_PROTOCOL = ("/mcp", "/ws")
_WITH_SECRET = ("/toolhost", "/forward")
# Not recorded: otherwise a page that shows the log would add entries to it.
_OBSERVERS = ("/dashboard/", "/api/", "/opened/", "/health/", "/ready/", "/metrics/")
_NO_CONNECTION = {"number": 0}
_RETRY_S = 5
_ELSEWHERE = "This server speaks MCP on its standard input and output; here are only pages about it: /dashboard, /api"
_NOWHERE = "This server shows a file and speaks no MCP; here are only pages about it: /dashboard, /api"


class SharedPages:
    """The side pages, which all engines of a process may share; the first request for one makes them."""

    def __init__(self) -> None:
        self.made: SidePages | None = None
        self._loading = trio.Lock()

    async def loaded(self, engine: Engine) -> SidePages:
        async with self._loading:
            if self.made is None:
                # Abandoned at the end of the server: the request gets its 503, which does not wait for imports.
                self.made = await trio.to_thread.run_sync(_load_pages, engine, abandon_on_cancel=True)
        return self.made


def _load_pages(engine: Engine) -> SidePages:
    # Quart is most of this program's import time and no part of the protocol, so the first page loads it.
    from .api.app import SidePages

    return SidePages(engine)


class Paths:
    """The ASGI application of one engine.

    With `pages_only`, and for a file, no protocol is served. `metrics` serves `/metrics`; None for no such path. `show`
    makes the pages of a file; with it, files are `opened`, and the caller runs `opened.serve`. `pages` are those of
    other engines of the process; `pace` is the rate of messages on WebSockets, if it is not that of this engine alone.
    The listener reports its connections to `sockets`.

    Requests beside the endpoints, such as those of browsers and scanners, are in the event log with their heads.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        pages_only: bool = False,
        metrics: MetricsText | None = None,
        show: Callable[[OpenedFile], FilePages] | None = None,
        pages: SharedPages | None = None,
        pace: Pace | None = None,
    ) -> None:
        settings = engine.settings
        self.opened = None if show is None else OpenedFiles(engine, show)
        self.mcp = McpHttp(engine)
        self._rate_limiter = RateLimiter(engine.services)
        self._browsers = Browsers(settings)
        self.websocket = WebSocketEndpoint(engine, partial(serve_pipe, engine), pace or self._rate_limiter.pace)
        self.toolhost = tool_host_endpoint(engine)
        self.forwarding = forwarding_endpoint(engine)
        self.feed = Feed(engine)
        self._health = Health(lambda: not engine.draining)
        self._policy = host_policy(settings)
        self._dashboard = Dashboard()
        self._metrics = None if metrics is None else Metrics(metrics)
        self._exchanges = EndpointExchanges(engine.services, engine.sessions.label)
        self.sockets = SocketFacts(engine.log, settings.limits, engine.clock.now)
        self._engine = engine
        self._pages_only = pages_only or engine.opened is not None
        self.pages = SharedPages() if pages is None else pages
        self._pages_open: set[PageAnswer] = set()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self._admit(self._serve, scope, receive, send)

    def beyond(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a request on a connection beyond `max_connections`: health and pages; MCP is refused as busy."""
        return self._admit(self._serve_pages, scope, receive, send)

    async def _admit(self, serve: App, scope: Scope, receive: Receive, send: Send) -> None:
        send = self._browsers.add_headers(scope, send)
        admitted = await self._rate_limiter.admit(scope, receive, send)
        if admitted is not None:
            await serve(*admitted, send)

    async def _serve_pages(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" and scope["path"] not in (*_PROTOCOL, *_WITH_SECRET):
            await self._serve(scope, receive, send)
            return
        most = self._engine.settings.limits.max_connections
        self._engine.log.append(LimitReached("max_connections", most))
        rejection = busy(f"There are {most} connections already (max_connections)", _RETRY_S)
        await refuse_unread(scope, receive, send, rejection)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/" or f"{path}/".startswith(_OBSERVERS):
            await self._respond(scope, receive, send)
            return
        self.sockets.carries(scope.get("extensions", {}).get(CONNECTION, _NO_CONNECTION)["number"])
        if path == "/mcp" and scope["type"] == "http" and not self._pages_only:
            await self.mcp(scope, receive, send)
            return
        if not self._is_beside(scope):
            await self._respond(scope, receive, send)
            return
        request = scope if scope["type"] == "http" else {**scope, "method": "GET"}
        exchange = HttpExchange(self._exchanges, request, receive, send)
        by = "the server gave it up"
        try:
            await self._respond(scope, receive, exchange.passing)
            # An application returns without a response if the client has disconnected.
            by = "client"
        finally:
            exchange.close(by)

    def _is_beside(self, scope: Scope) -> bool:
        path = scope["path"]
        recorded = ("/ws", *_WITH_SECRET) if scope["type"] == "websocket" else ("/mcp",)
        return path not in recorded or (self._pages_only and path in _PROTOCOL)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/toolhost":
            await self.toolhost(scope, receive, send)
        elif self._pages_only and (scope["type"] == "websocket" or scope["path"] in _PROTOCOL):
            await _served_elsewhere(_ELSEWHERE if self._engine.opened is None else _NOWHERE, scope, receive, send)
        elif scope["path"] == "/forward" and not self._pages_only:
            await self.forwarding(scope, receive, send)
        elif scope["path"] == "/ws":
            await self.websocket(scope, receive, send)
        elif scope["type"] == "websocket":
            await _refuse_websocket(receive, send, RefusedError(404, "There is no WebSocket here; MCP is at /ws"))
        elif scope["path"] in ("/health", "/ready"):
            await self._health(scope, receive, send)
        else:
            await self._page(scope, receive, send)

    async def wait_idle(self) -> None:
        """Wait until no response or connection of the protocol is open, no feed is read and no file is shown.

        Then it waits for the answers of pages to begin: a slow download is not waited for.
        """
        await self.mcp.wait_idle()
        await self.websocket.wait_idle()
        await self.toolhost.wait_idle()
        await self.forwarding.wait_idle()
        await self.feed.wait_idle()
        if self.opened is not None:
            await self.opened.wait_idle()
        for answer in tuple(self._pages_open):
            await answer.answered.wait()

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = http_head(scope)
        try:
            self._policy.check(head)
            check_purpose(head)
            services = self._engine.services
            answer = PageAnswer(services.unsent, holder_of(scope), services.recorder, send)
            self._pages_open.add(answer)
            try:
                await answer.serve(self._answer_page, scope, receive)
            finally:
                self._pages_open.remove(answer)
        except Rejection as rejection:
            await refuse(send, head, RefusedError(rejection.refusal.status, rejection.message, rejection.headers))

    async def _answer_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/dashboard/events":
            await self.feed(scope, receive, send)
        elif scope["path"] == "/metrics" and self._metrics is not None:
            await self._metrics(scope, receive, send)
        elif self.opened is not None and f"{scope['path']}/".startswith("/opened/"):
            await self.opened(scope, receive, send)
        elif scope["path"] == "/" or f"{scope['path']}/".startswith("/dashboard/"):
            await self._dashboard(scope, receive, send)
        else:
            if scope["method"] == "POST" and scope["path"].startswith("/interaction/"):
                try:
                    await read_unused_body(self._engine.services, holder_of(scope), receive)
                except ClientGoneError:
                    return
            pages = await self.pages.loaded(self._engine)
            await pages.serve(self._shown(), scope, despite_half_close(receive), send)

    def _shown(self) -> Shown:
        from .api.app import Shown
        from .api.server import OtherEndpoints

        beside = OtherEndpoints(
            serves_mcp=not self._pages_only,
            websockets=lambda: self.websocket.open,
            unsent_bytes=lambda: self._engine.services.unsent.held + self._engine.services.piped.held,
            readers=lambda: len(self.feed.open),
            feed_readers=lambda: self.feed.readers,
            takes_files=lambda scope: self.opened is not None and is_private(self._engine.settings, scope),
        )
        return Shown(self._engine, beside)


async def _served_elsewhere(where: str, scope: Scope, receive: Receive, send: Send) -> None:
    refused = RefusedError(404, where)
    if scope["type"] == "http":
        await refuse(send, http_head(scope), refused)
    else:
        await _refuse_websocket(receive, send, refused)


async def _refuse_websocket(receive: Receive, send: Send, refused: RefusedError) -> None:
    await receive()
    await refuse(before_upgrade(send), HttpHead("GET", []), refused)
