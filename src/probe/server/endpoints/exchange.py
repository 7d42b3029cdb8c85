"""One HTTP request and its response, with their entries in the event log.

A reader of the log must see what became of each request: answered, refused, cut off, or answered by a stream for hours.
So an exchange sends and records in one place, by three rules:

1. The request is recorded before any check. A refused one is in the log, too.
2. The head of a response is recorded before it is sent, a delivery after the socket took the bytes. If the connection
   breaks between the two, the log has the response and not the delivery, which is what happened.
3. A whole response is its own end. After a stream, or without a response, `close` records `http.closed`, once: `_over`
   is set by whichever end comes first.

    respond, reject, refuse     http.request, http.response
    start_events, close         http.request, http.response, http.closed with the number of messages
    close alone                 http.request, http.closed: the client left, or this server ended

The entries form a tree by their causes. `recorder` has the `http.request` as its cause, `message` the
`message.received`. For example, a ping answered in one piece:

    12 http.request
    13 message.received    cause 12
    14 message.emitted     cause 13
    15 http.response       cause 12
    16 message.delivered   cause 14
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl

from ...core.clients import LABEL_RULE, client_key, endpoint, is_client_label
from ...engine.catalogue.catalogue import UnknownSelectionError
from ...engine.messages import RequestContext
from ...engine.services import Services
from ...engine.streams.stream import Emitted, Stream, answer, note_delivered
from ...log import redaction
from ...log.context import Context, Recorder
from ...log.events import HttpClosed, HttpRequest, HttpResponse, MessageRefused
from ...wire.errors import Refusal, Rejection
from ...wire.jsonrpc import Json, RequestId
from .asgi import (
    PROBLEM_MEDIA,
    WHOLE_BODY,
    Headers,
    Receive,
    RefusedError,
    Scope,
    Send,
    base_of,
    before_upgrade,
    read_head,
    refuse,
    respond,
    start,
)
from .event_stream import event_position

JSON_HEADERS: Headers = ((b"content-type", b"application/json"),)
# 2026-07-28 basic/transports/streamable-http: servers SHOULD include X-Accel-Buffering, which "instructs reverse
# proxies to disable response buffering". It helps in the legacy era too.
EVENT_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_SWITCHING_PROTOCOLS = 101
CONNECTION: Final = "probe.connection"
"""The ASGI extension of a listener that numbers its connections.

