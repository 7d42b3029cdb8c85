"""The side pages of all engines of a process, put together.

Quart's application takes a megabyte and the time of ten calls, so there is one, whatever the number of engines. The
engine of a request is in a context variable while the application answers, also while it sends the body.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

import trio
from quart_trio import QuartTrio
from werkzeug.local import LocalProxy

from ...engine.engine import Engine
from ...server.endpoints.asgi import App, Receive, Scope, Send
from .. import interaction
from . import calls, events, exports, filter_line, judge, listing, problems, responses, search, server, tables
from .server import Beside


@dataclass(frozen=True, slots=True)
class Shown:
    """The engine that a page is about, and the facts of the other endpoints of its server."""

    engine: Engine
    beside: Beside


_SHOWN: ContextVar[Shown] = ContextVar("shown")


class SidePages:
    """The application of the side pages. Engines beside the `first` have the same tools."""

    def __init__(self, first: Engine) -> None:
        self._app = cast("App", create(first))

    async def serve(self, shown: Shown, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request with a page about `shown`."""
        token = _SHOWN.set(shown)
        try:
            await self._app(scope, receive, send)
        finally:
            _SHOWN.reset(token)


def create(first: Engine) -> QuartTrio:
    """The application of the side pages; a request needs the context of `SidePages.serve`.

    What is the same for all engines, such as the list of tools, is made of the `first`.
    """
    engine = cast("Engine", LocalProxy(_SHOWN, "engine"))
    beside = cast("Beside", LocalProxy(_SHOWN, "beside"))
    app = QuartTrio("probe")
    # No page reads a body; Quart would keep this many bytes of one.
    app.config["MAX_CONTENT_LENGTH"] = 1024
    # Quart answers OPTIONS with a page of its own; here it is refused as any other unknown method.
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    responses.register(app)
    problems.register(app, lambda: _known_paths(beside))
    server.register(app, engine, beside, server.tools(first))
    # Whole pages are made one at a time: each counts in max_unsent_bytes only once it is made.
    making = trio.Lock()
    tables.register(app, engine, making)
    events.register(app, engine)
    # Searches and exports read the whole log. One makes a piece at a time, so many slow down calls as one does.
    turnstile = trio.Lock()
    search.register(app, engine, turnstile)
    filter_line.register(app, engine)
    calls.register(app, engine, making)
    judge.register(app, engine, turnstile)
    exports.register(app, engine, turnstile)
    interaction.register(app, engine)
    return app


def _known_paths(beside: Beside) -> str:
    protocol = "/mcp, /ws, " if beside.serves_mcp else ""
    pages = ", ".join(page.path for page in listing.API)
    return f"known are {protocol}/health, /ready, /interaction, /dashboard, {pages}"
