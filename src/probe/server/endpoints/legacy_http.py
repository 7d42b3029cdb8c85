"""Streamable HTTP of revisions with sessions: POST brings messages, GET reads a stream, DELETE ends the session."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...core.call import Cause
from ...core.inbound import check_get, check_version
from ...core.replay import EvictedError
from ...engine.engine import Engine
from ...engine.messages import (
    Received,
    read_batch,
    read_id,
    read_initialize,
    read_message,
    record_received,
    refused_message,
)
from ...engine.sessions import Session
from ...engine.streams.reading import Reading
from ...engine.streams.stream import Stream, answer
from ...wire.errors import McpError, Refusal, Rejection
from ...wire.jsonrpc import Request, error_response, result_response
from ...wire.revisions import V2025_11_25
from .asgi import read_unused_body
from .event_stream import EventStream, Rest, event_position
from .exchange import JSON_HEADERS, HttpExchange, asked_selection, not_allowed

SESSION_HEADER = "mcp-session-id"


class LegacyHttp:
    """The legacy side of the endpoint of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._settings = engine.settings

    async def post(self, exchange: HttpExchange, value: Any, body: bytes) -> Rest | None:
        """Serve one POST; `body` was parsed to `value`. The caller awaits the result. Raises `Rejection`."""
        engine, limits, selection = self._engine, self._settings.limits, self._settings.tools
        found = self._find(exchange)
        question = None if found is None else partial(engine.legacy.question, found)
        recorders = record_received(exchange.recorder, value, body, limits, question)
        exchange.message = recorders[0]
        if exchange.query:
            selection = asked_selection(exchange.query, engine.selection, read_id(value, limits))
        check_version(exchange.head)
        if found is None and exchange.head.get(SESSION_HEADER) is None:
            first = read_initialize(value, len(body), limits)
            if first is not None:
                await self._initialize(exchange, first, selection)
                return None
        try:
            single = None if isinstance(value, list) else [read_message(value, limits)]
            session = self._checked(exchange, found, value)
            messages = single or read_batch(value, session.machine.revision, limits, recorders[0])
        except Rejection as rejection:
            if found is not None:
                # They may be answers to this server's requests, and their client believes that they were delivered.
                contexts = [exchange.context(recorder) for recorder in recorders]
                engine.legacy.refused(found, value, rejection.reason, contexts)
            raise
        if engine.draining:
            engine.refuse_while_draining(messages, read_id(value, limits))
        received = [
            Received(message, exchange.context(recorder)) for message, recorder in zip(messages, recorders, strict=True)
        ]
        return await self._answer(exchange, session, received, batch=single is None)

    def get(self, exchange: HttpExchange) -> Rest:
        """Begin to serve one GET: a standalone stream, or the rest of another stream. Raises `Rejection`."""
        check_get(exchange.head)
        if exchange.head.get(SESSION_HEADER) is None:
            raise not_allowed("GET without a session", b"POST")
        check_version(exchange.head)
        session = self._checked(exchange, self._find(exchange))
        self._engine.refuse_while_draining()
        last = exchange.head.get("last-event-id")
        if last is None:
            stream = session.open_standalone(exchange.recorder)
            self._engine.legacy.listening(session)
            return self._reads(exchange, session, stream, stream.replay.last)
        return self._reads(exchange, session, *self._resumed(session, last))

    async def delete(self, exchange: HttpExchange) -> None:
        """Serve one complete DELETE, which ends the session. Raises `Rejection` and `ClientGoneError`."""
        if exchange.head.get(SESSION_HEADER) is None:
            raise not_allowed("DELETE without a session", b"POST")
        check_version(exchange.head)
        if not exchange.has_body:
            await read_unused_body(self._engine.services, exchange.holder, exchange.receive)
        session = self._checked(exchange, self._find(exchange))
        session.end(Cause.SESSION_END, "deleted", exchange.recorder)
        await exchange.respond(204)

    async def _answer(
        self, exchange: HttpExchange, session: Session, received: Sequence[Received], *, batch: bool
    ) -> Rest | None:
        reading = Reading(exchange.recorder)
        try:
            answers = self._engine.legacy.receive(session, received, reading)
        except Rejection as rejection:
            exchange.message = refused_message(received, rejection)
            raise
        if answers is None:
            return partial(self._write, exchange, session, reading)
        if answers:
            # For a notification: "If the server cannot accept the input, it MUST return an HTTP error status code".
            refused = not batch and not isinstance(received[0].message, Request)
            joined = b"[" + b",".join(message.body for message in answers) + b"]" if batch else None
            await exchange.answer(400 if refused else 200, answers, body=joined)
        else:
            await exchange.respond(202)
        return None

    async def _initialize(self, exchange: HttpExchange, request: Request, selection: str) -> None:
        self._engine.refuse_while_draining([request], request.id)
        headers = list(JSON_HEADERS)
        context = exchange.context()
        try:
            session, result = self._engine.initialize(request, selection, context)
        except McpError as error:
            value = error_response(request.id, error.body())
        else:
            exchange.belong_to(session.label)
            headers.append((b"mcp-session-id", session.id.encode()))
            value = result_response(request.id, result)
        await exchange.answer(200, [answer(context.recorder, value)], headers)

    def _find(self, exchange: HttpExchange) -> Session | None:
        given = exchange.head.get(SESSION_HEADER)
        session = None if given is None else self._engine.sessions.find(given)
        if session is not None:
            exchange.belong_to(session.label)
        return session

    def _checked(self, exchange: HttpExchange, session: Session | None, value: Any = None) -> Session:
        """Require the session of the request; `value` is its parsed body.

        Raises `Rejection` 400 without a session header and 404 for an unknown session.
        """
        if session is None:
            why = "Session not found: it has ended or never existed; initialize again"
            refusal = Refusal.UNKNOWN_SESSION
            if exchange.head.get(SESSION_HEADER) is None:
                why, refusal = "Bad Request: the Mcp-Session-Id header is required", Refusal.MISSING_SESSION
            raise Rejection(refusal, why, read_id(value, self._settings.limits))
        version = exchange.head.get("mcp-protocol-version")
        if version not in (None, session.machine.revision):
            clause = "2025-11-25 basic/transports, Protocol Version Header"
            detail = f"{version} instead of {session.machine.revision}"
            exchange.context().misuse("another protocol version", clause, detail)
        return session

    def _resumed(self, session: Session, last_event_id: str) -> tuple[Stream, int]:
        """The stream and the cursor to resume from. Raises `Rejection`, so that lost messages are never hidden."""
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
            # Official SDKs reconnect after a stream that ends without its response, even if they have cancelled the
            # request. With an empty stream here they would reconnect for ever.
            raise Rejection(Refusal.NOTHING_FOLLOWS, "Nothing follows Last-Event-ID: its request was cancelled")
        stream.acknowledge(place[1])
        return stream, place[1]

    def _reads(self, exchange: HttpExchange, session: Session, stream: Stream, cursor: int) -> Rest:
        reading = Reading(exchange.recorder)
        reading.add(stream, cursor)
        return partial(self._write, exchange, session, reading)

    async def _write(self, exchange: HttpExchange, session: Session, reading: Reading) -> None:
        settings, track = self._settings, reading.first
        assert track is not None, "an event stream carries at least one stream"
        writer = EventStream(
            reading,
            retry_ms=max(settings.sse_retry_ms, reading.retry_ms),
            keep_alive_s=settings.keep_alive_s,
            primes=session.machine.revision >= V2025_11_25,
        )
        session.machine.hold()
        session.reader_attached()
        try:
            await exchange.start_events(track.stream)
            await writer.run(exchange.send, exchange.receive)
        finally:
            reading.close("the connection is gone")
            session.machine.release(self._engine.clock.now())
            exchange.close(writer.ended_by, writer.written)
