"""Rules `http.*` of every revision, and of those with sessions: the heads of requests."""

from __future__ import annotations

from ....log.bounded import Newest
from ....wire.revisions import MODERN
from ...projection.life import Life
from ...projection.views import Exchange, Message, Session
from ..predicate import Predicate, judges
from .heads import SESSION, VERSION, accepts, covers, has_body, is_json, single_values, speaks_modern

_JSON = "application/json"
_EVENTS = "text/event-stream"
_MOST_CONNECTIONS = 200


@judges("http.post-accept")
class HttpPostAccept(Predicate):
    """Accepts JSON and event streams on every POST.

    A range that covers them is understood by every server and is still no list. A POST without a body carries no
    message: health checks send such ones.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        if exchange.method != "POST" or not exchange.is_endpoint or not has_body(exchange):
            return
        accepted = accepts(exchange)
        missing = [kind for kind in (_JSON, _EVENTS) if kind not in accepted]
        if not missing:
            self.ok(exchange)
        elif all(covers(kind, accepted) for kind in missing):
            self.warn(exchange, f"Accept covers {' and '.join(missing)} by a range")
        else:
            self.fail(exchange, f"Accept does not list {' and '.join(missing)} (client or gateway)")


@judges("http.get-accept")
class HttpGetAccept(Predicate):
    """Accepts event streams on GET.

    A person who opens the address in a browser has no session id, and is not judged.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        if exchange.method != "GET" or SESSION not in exchange.headers or not exchange.is_endpoint:
            return
        if speaks_modern(exchange):
            return
        accepted = accepts(exchange)
        if _EVENTS in accepted:
            self.ok(exchange)
        elif covers(_EVENTS, accepted):
            self.warn(exchange, f"Accept covers {_EVENTS} by a range")
        else:
            self.fail(exchange, f"Accept of a GET does not list {_EVENTS} (client or gateway)")


@judges("http.content-type")
class HttpContentType(Predicate):
    """Says that its POST bodies are JSON."""

    def on_exchange(self, exchange: Exchange) -> None:
        if exchange.method != "POST" or not exchange.is_endpoint or not has_body(exchange):
            return
        given = exchange.header("content-type")
        if is_json(given):
            self.ok(exchange)
        else:
            self.fail(exchange, "Content-Type is missing" if given is None else f"Content-Type is {given}")


def _later(exchange: Exchange) -> Session | None:
    """The session of a request for the endpoint that began after the answer to initialize was delivered."""
    session = exchange.session
    if session is None or session.had is None or exchange.at <= session.had or not exchange.is_endpoint:
        return None
    if exchange.method == "DELETE" and _was_declined(session):
        return None
    return session if exchange.method in ("POST", "GET", "DELETE") else None


def _was_declined(session: Session) -> bool:
    """Whether the server chose another revision than the client asked for, and the client did not go on with it.

    "If the client does not support the version in the server's response, it SHOULD disconnect": what it says then is
    nothing of a revision that it does not know.
    """
    if session.initialized is not None or session.initialize is None:
        return False
    return bool(session.initialize.params.get("protocolVersion") != session.revision)


@judges("http.version-header")
class HttpVersionHeader(Predicate):
    """Names the protocol version on every request after initialize.

    A request that was under way when the answer was delivered could not name the version. An `initialize` in a session
    is the business of another rule.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        if VERSION in exchange.headers and self._session(exchange) is not None:
            self.ok(exchange)

    def on_response(self, exchange: Exchange) -> None:
        session = None if VERSION in exchange.headers else self._session(exchange)
        if session is not None and all(message.method != "initialize" for message in exchange.messages):
            self.fail(exchange, f"{exchange.method} without MCP-Protocol-Version (client or gateway)", session.seq)

    def _session(self, exchange: Exchange) -> Session | None:
        session = _later(exchange)
        return session if session is not None and session.revision in self.rule.revisions else None


@judges("http.version-header-negotiated")
class HttpVersionHeaderNegotiated(Predicate):
    """Names the version that was negotiated.

    A request that names a revision without sessions is not of the session, although it carries its id.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        session = _later(exchange)
        if session is None or session.revision not in self.rule.revisions or VERSION not in exchange.headers:
            return
        named = set(single_values(exchange, VERSION))
        if named == {session.revision}:
            self.ok(exchange)
        elif not named & set(MODERN):
            remark = f"MCP-Protocol-Version is {', '.join(sorted(named))}, negotiated was {session.revision}"
            self.fail(exchange, remark, session.seq)


@judges("http.session-header")
class HttpSessionHeader(Predicate):
    """Sends the session id with every request of the session.

    Only a label says whose a request without an id is. Another process under the same label may say something before
    its own `initialize`: where nothing shows that the connection is one of the session, it is waited for that. A ping
    is legal before `initialize`, and a GET without an id asks for the old transport.
    """

    one_process = True

    def setup(self) -> None:
        self._connections: Newest[str, Session] = Newest(_MOST_CONNECTIONS)

    def on_exchange(self, exchange: Exchange) -> None:
        session = _later(exchange)
        if session is None or self.life.kind != "label":
            return
        if exchange.connection is not None:
            self._connections.store(exchange.connection, session)
        self.ok(exchange)

    def on_session(self, session: Session) -> None:
        exchange = None if session.initialize is None else session.initialize.exchange
        if exchange is not None and exchange.connection is not None:
            self._connections.store(exchange.connection, session)

    def on_response(self, exchange: Exchange) -> None:
        if self.life.kind != "label" or SESSION in exchange.headers or not exchange.is_endpoint:
            return
        if exchange.status is None or exchange.status < 400 or exchange.is_limited or speaks_modern(exchange):
            return
        place = _legacy_act(exchange)
        session = _open_session(self.life, exchange.at)
        if place is None or session is None:
            return
        remark = f"{exchange.method} without Mcp-Session-Id (client or gateway)"
        if isinstance(place, Message) and place.method == "ping":
            self.unclear(place, "a ping without Mcp-Session-Id, which is legal before initialize", session.seq)
        elif exchange.connection is not None and exchange.connection in self._connections:
            self.fail(place, remark, session.seq)
        else:
            # Before the rule that asks for the reason of a refusal.
            due = exchange.at + self.allowances.settle_s
            self.let_cross(due, self._look, exchange.at, place, session, remark, of=place)

    def _look(self, at: float, place: Message | Exchange, session: Session, remark: str) -> None:
        if any(each.opened > at for each in self.life.sessions.values()):
            self.unclear(place, f"{remark}, perhaps of another process before its initialize", session.seq)
        else:
            self.fail(place, remark, session.seq)


def _legacy_act(exchange: Exchange) -> Message | Exchange | None:
    """The message of an exchange without a session id that can only be one of a session; a DELETE itself."""
    if exchange.method == "DELETE":
        return exchange
    if exchange.method != "POST" or not exchange.messages:
        return None
    outside = any(
        each.era == "modern" or each.method in _OUTSIDE or each.rpc == "invalid" for each in exchange.messages
    )
    return None if outside else exchange.messages[0]


# Methods that come outside of a session, or that find out which era the server speaks.
_OUTSIDE = frozenset({"initialize", "server/discover"})


def _open_session(life: Life, at: float) -> Session | None:
    """The newest session over HTTP that is open, and whose id the client had at a time."""
    had = (each for each in life.sessions.values() if each.transport == "http" and each.had is not None)
    return next((each for each in reversed([*had]) if each.closed is None and (each.had or at) < at), None)
