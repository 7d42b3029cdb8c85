"""The side pages of all engines of a process, and `/interaction/ID`: a page with one button.

Quart's application takes a megabyte and the time of ten calls, so there is one. The engine of a request is in a context
variable while the application answers, also while it sends the body.
"""

from __future__ import annotations

from base64 import b64encode
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import cast
from weakref import WeakKeyDictionary

import trio
from quart import Response
from quart_trio import QuartTrio
from werkzeug.local import LocalProxy

from ...engine.engine import Engine
from ...server.endpoints.asgi import App, Receive, Scope, Send
from . import events, exports, judge, listing, responses, server, tables
from .server import OtherEndpoints


@dataclass(frozen=True, slots=True)
class Shown:
    """The engine that a page is about, and the facts of the other endpoints of its server."""

    engine: Engine
    beside: OtherEndpoints


_SHOWN: ContextVar[Shown] = ContextVar("shown")


class SidePages:
    """The application of the side pages. Engines beside the `first` have the same tools."""

    def __init__(self, first: Engine) -> None:
        self._app = cast("App", create(first))

    async def serve(self, shown: Shown, scope: Scope, receive: Receive, send: Send) -> None:
        token = _SHOWN.set(shown)
        try:
            await self._app(scope, receive, send)
        finally:
            _SHOWN.reset(token)


class EnginesInTurn:
    """A lock that the engines of a process take in turn, however many requests each of them has."""

    def __init__(self) -> None:
        self._all = trio.Lock()
        self._own: WeakKeyDictionary[Engine, trio.Lock] = WeakKeyDictionary()

    async def __aenter__(self) -> None:
        own = self._own.setdefault(_SHOWN.get().engine, trio.Lock())
        # One request of an engine waits for the lock of all, which passes to its waiters in order.
        await own.acquire()
        try:
            await self._all.acquire()
        except BaseException:
            own.release()
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._all.release()
        self._own[_SHOWN.get().engine].release()


def create(first: Engine) -> QuartTrio:
    """The application; a request needs the context of `SidePages.serve`.

    What is the same for all engines, such as the list of tools, is made of the `first`.
    """
    engine = cast("Engine", LocalProxy(_SHOWN, "engine"))
    beside = cast("OtherEndpoints", LocalProxy(_SHOWN, "beside"))
    app = QuartTrio("probe")
    # No page reads a body; Quart would keep this many bytes of one.
    app.config["MAX_CONTENT_LENGTH"] = 1024
    # Quart answers OPTIONS with a page of its own; here it is refused as any other unknown method.
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    # Quart would lead `/api//events` to `/api/events` without what stands before it, such as `/r/ROOM`.
    app.url_map.merge_slashes = False
    responses.register(app)
    responses.answer_errors(app, lambda: _known_paths(beside))
    server.register(app, engine, beside, server.tools(first))
    # Whole pages are made one at a time: each counts in max_unsent_bytes only once it is made.
    making = EnginesInTurn()
    tables.register(app, engine, making)
    events.register(app, engine)
    # Searches and exports read the whole log. One makes a piece at a time, so many slow down calls as one does.
    reading = EnginesInTurn()
    events.register_search(app, engine, reading, EnginesInTurn())
    events.register_filter_line(app, engine)
    tables.register_calls(app, engine, making)
    judge.register(app, engine, reading)
    exports.register(app, engine, reading)
    register_interactions(app, engine)
    return app


def _known_paths(beside: OtherEndpoints) -> str:
    protocol = "/mcp, /ws, " if beside.serves_mcp else ""
    pages = ", ".join(page.path for page in listing.API)
    return f"known are {protocol}/health, /ready, /interaction, /dashboard, {pages}"


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>MCP Probe: {title}</title>
<style>{style}</style>
<h1>{title}</h1>
<p>{text}</p>
{form}
"""
_STYLE = "body { font: 1.1rem/1.5 system-ui; max-width: 36rem; margin: 4rem auto; padding: 0 1rem }"
_FORM = '<form method="post"><button>Confirm</button></form>'
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    # In a foreign frame the button could be clicked by mistake. The digest allows only this style.
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    # The address is a secret: it must not leak to other sites. With `no-referrer` browsers would send the form with
    # `Origin: null` (Fetch standard, "append a request Origin header"), as a foreign page does.
    "referrer-policy": "same-origin",
}


def register_interactions(app: QuartTrio, engine: Engine) -> None:
    """Add the page."""

    @app.get("/interaction/<id>")
    async def show(id: str) -> Response:
        if not engine.services.interactions.is_open(id):
            return _page(404, "Nothing to confirm", "This page has been confirmed, or its call is over.")
        text = "A tool of MCP Probe asked your client to open this page. The tool goes on when you confirm."
        return _page(200, "Confirm the interaction", text, _FORM)

    @app.post("/interaction/<id>")
    async def confirm(id: str) -> Response:
        if not engine.services.interactions.confirm(id):
            return _page(404, "Nothing to confirm", "The call that asked for this is over.")
        return _page(200, "Confirmed", "You can close this page and return to your client.")


def _page(status: int, title: str, text: str, form: str = "") -> Response:
    body = _PAGE.format(style=_STYLE, title=title, text=text, form=form)
    return Response(body, status, headers=_HEADERS, content_type="text/html; charset=utf-8")
