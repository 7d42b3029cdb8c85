"""Streamable HTTP of revisions with sessions: POST brings messages, GET reads a stream, DELETE ends the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.call import Cause
from ..core.inbound import check_get, check_version
from ..core.replay import EvictedError
from ..engine.engine import Engine
from ..engine.legacy.dispatch import Accepted, Answered
from ..engine.sessions import Session
from ..engine.streams import Stream
from ..observe.events import HttpClosed
from ..wire.errors import McpError, Refusal, Rejection, busy
from ..wire.jsonrpc import Message, Request, RequestId, error_response, result_response
from ..wire.revisions import V2025_03_26, V2025_11_25
from .event_stream import EventStream, event_position
from .exchange import JSON_HEADERS, Exchange, not_allowed
from .messages import read_id, read_message

SESSION_HEADER = "mcp-session-id"


class LegacyHttp:
    """The legacy side of the endpoint of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._settings = engine.settings

    async def post(self, exchange: Exchange, value: Any, selection: str, size: int) -> None:
        """Serve one POST; `value` is its body of `size` bytes. Raises `Rejection`."""
        check_version(exchange.head)
        first = self._initialize_request(value)
        if first is not None and exchange.head.get(SESSION_HEADER) is None:
            self._check_initialize_size(size, first)
            await self._initialize(exchange, first, selection)
            return
        single = None if isinstance(value, list) else [self._message(value)]
        session = self._session(exchange, read_id(value, self._settings.limits))
        messages = single or self._batch(value, session)
        self._refuse_while_draining(messages)
        await self._answer(exchange, session, messages, batch=single is None)

    async def get(self, exchange: Exchange) -> None:
        """Serve one GET: a standalone stream, or the rest of another. Raises `Rejection`."""
        check_get(exchange.head)
        if exchange.head.get(SESSION_HEADER) is None:
            raise not_allowed("GET without a session", b"POST")
        check_version(exchange.head)
        session = self._session(exchange)
        self._refuse_while_draining(None)
        last = exchange.head.get("last-event-id")
        if last is None:
            stream = session.open_standalone()
            self._engine.legacy.listening(session)
            await self._write_stream(exchange, session, stream, stream.replay.last)
        else:
            await self._write_stream(exchange, session, *self._resumed(session, last))

    async def delete(self, exchange: Exchange) -> None:
        """Serve one DELETE: the end of the session. Raises `Rejection`."""
        if exchange.head.get(SESSION_HEADER) is None:
            raise not_allowed("DELETE without a session", b"POST")
        check_version(exchange.head)
        session = self._session(exchange)
        session.end(Cause.SESSION_END, "deleted")
        await exchange.respond(204)

    def _message(self, value: Any) -> Message:
        return read_message(value, self._settings.limits)

    def _check_initialize_size(self, size: int, request: Request) -> None:
        most = self._settings.limits.max_initialize_bytes
        if size > most:
            why = f"initialize is larger than {most} bytes (max_initialize_bytes)"
            raise Rejection(Refusal.BODY_TOO_LARGE, why, id=request.id)

    async def _answer(self, exchange: Exchange, session: Session, messages: Sequence[Message], *, batch: bool) -> None:
        answer = self._engine.legacy.receive(session, messages, exchange.number)
        if isinstance(answer, Accepted):
            await exchange.respond(202)
        elif isinstance(answer, Answered):
            joined = b"[" + b",".join(answer.bodies) + b"]" if batch else answer.bodies[0]
            await exchange.answer(200, joined, messages=len(answer.bodies))
            for call in answer.calls:
                call.answer_delivered()
        else:
            await self._write_stream(exchange, session, answer.stream, 0)

    async def _initialize(self, exchange: Exchange, request: Request, selection: str) -> None:
        self._refuse_while_draining([request])
        headers = list(JSON_HEADERS)
        try:
            session, result = self._engine.initialize(request, selection, exchange.origin)
        except McpError as error:
            value = error_response(request.id, error.body())
        else:
            exchange.session = session.label
            headers.append((b"mcp-session-id", session.id.encode()))
            value = result_response(request.id, result)
        answer = self._engine.outbox.answer(exchange.number, exchange.session, value)
        await exchange.answer(200, answer, headers)

    def _session(self, exchange: Exchange, id: RequestId | None = None) -> Session:
        """The session of the request. Raises `Rejection` 400 without a header and 404 for one that does not exist.

        `id` is that of the message, where there is one that can be echoed.
        """
        given = exchange.head.get(SESSION_HEADER)
        if given is None:
            raise Rejection(Refusal.MISSING_SESSION, "Bad Request: the Mcp-Session-Id header is required", id)
        session = self._engine.sessions.find(given)
        if session is None:
            raise Rejection(
                Refusal.UNKNOWN_SESSION, "Session not found: it has ended or never existed; initialize again", id
            )
        exchange.session = session.label
        version = exchange.head.get("mcp-protocol-version")
        if version not in (None, session.machine.revision):
            clause = "2025-11-25 basic/transports, Protocol Version Header"
            session.misuse("another protocol version", clause, f"{version} instead of {session.machine.revision}")
        return session

    def _batch(self, batch: list[Any], session: Session) -> list[Message]:
        """The messages of a batch. Raises `Rejection`."""
        self._check_batch(batch, session)
        return [self._message(item) for item in batch]

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
            raise busy("The server is shutting down", 5)

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

    async def _write_stream(self, exchange: Exchange, session: Session, stream: Stream, cursor: int) -> None:
        settings = self._settings
        writer = EventStream(
            stream,
            cursor,
            exchange.number,
            retry_ms=settings.sse_retry_ms,
            keep_alive_s=settings.keep_alive_s,
            primes=session.machine.revision >= V2025_11_25,
        )
        reader = stream.attach(exchange.number)
        session.machine.hold()
        session.reader_attached()
        try:
            await exchange.start_events(stream.id)
            await writer.run(reader, exchange.receive, exchange.send)
        finally:
            stream.detach(reader)
            session.machine.release(self._engine.clock.now())
            exchange.log.append(
                HttpClosed(exchange.number, session.label, stream.id, writer.ended_by, writer.written)
            )
