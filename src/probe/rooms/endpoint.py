"""The ASGI application of a server with rooms: `/new`, `/api/rooms`, and `/r/ROOM/…`, which is the room's own server.

    GET or POST /new           303 to the dashboard of a new room
    POST /api/rooms            the addresses of a new room, as JSON
    /r/ROOM/api/room           GET: the addresses, and when it ends; DELETE ends it
    /r/ROOM/                   its page for people; POST /r/ROOM/end ends it
    /r/ROOM/...                what a server without rooms has at `/...`; a reader's id gives pages and data by GET
    /                          with `rooms` "only": the landing page

An id that no room has gets the same 404 whether it was never made, has ended, or is out of date. A refusal has the form
of the room's own: an error of JSON-RPC with CORS at `/mcp`, a page for a browser, a problem for all else, and 403 for a
Host or Origin that is not allowed. Only the rate of an address refuses a request unread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext, suppress
from dataclasses import asdict
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from ..core.budgets import SMALL_BYTES
from ..core.inbound import HttpHead
from ..core.modern_inbound import era_of_head
from ..engine.engine import Engine
from ..log.events import LimitReached
from ..server.endpoints.asgi import (
    PREFIX,
    Body,
    ClientGoneError,
    Headers,
    Receive,
    RefusedError,
    Scope,
    Send,
    base_of,
    before_upgrade,
    holder_of,
    host_policy,
    http_head,
    read_unused_body,
    refuse,
    respond,
)
from ..server.endpoints.browsers import Browsers, check_purpose
from ..server.endpoints.rate_limit import refuse_unread
from ..web.paths import Paths
from ..wire.errors import Refusal, Rejection, busy, too_many
from ..wire.jsonrpc import MalformedError, RequestId, encode, id_length, is_id, parse
from . import pages
from .addresses import addresses
from .connections import Connections
from .exported import room_number
from .room import Room
from .rooms import Found, Rooms
from .showing import SESSION_FILE, Masked, may_show, searches, uncompressed

_BELOW: Final = "/r/"
_JSON: Final[Headers] = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_NOT_STORED: Final[Headers] = ((b"cache-control", b"no-store"),)
_MONITORING: Final = ("/health", "/ready")
_PROTOCOL: Final = ("/mcp", "/ws", "/toolhost", "/forward")
_NONE: Final = "There is no such room: it has ended, or it never was. GET /new makes one"
_ENDING: Final = "This server is ending: make another room"
_ONLY: Final = "This server has only rooms: GET /new makes one"
_NO_WEBSOCKET: Final = "There is no WebSocket here; each room has MCP at its /ws"
_SHOWS: Final = "This address only shows a room: GET of its dashboard and of /api"
_NO_FILE: Final = "A session file is for the owner of the room only: in a ZIP file its id would stay"
_NO_SEARCH: Final = "A read-only address does not search"
# The client has to begin again, as without its session.
_GONE: Final = Refusal.UNKNOWN_SESSION
_RETRY_S: Final = 5
# Most clients send the body of a request in a segment of its own, right behind the head.
_BODY_S: Final = 1.0
# Readers have this part of the places that an owner has.
_READERS: Final = 4

_Page: TypeAlias = Callable[[Scope, HttpHead, Send], Awaitable[None]]


class _Asked(NamedTuple):
    """A request below `/r/`: the id in its path, and its scope as the room sees it.

    An escaped spelling is no id. `has_slash` is false for `/r/ROOM` without a path behind it.
    """

    id: str | None
    scope: Scope
    has_slash: bool


def _asked(scope: Scope) -> _Asked:
    # The path as it was sent: balancers hash it, and browsers resolve relative addresses by it.
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    parts = raw.decode("latin-1").split("/", 4)
    mount, below = "/".join(parts[:4]), "".join(parts[4:])
    inner = {**scope, "path": f"/{unquote(below)}", "raw_path": raw[len(mount) :], PREFIX: mount}
    return _Asked("/".join(parts[2:4]) if parts[1:2] == ["r"] else None, inner, len(parts) > 4)


class RoomsEndpoint:
    """The application. `root` serves what is not about rooms; with `only`, that is monitoring alone."""

    def __init__(self, rooms: Rooms, engine: Engine, root: Paths, *, only: bool) -> None:
        limits = engine.settings.limits
        self.sockets = Connections(root.sockets)
        rooms.on_end(self.sockets.left)
        self._rooms = rooms
        self._engine = engine
        self._root = root
        self._only = only
        self._limits = limits
        self._rate_limiter = rooms.rate_limiter
        self._browsers = Browsers(engine.settings)
        self._policy = host_policy(engine.settings)
        self._monitoring = (*_MONITORING, "/metrics") if engine.settings.metrics else _MONITORING
        self._most_requests = max(1, int(limits.max_connections * limits.room_share))

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self._route(scope, receive, send, beyond=False)

    def beyond(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request on a connection beyond `max_connections`: no MCP."""
        return self._route(scope, receive, send, beyond=True)

    async def _route(self, scope: Scope, receive: Receive, send: Send, *, beyond: bool) -> None:
        path = scope["path"]
        if path.startswith(_BELOW):
            asked = _asked(scope)
            admitted = await self._admitted(asked.scope, receive, send)
            if admitted is not None:
                await self._room(asked._replace(scope=admitted[0]), admitted[1], send, beyond=beyond)
        elif path in ("/new", "/api/rooms") or (self._only and path not in self._monitoring):
            admitted = await self._admitted(scope, receive, send)
            if admitted is not None:
                await self._beside(*admitted, send)
        else:
            await (self._root.beyond if beyond else self._root)(scope, receive, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive] | None:
        return await self._rate_limiter.admit(scope, receive, self._with_headers(scope, send))

    # -- pages beside the rooms

    async def _beside(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _PROTOCOL:
            await self._refuse(scope, receive, send, Rejection(_GONE, _ONLY))
        else:
            await self._answered(self._page, scope, receive, send)

    async def _answered(
        self, page: _Page, scope: Scope, receive: Receive, send: Send, room: Room | None = None
    ) -> None:
        """Let a page answer a complete request if Host and Origin are allowed.

        It may raise `RefusedError` and `Rejection`. It gets an incomplete request if its `room` is over.
        """
        send = self._with_headers(scope, send)
        if scope["type"] == "websocket":
            await refuse_unread(scope, receive, send, Rejection(_GONE, _NO_WEBSOCKET))
            return
        head = http_head(scope)
        try:
            self._policy.check(head)
            check_purpose(head)
            with nullcontext() if room is None else room.until_over():
                await read_unused_body(self._engine.services, holder_of(scope), receive)
            await page(scope, head, send)
        except Rejection as rejection:
            await refuse(send, head, _refused(rejection))
        except RefusedError as refused:
            await refuse(send, head, refused)
        except ClientGoneError:
            return

    async def _page(self, scope: Scope, head: HttpHead, send: Send) -> None:
        match scope["path"], head.method:
            case "/new", "GET" | "POST":
                # Relative, as a gateway may add a path before it.
                location = f"r/{self._rooms.new_id(holder_of(scope))}/dashboard".encode()
                await respond(send, 303, [*_NOT_STORED, (b"location", location)])
            case "/api/rooms", "POST":
                id = self._rooms.new_id(holder_of(scope))
                made = self._described(scope, head, id, self._rooms.reading(id))
                await respond(send, 201, [*_JSON, (b"location", made["room"].encode())], encode(made))
            case "/", "GET" | "HEAD" if self._only:
                body = pages.landing(self._rooms.idle_s)
                await respond(send, 200, pages.HEADERS, body, to_head=head.method == "HEAD")
            case "/new", _:
                raise RefusedError(405, "this page takes GET, POST", [(b"allow", b"GET, POST")])
            case "/api/rooms", _:
                raise RefusedError(405, "this page takes POST", [(b"allow", b"POST")])
            case _:
                raise RefusedError(404, _ONLY)

    def _described(self, scope: Scope, head: HttpHead, id: str, reading: str) -> dict[str, Any]:
        base = base_of(self._engine.settings.public_url, {**scope, PREFIX: ""}, head.all("host"))
        number = {"telemetry_room": room_number(id)} if self._engine.settings.telemetry else {}
        return {"id": id, **asdict(addresses(base, id, reading)), "idle_s": self._rooms.idle_s, **number}

    # -- rooms

    async def _room(self, asked: _Asked, receive: Receive, send: Send, *, beyond: bool) -> None:
        scope = asked.scope
        try:
            found = None
            if asked.id is not None:
                found = await self._rooms.find(asked.id, holder_of(scope), partial(_goes_on, scope))
        except Rejection as rejection:
            if not self._engine.draining or rejection.refusal is _GONE:
                await self._refuse(scope, receive, send, rejection)
            elif scope["type"] == "http" and http_head(scope).all("sec-fetch-mode") == "navigate":
                await self._lead(scope, receive, send, 303, pages.new_from(scope))
            else:
                await self._refuse(scope, receive, send, busy(_ENDING, _RETRY_S))
            return
        if found is None:
            await self._refuse(scope, receive, send, Rejection(_GONE, _NONE))
        elif asked.has_slash:
            await self._inside(found, scope, receive, send, beyond=beyond)
        elif scope["type"] == "http":
            await self._lead(scope, receive, send, 307, f"{scope[PREFIX].rpartition('/')[2]}/")
        else:
            await self._refuse(scope, receive, send, Rejection(_GONE, _NO_WEBSOCKET))

    async def _lead(self, scope: Scope, receive: Receive, send: Send, status: int, location: str) -> None:
        foreign = self._foreign(scope)
        send = self._with_headers(scope, send)
        if foreign is not None:
            await refuse_unread(scope, receive, send, foreign)
        else:
            await respond(send, status, [*_NOT_STORED, (b"location", location.encode())])

    def _foreign(self, scope: Scope) -> Rejection | None:
        """The room's own refusal of a Host, an Origin or an embedding page; None if they are allowed."""
        head = http_head({"method": "GET", **scope})
        try:
            self._policy.check(head)
            if scope["path"] not in _PROTOCOL:
                check_purpose(head)
        except Rejection as rejection:
            return rejection
        return None

    async def _refuse(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        rejection: Rejection,
        *,
        is_unread: bool = True,
        is_open: bool = False,
    ) -> None:
        """Refuse a request in the form that a room has for its path; `is_open` if there is the room."""
        foreign = self._foreign(scope)
        send = self._with_headers(scope, send)
        if scope["type"] == "http" and foreign is None:
            head = http_head(scope)
            if scope["path"] == "/mcp" and _is_preflight(head):
                # Otherwise a page could not read the refusal of the request that follows.
                await respond(send, 204, ())
                return
            if pages.is_shown(scope, head):
                body, headers = self._refused_page(scope, rejection, is_open=is_open), rejection.headers
                is_head, status = head.method == "HEAD", rejection.refusal.status
                await respond(send, status, [*pages.HEADERS, *headers], body, to_head=is_head)
                return
            # With `Expect: 100-continue` the body is not on its way, and is not asked for (RFC 9110 section 10.1.1).
            if is_unread and scope["path"] == "/mcp" and not head.each("expect"):
                rejection.id = await self._id_of(scope, receive)
        await refuse_unread(scope, receive, send, foreign or rejection)

    def _refused_page(self, scope: Scope, rejection: Rejection, *, is_open: bool) -> bytes:
        if is_open:
            return pages.full(rejection.message, title="This room is busy")
        if rejection.refusal is _GONE or self._engine.draining:
            return pages.refused(rejection.message, pages.new_from(scope))
        return pages.full(rejection.message)

    async def _id_of(self, scope: Scope, receive: Receive) -> RequestId | None:
        """The id of a request that is refused; None if its body is large, late or malformed."""
        services = self._engine.services
        with (
            suppress(Rejection, ClientGoneError),
            services.arriving.counting(holder_of(scope), services.recorder) as count,
        ):
            return self._id_in(await Body(SMALL_BYTES).read(receive, timeout_s=_BODY_S, count=count))
        return None

    def _id_in(self, body: bytes) -> RequestId | None:
        try:
            value = parse(body, max_depth=self._limits.max_json_depth)
        except MalformedError:
            return None
        id = value.get("id") if isinstance(value, dict) and "method" in value else None
        return id if is_id(id) and id_length(id) <= self._limits.max_id_length else None

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        # The notes of this head belong to the application of a room, which sees another path.
        return self._browsers.add_headers({**scope, "extensions": {}}, send)

    async def _inside(self, found: Found, scope: Scope, receive: Receive, send: Send, *, beyond: bool) -> None:
        room = found.room
        rejection = None if _ends(found, scope) else self._rejection(found, scope, beyond=beyond)
        if rejection is not None:
            await self._refuse(scope, receive, send, rejection, is_open=True)
        elif scope["path"] in ("/api/room", "/end") or (scope["path"] == "/" and found.is_owner):
            await self._answered(partial(self._about, found), scope, receive, send, room)
        elif found.is_owner:
            noting = self._with_sessions_noted(room, scope, send)
            is_served = await room.answer(self.sockets.carries(room, scope), receive, noting)
            await self._refuse_ended(scope, receive, send, is_served=is_served)
        elif searches(scope):
            await self._forbid(scope, receive, send, _NO_SEARCH)
        elif may_show(scope):
            masked = Masked(send, room.secret, room.shown)
            is_served = await room.show(self.sockets.carries(room, uncompressed(scope)), receive, masked)
            await self._refuse_ended(scope, receive, send, is_served=is_served)
        else:
            await self._forbid(scope, receive, send, _NO_FILE if scope["path"] == SESSION_FILE else _SHOWS)

    def _with_sessions_noted(self, room: Room, scope: Scope, send: Send) -> Send:
        """Note the sessions that the room refuses. 2026-07-28 ignores the header."""
        if scope["type"] != "http" or scope["path"] != "/mcp" or not self._engine.settings.request_state_keys:
            return send
        head = http_head(scope)
        sessions = head.each("mcp-session-id")
        if not sessions or era_of_head(head) == "modern":
            return send

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message.get("status") == _GONE.status:
                for session in sessions:
                    self._rooms.note_session(room, session)
            await send(message)

        return sending

    async def _forbid(self, scope: Scope, receive: Receive, send: Send, why: str) -> None:
        send = self._with_headers(scope, send)
        if scope["type"] == "websocket":
            await receive()
            scope, send = {**scope, "method": "GET"}, before_upgrade(send)
        await refuse(send, http_head(scope), RefusedError(403, why))

    async def _refuse_ended(self, scope: Scope, receive: Receive, send: Send, *, is_served: bool) -> None:
        # The listener closes a handshake that nobody answered.
        if not is_served and scope["type"] == "http":
            await self._refuse(scope, receive, send, Rejection(_GONE, _NONE), is_unread=False)

    def _rejection(self, found: Found, scope: Scope, *, beyond: bool) -> Rejection | None:
        room = found.room
        if beyond and scope["path"] in _PROTOCOL:
            most = self._limits.max_connections
            self._engine.log.append(LimitReached("max_connections", most))
            return busy(f"There are {most} connections already (max_connections)", _RETRY_S)
        # Readers have places and a rate of their own, so they cannot shut the owner out.
        most = self._most_requests if found.is_owner else max(1, self._most_requests // _READERS)
        if len(room.requests if found.is_owner else room.shown_requests) >= most:
            if not room.is_full:
                room.engine.log.append(LimitReached("room_share:max_connections", most))
            room.is_full = True
            return too_many(f"This room has {most} requests already (room_share)", _RETRY_S)
        room.is_full = False
        wait_s = self._rooms.take_turn(found, holder_of(scope))
        why = "Too many requests for this room (requests_per_second)"
        return too_many(why, int(wait_s) + 1) if wait_s else None

    async def _about(self, found: Found, scope: Scope, head: HttpHead, send: Send) -> None:
        room = found.room
        base = {**scope, PREFIX: ""}
        if room.is_over:
            # It ended while the body came.
            raise Rejection(_GONE, _NONE)
        match scope["path"], head.method:
            case "/api/room", "GET" | "HEAD":
                whole = self._described(base, head, room.id, room.reading)
                shown = whole if found.is_owner else {"read_only": whole["read_only"], "idle_s": whole["idle_s"]}
                body = encode({**shown, "expires_at": round(room.expires_at(), 3), "is_owner": found.is_owner})
                await respond(send, 200, _JSON, body, to_head=head.method == "HEAD")
            case "/api/room", "DELETE" if found.is_owner:
                await room.end()
                await respond(send, 204, _NOT_STORED)
            case "/end", "POST" if found.is_owner:
                await room.end()
                await respond(send, 200, pages.HEADERS, pages.ended())
            case "/", "GET" | "HEAD":
                origin = base_of(self._engine.settings.public_url, base, head.all("host"))
                body = pages.room(
                    addresses(origin, room.id, room.reading),
                    room.idle_s,
                    room.expires_at(),
                    number=room_number(room.id) if self._engine.settings.telemetry else None,
                    given_up=room.engine.log.first - 1,
                    most_entries=room.engine.settings.limits.event_log_events,
                )
                await respond(send, 200, pages.HEADERS, body, to_head=head.method == "HEAD")
            case "/api/room", _ if found.is_owner:
                raise RefusedError(405, "this page takes GET, HEAD, DELETE", [(b"allow", b"GET, HEAD, DELETE")])
            case _ if found.is_owner:
                methods = "POST" if scope["path"] == "/end" else "GET, HEAD"
                raise RefusedError(405, f"this page takes {methods}", [(b"allow", methods.encode())])
            case _:
                raise RefusedError(403, _SHOWS)


def _ends(found: Found, scope: Scope) -> bool:
    """True if the owner ends the room, which no limit may hinder."""
    ending = (scope.get("method"), scope["path"]) in (("DELETE", "/api/room"), ("POST", "/end"))
    return ending and found.is_owner


def _goes_on(scope: Scope) -> bool:
    """True if a request has a session, or is of a page that its room has served."""
    head = http_head({"method": "GET", **scope})
    is_fetched = head.all("sec-fetch-site") == "same-origin" and head.all("sec-fetch-mode") != "navigate"
    is_of_page = is_fetched and scope["path"].startswith("/dashboard/")
    has_session = "mcp-session-id" in head.values and era_of_head(head) != "modern"
    return has_session or "last-event-id" in head.values or is_of_page


def _is_preflight(head: HttpHead) -> bool:
    return head.method == "OPTIONS" and bool(head.each("origin") and head.each("access-control-request-method"))


def _refused(rejection: Rejection) -> RefusedError:
    return RefusedError(rejection.refusal.status, rejection.message, rejection.headers)
