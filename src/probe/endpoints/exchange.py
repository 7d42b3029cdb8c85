"""One HTTP request on its way to its response, and what the event log learns of it."""

from __future__ import annotations

from ..core.addresses import client_key, endpoint
from ..core.inbound import HttpHead
from ..engine.outbox import Outbox
from ..observe import redaction
from ..observe.events import HttpClosed, HttpRequest, HttpResponse, MessagesDelivered
from ..observe.log import EventLog
from ..wire.errors import Refusal, Rejection
from ..wire.jsonrpc import Json
from .asgi import Headers, Receive, Scope, Send, respond, start
from .problem_details import MEDIA, RefusedError, refuse
from .rooms import Unsent

JSON_HEADERS: Headers = ((b"content-type", b"application/json"),)
# 2026-07-28 basic/transports/streamable-http: servers SHOULD include X-Accel-Buffering, which "instructs reverse
# proxies to disable response buffering"; it helps the legacy era as much.
EVENT_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Exchange:
    """One HTTP request with its response.

    `session` is the label of its session or modern client, once that is known. `address` is the client's, without its
    port, and `holder` by what its share of limits counts, if it does. `client` is the address with the port, as far as
    that is known; `peer` is the same of a proxy that speaks for the client, None where there is none. `origin` is
    scheme and authority under which the client reaches this server, as `public_url` says or else as the request was
    addressed.
    """

    def __init__(
        self,
        number: int,
        scope: Scope,
        receive: Receive,
        send: Send,
        log: EventLog,
        unsent: Unsent,
        outbox: Outbox,
        public_url: str,
    ) -> None:
        self.number = number
        self.head = HttpHead(scope["method"], [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]])
        self.query = scope["query_string"].decode("latin-1")
        self.receive = receive
        self.send = send
        self.session: str | None = None
        self.origin = public_url.rstrip("/") or f"{scope['scheme']}://{self.head.all('host')}"
        self.log = log
        self._unsent = unsent
        self._outbox = outbox
        host, port = scope.get("client") or ("", None)
        self.address = str(host)
        self.holder = client_key(self.address)
        self.client = endpoint(self.address, port)
        self.peer = endpoint(*scope["peer"]) if "peer" in scope else None
        self._stream: str | None = None
        self._over = False
        self._record(scope)

    async def respond(self, status: int, headers: Headers = (), body: bytes = b"", stream: str | None = None) -> None:
        """Send a whole response; `stream` is the one whose only message it carries.

        Returns when the socket has taken all of it, and raises `OSError` when it will not, `Rejection` when too much
        else waits to be taken.
        """
        with self._unsent.holding(len(body), self.holder):
            self._head(status, "application/json" if headers else "", stream)
            await respond(self.send, status, headers, body)
        self._over = True

    async def answer(self, status: int, body: bytes, headers: Headers = JSON_HEADERS, messages: int = 1) -> None:
        """Send JSON-RPC messages as a whole response; they are delivered then."""
        await self.respond(status, headers, body)
        self._delivered(messages)

    async def reject(self, rejection: Rejection, body: Json | None = None) -> None:
        """Send the response that says why the request is refused; `body` stands in for the rejection's own."""
        status = rejection.refusal.status
        message = self._outbox.answer(self.number, self.session, body or rejection.body())
        self._head(status, "application/json", None, rejection.message)
        await respond(self.send, status, [*JSON_HEADERS, *rejection.headers], message)
        self._delivered(1)
        self._over = True

    async def refuse(self, refused: RefusedError) -> None:
        """Send the problem that says why the request is refused."""
        self._head(refused.status, MEDIA, None, str(refused))
        await refuse(self.send, self.head, refused)
        self._over = True

    async def start_events(self, stream: str) -> None:
        """Send the head of an event stream, whose writer records its end."""
        self._head(200, "text/event-stream", stream)
        self._over = True
        await start(self.send, 200, EVENT_HEADERS)

    def close(self, by: str) -> None:
        """Record an end without a whole response; `by` says whose doing it was."""
        if not self._over:
            self.log.append(HttpClosed(self.number, self.session, self._stream, by, 0))
            self._over = True

    def _delivered(self, messages: int) -> None:
        self.log.append(MessagesDelivered(self.number, self.session, None, 1, messages))

    def _head(self, status: int, content_type: str, stream: str | None, problem: str | None = None) -> None:
        self.log.append(HttpResponse(self.number, status, content_type, self.session, stream, problem))
        self._stream = stream

    def _record(self, scope: Scope) -> None:
        self.log.append(
            HttpRequest(
                exchange=self.number,
                method=scope["method"],
                path=scope["path"],
                query=redaction.query(self.query),
                http_version=scope["http_version"],
                client=self.client,
                headers=redaction.headers(scope["headers"]),
                peer=self.peer,
            )
        )


def not_allowed(what: str, allow: bytes) -> Rejection:
    """405."""
    return Rejection(Refusal.METHOD_NOT_ALLOWED, f"Method Not Allowed: {what}", headers=((b"allow", allow),))