`scope["extensions"]["probe.connection"]` is, for example, `{"number": 7, "stream_id": 3}`: the number counts from 1,
the HTTP/2 stream is None with HTTP/1.
"""

_UNKNOWN: Final[Mapping[str, int | None]] = {"number": None, "stream_id": None}
_RECORDED = frozenset({b"retry-after", b"allow", b"www-authenticate", b"mcp-session-id"})


class HttpExchange:
    """One HTTP request with its response. The constructor records the request.

    recorder    of the exchange, caused by the `http.request`; later bound to the session or modern client
    message     the recorder of the JSON-RPC message in the body, once it is known
    holder      the key of the client's share of limits; None if it has none
    client      the client's address with the port, as far as it is known
    peer        the address and port of the proxy in front of the client; None without a proxy
    origin      the beginning of this server's page URLs: `public_url`, or else the request's own authority with the
                scheme and path prefix from a trusted proxy, such as `https://probe.example/mcp-probe`
    has_body    reading the body does not wait
    """

    def __init__(self, exchanges: EndpointExchanges, scope: Scope, receive: Receive, send: Send) -> None:
        services = exchanges.services
        self.number = next(services.exchanges)
        self.read = read = read_head(scope)
        self.head = read.head
        self.query = read.query
        self.receive = receive
        self.send = send
        self.origin = base_of(services.settings.public_url, scope, self.head.all("host"))
        self._unsent = services.unsent
        host, port = scope.get("client") or ("", None)
        self.address = str(host)
        self.holder = client_key(self.address)
        self.client = endpoint(self.address, port)
        self.peer = endpoint(*scope["peer"]) if "peer" in scope else None
        self._response: Recorder | None = None
        self._over = False
        extensions = scope.get("extensions", {})
        self.has_body = WHOLE_BODY in extensions
        carrier = extensions.get(CONNECTION, _UNKNOWN)
        connection = None if carrier["number"] is None else f"tcp{carrier['number']}"
        label = read.label
        if label is not None and not is_client_label(label):
            label = None
        recorder = Recorder(services.log, Context(connection, self.number, label))
        self.recorder = recorder.having(self._request(scope, exchanges.label, carrier["stream_id"]))
        self.message: Recorder | None = None

    def check_label(self) -> None:
        """Raise `Rejection` for a `?client=` that is not a valid label."""
        if self.read.label is not None and not is_client_label(self.read.label):
            raise Rejection(Refusal.CLIENT_LABEL, f"Bad Request: client must be {LABEL_RULE}")

    def belong_to(self, session: str | None) -> None:
        if session == self.recorder.context.session:
            return
        self.recorder = self.recorder.bind(session=session)
        if self.message is not None:
            self.message = self.message.bind(session=session)

    def context(self, message: Recorder | None = None) -> RequestContext:
        last = self.head.get("last-event-id")
        seen = None if last is None else event_position(last)
        return RequestContext(message or self.message or self.recorder, "http", self.origin, self.holder, seen)

    async def respond(
        self, status: int, headers: Headers = (), body: bytes = b"", stream: Stream | None = None
    ) -> None:
        """Send a whole response; `stream` is the stream of its only message.

        Returns when the socket has taken all of it. Raises `OSError`, and `Rejection` if too many bytes wait.
        """
        size = len(body)
        self._unsent.reserve(self.holder, self.recorder, size)
        try:
            self._head(status, "application/json" if headers else "", headers, stream)
            await respond(self.send, status, headers, body)
        finally:
            self._unsent.release(self.holder, size)
        self._over = True

    async def answer(
        self, status: int, messages: Sequence[Emitted], headers: Headers = JSON_HEADERS, body: bytes | None = None
    ) -> None:
        """Send messages as a whole response and record their delivery; `body` is the JSON around a batch."""
        await self.respond(status, headers, messages[0].body if body is None else body)
        note_delivered(messages)

    async def reject(self, rejection: Rejection, body: Json | None = None) -> None:
        """Send the response for a rejection; `body` replaces the rejection's own."""
        refusal = rejection.refusal
        if self.message is not None:
            self.message.append(MessageRefused(refusal.name, rejection.message))
        message = answer(self.message or self.recorder, body or rejection.body())
        self._head(
            refusal.status, "application/json", rejection.headers, problem=rejection.message, refusal=refusal.name
        )
        await respond(self.send, refusal.status, [*JSON_HEADERS, *rejection.headers], message.body)
        note_delivered([message])
        self._over = True

    async def refuse(self, refused: RefusedError) -> None:
        self._head(refused.status, PROBLEM_MEDIA, refused.headers, problem=str(refused))
        await refuse(self.send, self.head, refused)
        self._over = True

    async def start_events(self, stream: Stream) -> None:
        """Send the head of an event stream. The caller calls `close` at its end."""
        self._head(200, "text/event-stream", (), stream)
        await start(self.send, 200, EVENT_HEADERS)

    def close(self, by: str, messages: int = 0) -> None:
        """Record the end of an exchange, by a side, after `messages` messages of an event stream.

        Harmless when repeated, and after a whole response.
        """
        if not self._over:
            (self._response or self.recorder).append(HttpClosed(by, messages))
            self._over = True

    async def passing(self, message: MutableMapping[str, Any]) -> None:
        """The `send` for another application that responds; it records the head of the response."""
        if message["type"].endswith("http.response.start"):
            headers = message.get("headers", ())
            content_type = next((value for name, value in headers if name == b"content-type"), b"")
            self._head(message["status"], content_type.decode("latin-1"), headers)
            self._over = True
        await self.send(message)

    async def accept(self, send: Send, subprotocol: str) -> bool:
        """Continue as a WebSocket, with its `send`; False if the client has gone meanwhile."""
        try:
            await send({"type": "websocket.accept", "subprotocol": subprotocol})
        except OSError:
            self.close("client")
            return False
        self._head(_SWITCHING_PROTOCOLS, "")
        return True

    def _head(
        self,
        status: int,
        content_type: str,
        headers: Headers = (),
        stream: Stream | None = None,
        problem: str | None = None,
        refusal: str | None = None,
    ) -> None:
        told = [pair for pair in headers if pair[0] in _RECORDED]
        kept = redaction.headers(told) if told else ()
        self._response = self.recorder if stream is None else stream.recorder_of_reader(self.recorder)
        self._response.append(HttpResponse(status, content_type, problem, refusal, kept))

    def _request(self, scope: Scope, label_of: Callable[[str], str | None], stream_id: int | None) -> HttpRequest:
        read, query, hidden, ids = self.read, "", self.read.hidden, self.read.sessions
        in_query: list[str] = []
        if self.query:
            in_query = [value for _, value in parse_qsl(self.query) if label_of(value) is not None]
            query = redaction.query(self.query, in_query)
            hidden = redaction.hidden_names(read.headers, query)
        return HttpRequest(
            method=scope["method"],
            path=scope["path"],
            query=query,
            http_version=scope["http_version"],
            client=self.client,
            headers=read.headers,
            peer=self.peer,
            named=label_of(ids[0]) if ids and len(set(ids)) == 1 else None,
            session_in_query=bool(in_query),
            stream_id=stream_id,
            hidden=hidden,
        )


class EndpointExchanges:
    """The state that the exchanges of one endpoint share; `label` returns the label of a session id, or None."""

    def __init__(self, services: Services, label: Callable[[str], str | None]) -> None:
        self.services = services
        self.label = label

    def upgrade(self, scope: Scope, receive: Receive, send: Send) -> HttpExchange:
        """Record a WebSocket handshake as an HTTP request."""
        request = {**scope, "method": "GET", "scheme": "https" if scope["scheme"] == "wss" else "http"}
        return HttpExchange(self, request, receive, before_upgrade(send))


def asked_selection(query: str, select: Callable[[str | None], str], id: RequestId | None = None) -> str:
    """The selection of tools that `?tools=` asks for; without it `select(None)`, the server's own.

    Raises `Rejection` for an unknown name; `id` is the id of the request.
    """
    asked = parse_qs(query, keep_blank_values=True).get("tools") if query else None
    try:
        return select(None if asked is None else ",".join(asked))
    except UnknownSelectionError as error:
        raise Rejection(Refusal.UNKNOWN_TOOLS, f"Bad Request: {error}", id=id) from None


def not_allowed(what: str, allow: bytes) -> Rejection:
    """Refuse a method with 405; `allow` lists the methods that exist."""
    return Rejection(Refusal.METHOD_NOT_ALLOWED, f"Method Not Allowed: {what}", headers=((b"allow", allow),))
