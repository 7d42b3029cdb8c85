"""The side pages of one engine, put together."""

from __future__ import annotations

import trio
from quart_trio import QuartTrio

from ...engine.protocols import WatchedEngine
from .. import interaction
from . import calls, events, exports, filter_line, judge, listing, problems, responses, search, server, tables
from .server import Beside


def create(engine: WatchedEngine, beside: Beside) -> QuartTrio:
    """The side pages of one engine; `beside` has the facts of the other endpoints."""
    app = QuartTrio("probe")
    # No page reads a body; Quart would keep this many bytes of one.
    app.config["MAX_CONTENT_LENGTH"] = 1024
    # Quart answers OPTIONS with a page of its own; here it is refused as any other unknown method.
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    responses.register(app)
    protocol = "/mcp, /ws, " if beside.serves_mcp else ""
    problems.register(app, f"known are {protocol}/health, /ready, /interaction, /dashboard, {_paths()}")
    server.register(app, engine, beside)
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
    interaction.register(app, engine.interactions)
    return app


def _paths() -> str:
    return ", ".join(page.path for page in listing.API)
