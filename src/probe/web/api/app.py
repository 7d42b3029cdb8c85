"""The side pages of one engine, put together."""

from __future__ import annotations

import trio
from quart_trio import QuartTrio

from ...engine.protocols import WatchedEngine
from .. import interaction
from . import calls, events, exports, filter_line, judge, listing, problems, responses, search, server, tables
from .server import Beside


def create(engine: WatchedEngine, beside: Beside) -> QuartTrio:
    """The side pages of one engine, with what they show of the endpoints `beside` them."""
    app = QuartTrio("probe")
    # No page here reads a body; this is what Quart would keep of one.
    app.config["MAX_CONTENT_LENGTH"] = 1024
    # Quart answers OPTIONS with a page of its own; here it is as any other method that a page does not take.
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    responses.register(app)
    protocol = "/mcp, /ws, " if beside.serves_mcp else ""
    problems.register(app, f"known are {protocol}/health, /ready, /interaction, /dashboard, {_paths()}")
    server.register(app, engine, beside)
    # Pages that are made whole are made one at a time: each is counted in max_unsent_bytes only once it is there.
    making = trio.Lock()
    tables.register(app, engine, making)
    events.register(app, engine)
    # Searches and exports read the whole log; however many there are, together they take as much time as one.
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
