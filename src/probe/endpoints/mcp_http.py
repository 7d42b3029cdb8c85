"""`/mcp`: Streamable HTTP of the legacy era, as a plain ASGI callable.

POST brings messages, GET reads a stream, DELETE ends the session. Each request is one exchange in the event log.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from urllib.parse import parse_qs

import trio

from ..core.call import Cause
from ..core.inbound import HostPolicy, HttpHead, check_get, check_post, check_version
from ..core.replay import EvictedError
from ..engine.catalogue import UnknownSelectionError
from ..engine.engine import Engine
from ..engine.legacy.dispatch import Accepted, Answered
from ..engine.outbox import stored
from ..engine.sessions import Session
from ..engine.streams import Stream
from ..observe import redaction
from ..observe.events import HttpClosed, HttpRequest, HttpResponse, MessageReceived, MessagesDelivered
from ..wire.errors import McpError, Refusal, Rejection
from ..wire.jsonrpc import (
    MalformedError,
    Message,
    Request,
    RequestId,
    classify,
    encode,
    error_response,
    id_length,
    parse,
    result_response,
)
from ..wire.revisions import V2025_03_26
from .asgi import ClientGoneError, Headers, Receive, Scope, Send, read_body, respond, start
from .event_stream import EventStream, event_position

_JSON_HEADERS: Headers = ((b"content-type", b"application/json"),)
_EVENT_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_SESSION_HEADER = "mcp-session-id"


class _Exchange:
    """One HTTP request on its way to its response."""

    def __init__(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        self.number = number
        self.head = HttpHead(scope["method"], [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]])
        self.query = scope["query_string"].decode("latin-1")
        self.receive = receive
        self.send = send
        self.session: Session | None = None

    @property
    def label(self) -> str | None:
        return None if self.session is None else self.session.label


class McpHttp:
    """The endpoint of one engine. `wait_idle` tells when no response is being written any more."""

    def __init__(self, engine: Engine) -> None:
        settings = engine.settings
        self._engine = engine
        self._settings = settings
        self._log = engine.log
        self._policy = HostPolicy.of(
            settings.host, settings.allowed_hosts.split(","), settings.allowed_origins.split(",")
        )
        self._numbers = count(1)
        self._open = 0
        self._closed = trio.lowlevel.ParkingLot()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        exchange = _Exchange(next(self._numbers), scope, receive, send)
        self._record_request(exchange, scope)
        self._open += 1
        try:
            await self._serve(exchange)
        except Rejection as rejection:
            await self._reject(exchange, rejection)
        except ClientGoneError:
            pass
        finally:
            self._open -= 1
            self._closed.unpark_all()

    async def wait_idle(self) -> None:
        """Wait until no exchange is open."""
        while self._open:
            await self._closed.park()

    async def _serve(self, exchange: _Exchange) -> None:
        head = exchange.head
        self._policy.check(head)
        match head.method:
            case "POST":
                await self._post(exchange)
            case "GET":
                await self._get(exchange)
            case "DELETE":
                await self._delete(exchange)
            case method:
                raise _not_allowed(method, b"POST, GET, DELETE")

    async def _post(self, exchange: _Exchange) -> None:
        check_post(exchange.head)
        selection = self._selection(exchange)
        self._check_declared_length(exchange.head)
        body = await read_body(
            exchange.receive,
            max_bytes=self._settings.limits.max_body_bytes,
            timeout_s=self._settings.idle_connection_s,
        )
        value = self._parse(exchange, body)
        check_version(exchange.head)
        first = self._initialize_request(value)
        if first is not None and exchange.head.get(_SESSION_HEADER) is None:
            self._check_initialize_size(body, first)
            await self._initialize(exchange, first, selection)
            return
        single = None if isinstance(value, list) else [self._message(value)]
        session = exchange.session = self._session(exchange)
        messages = single or self._batch(value, session)
        self._refuse_while_draining(messages)
        await self._answer(exchange, session, messages, batch=single is None)

    def _check_declared_length(self, head: HttpHead) -> None:
        most, declared = self._settings.limits.max_body_bytes, head.get("content-length") or "0"
        # What is only somewhat too large is read and then refused, so that its sender is there to hear the answer.
        if declared.isdecimal() and len(declared) < 20 and int(declared) > 2 * most:
            why = f"The request body is larger than {most} bytes (max_body_bytes)"
            raise Rejection(Refusal.BODY_TOO_LARGE, why)

    def _check_initialize_size(self, body: bytes, request: Request) -> None:
        most = self._settings.limits.max_initialize_bytes
        if len(body) > most:
            why = f"initialize is larger than {most} bytes (max_initialize_bytes)"
            raise Rejection(Refusal.BODY_TOO_LARGE, why, id=request.id)

    async def _answer(self, exchange: _Exchange, session: Session, messages: Sequence[Message], *, batch: bool) -> None:
        answer = self._engine.legacy.receive(session, messages)
        if isinstance(answer, Accepted):
            await self._respond(exchange, 202, (), b"")
        elif isinstance(answer, Answered):
            joined = b"[" + b",".join(answer.bodies) + b"]" if batch else answer.bodies[0]
            await self._respond(exchange, 200, _JSON_HEADERS, joined)
            self._log.append(MessagesDelivered(exchange.number, session.label, None, 1, len(answer.bodies)))
        else:
            await self._write_stream(exchange, session, answer.stream, 0)

    async def _initialize(self, exchange: _Exchange, request: Request, selection: str) -> None:
        self._refuse_while_draining([request])
        headers = list(_JSON_HEADERS)
        try:
            session, result = self._engine.initialize(request, selection)
        except McpError as error:
            value = error_response(request.id, error.body())
        else:
            exchange.session = session
            headers.append((b"mcp-session-id", session.id.encode()))
            value = result_response(request.id, result)
        await self._respond(exchange, 200, headers, self._engine.outbox.answer(exchange.label, value))
        self._log.append(MessagesDelivered(exchange.number, exchange.label, None, 1, 1))

    async def _get(self, exchange: _Exchange) -> None:
        check_get(exchange.head)
        if exchange.head.get(_SESSION_HEADER) is None:
            raise _not_allowed("GET without a session", b"POST")
        check_version(exchange.head)
        session = exchange.session = self._session(exchange)
        self._refuse_while_draining(None)
        last = exchange.head.get("last-event-id")
        if last is None:
            stream = session.open_standalone()
            self._engine.legacy.listening(session)
            await self._write_stream(exchange, session, stream, stream.replay.last)
        else:
            await self._write_stream(exchange, session, *self._resumed(session, last))

    async def _delete(self, exchange: _Exchange) -> None:
        if exchange.head.get(_SESSION_HEADER) is None:
            raise _not_allowed("DELETE without a session", b"POST")
        check_version(exchange.head)
        session = exchange.session = self._session(exchange)
        session.end(Cause.SESSION_END, "deleted")
        await self._respond(exchange, 204, (), b"")

    def _selection(self, exchange: _Exchange) -> str:
        """The `?tools=` of the URL, else the server's own. Raises `Rejection` for an unknown name."""
        asked = parse_qs(exchange.query, keep_blank_values=True).get("tools")
        selection = self._settings.tools if asked is None else ",".join(asked)
        try:
            self._engine.check_selection(selection)
        except UnknownSelectionError as error:
            raise Rejection(Refusal.UNKNOWN_TOOLS, f"Bad Request: {error}") from None
        return selection

    def _parse(self, exchange: _Exchange, body: bytes) -> Any:
        """The JSON of the body, recorded as received. Raises `Rejection`."""
        try:
            value = parse(body, max_depth=self._settings.limits.max_json_depth)
        except MalformedError as error:
            raise Rejection(Refusal.PARSE_ERROR, str(error)) from None
        given = exchange.head.get(_SESSION_HEADER)
        known = None if given is None else self._engine.sessions.find(given)
        label = None if known is None else known.label
        self._log.append(MessageReceived(exchange.number, label, stored(value, body)))
        return value

    def _session(self, exchange: _Exchange) -> Session:
        """The session of the request. Raises `Rejection` 400 without a header and 404 for one that does not exist."""
        given = exchange.head.get(_SESSION_HEADER)
        if given is None:
            raise Rejection(Refusal.MISSING_SESSION, "Bad Request: the Mcp-Session-Id header is required")
        session = self._engine.sessions.find(given)
        if session is None:
            raise Rejection(
                Refusal.UNKNOWN_SESSION, "Session not found: it has ended or never existed; initialize again"
            )
        version = exchange.head.get("mcp-protocol-version")
        if version not in (None, session.machine.revision):
            clause = "2025-11-25 basic/transports, Protocol Version Header"
            session.misuse("another protocol version", clause, f"{version} instead of {session.machine.revision}")
        return session

    def _batch(self, batch: list[Any], session: Session) -> list[Message]:
        """The messages of a batch. Raises `Rejection`."""
        self._check_batch(batch, session)
        return [self._message(item) for item in batch]

    def _message(self, value: Any) -> Message:
        """One message. Raises `Rejection` for a value that is none, or whose id is too long to keep."""
        try:
            message = classify(value)
        except MalformedError as error:
            raise Rejection(Refusal.INVALID_REQUEST, str(error), id=self._short(error.id)) from None
        most = self._settings.limits.max_id_length
        if isinstance(message, Request) and self._short(message.id) is None:
            raise Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: the id is longer than {most} (max_id_length)")
        return message

    def _short(self, id: RequestId | None) -> RequestId | None:
        """An id that can be kept and echoed; None for one that is too long."""
        return id if id is not None and id_length(id) <= self._settings.limits.max_id_length else None

    def _initialize_request(self, value: Any) -> Request | None:
        """The `initialize` request of a POST that holds just that; None for anything else, well formed or not."""
        if not isinstance(value, dict) or value.get("method") != "initialize" or "id" not in value:
            return None
        message = self._message(value)
        return message if isinstance(message, Request) else None

    def _check_batch(self, batch: list[Any], session: Session) -> None:
        revision, most = session.machine.revision, self._settings.limits.max_batch
        if revision != V2025_03_26:
            why = f"revision {revision} has no batches, one message per POST"
        elif not batch:
            why = "an empty batch"
        elif len(batch) > most:
            why = f"a batch of more than {most} messages (max_batch)"
        elif any(isinstance(item, dict) and item.get("method") == "initialize" for item in batch):
            why = "initialize must not be part of a batch"
        else:
            return
        raise Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: {why}")

    def _refuse_while_draining(self, messages: Sequence[Message] | None) -> None:
        """New work and new streams are refused; notifications and answers still reach the work that runs."""
        if self._engine.draining and (messages is None or any(isinstance(item, Request) for item in messages)):
            retry = ((b"retry-after", b"5"),)
            raise Rejection(Refusal.BUSY, "The server is shutting down", headers=retry)

    def _resumed(self, session: Session, last_event_id: str) -> tuple[Stream, int]:
        """The stream and the cursor to go on from. Raises `Rejection`: silence about a loss would be worse."""
        place = event_position(last_event_id)
        stream = None if place is None else session.find_stream(place[0])
        if place is None or (stream is None and not session.had_stream(place[0])):
            raise Rejection(Refusal.UNKNOWN_EVENT_ID, "Last-Event-ID names no event of this session")
        if stream is None:
            raise Rejection(Refusal.EVENTS_GONE, "The stream of this Last-Event-ID is no longer kept")
        try:
            stream.replay.after(place[1])
        except IndexError:
            raise Rejection(Refusal.UNKNOWN_EVENT_ID, "Last-Event-ID names no event of this session") from None
        except EvictedError as error:
            raise Rejection(Refusal.EVENTS_GONE, f"Cannot resume without loss: {error}") from None
        if stream.unanswered and stream.replay.closed and place[1] == stream.replay.last:
            # Official SDKs take the end of a stream without its response for a lost connection, also after they have
            # cancelled the request. An empty stream would be taken so again: they would come back for ever.
            raise Rejection(Refusal.EVENTS_GONE, "Nothing follows Last-Event-ID: its request was cancelled")
        return stream, place[1]

    async def _write_stream(self, exchange: _Exchange, session: Session, stream: Stream, cursor: int) -> None:
        settings = self._settings
        writer = EventStream(
            stream, cursor, exchange.number, retry_ms=settings.sse_retry_ms, keep_alive_s=settings.keep_alive_s
        )
        reader = stream.attach(exchange.number)
        session.machine.hold()
        session.reader_attached()
        try:
            self._record_response(exchange, 200, "text/event-stream", stream.id)
            await start(exchange.send, 200, _EVENT_HEADERS)
            await writer.run(reader, exchange.receive, exchange.send)
        finally:
            stream.detach(reader)
            session.machine.release(self._engine.clock.now())
            self._log.append(HttpClosed(exchange.number, session.label, stream.id, writer.ended_by, writer.written))

    async def _respond(self, exchange: _Exchange, status: int, headers: Headers, body: bytes) -> None:
        content_type = "application/json" if headers else ""
        self._record_response(exchange, status, content_type, None)
        await respond(exchange.send, status, headers, body)

    async def _reject(self, exchange: _Exchange, rejection: Rejection) -> None:
        self._record_response(exchange, rejection.refusal.status, "application/json", None, rejection.message)
        headers = [*_JSON_HEADERS, *rejection.headers]
        await respond(exchange.send, rejection.refusal.status, headers, encode(rejection.body()))

    def _record_request(self, exchange: _Exchange, scope: Scope) -> None:
        host, port = scope.get("client") or ("", 0)
        self._log.append(
            HttpRequest(
                exchange=exchange.number,
                method=scope["method"],
                path=scope["path"],
                query=redaction.query(exchange.query),
                http_version=scope["http_version"],
                client=f"{host}:{port}",
                headers=redaction.headers(scope["headers"]),
            )
        )

    def _record_response(
        self, exchange: _Exchange, status: int, content_type: str, stream: str | None, problem: str | None = None
    ) -> None:
        self._log.append(HttpResponse(exchange.number, status, content_type, exchange.label, stream, problem))


def _not_allowed(what: str, allow: bytes) -> Rejection:
    return Rejection(Refusal.METHOD_NOT_ALLOWED, f"Method Not Allowed: {what}", headers=((b"allow", allow),))
