"""Streamable HTTP of revisions without sessions: each POST is one request, which lives as long as its connection.

    the client closes before the answer    the call is cancelled, no more is sent
    the answer comes first                 JSON if it is the only message, else the last event of the stream

2026-07-28 basic/transports/streamable-http: the server "MUST return either `Content-Type: application/json` … or
`Content-Type: text/event-stream`". A stream begins with the first message before the answer, or after one keep-alive
interval, so that a proxy or client does not close a silent connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import trio

from ...core.call import Cause
from ...engine.engine import Engine
from ...engine.messages import read_id, read_message, record_received
from ...engine.modern.dispatch import AnsweredAtOnce, Started
from ...engine.streams.reading import Reading
from ...engine.streams.stream import Stream
from ...wire.errors import Refusal, Rejection
from ...wire.jsonrpc import Notification, Request, Response
from ...wire.revisions import V2026_07_28
from ...wire.v2026.codec import modern_error
from .asgi import Headers, disconnected_by, watch
from .event_stream import EventStream, Rest
from .exchange import JSON_HEADERS, HttpExchange, asked_selection

RETRY_AFTER = (b"retry-after", b"5")


class ModernHttp:
    """The endpoint of one engine for these revisions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._settings = engine.settings

    async def post(self, exchange: HttpExchange, value: Any, body: bytes) -> Rest | None:
        """Serve one POST; `body` was parsed to `value`. The caller awaits the result.

        Raises `Rejection` for unknown `?tools=`.
        """
        engine, limits, selection = self._engine, self._settings.limits, self._settings.tools
        exchange.belong_to(engine.clients.label(exchange.recorder, exchange.address, value))
        exchange.message = record_received(exchange.recorder, value, body, limits)[0]
        if exchange.query:
            selection = asked_selection(exchange.query, engine.selection, read_id(value, limits))
        try:
            return await self._serve(exchange, value, selection)
        except Rejection as rejection:
            await _reject(exchange, rejection)
            return None

    async def _serve(self, exchange: HttpExchange, value: Any, selection: str) -> Rest | None:
        if isinstance(value, list):
            why = f"Invalid Request: revision {V2026_07_28} has no batches, one message per POST"
            raise Rejection(Refusal.INVALID_REQUEST, why)
        match read_message(value, self._settings.limits):
            case Request() as request:
                return await self._request(exchange, request, selection)
            case Notification() as notification:
                self._engine.modern.notified(notification, exchange.context(), None)
                await exchange.respond(202)
                return None
            case Response():
                # "The client MUST NOT send JSON-RPC responses": this server sends no requests in this era.
                raise Rejection(Refusal.INVALID_REQUEST, "Invalid Request: this server sent no request to answer")

    async def _request(self, exchange: HttpExchange, request: Request, selection: str) -> Rest | None:
        inbound, offer = self._engine.read_modern(exchange.head, request, selection)
        answer = self._engine.modern.receive(request, inbound, offer, exchange.context())
        if isinstance(answer, AnsweredAtOnce):
            await exchange.answer(answer.status, [answer.message], _headers(answer.status))
            return None
        return _RunningResponse(exchange, answer, self._settings.keep_alive_s).run


async def _reject(exchange: HttpExchange, rejection: Rejection) -> None:
    body = rejection.body()
    await exchange.reject(rejection, {**body, "error": modern_error(body["error"])})


def _headers(status: int) -> Headers:
    return (*JSON_HEADERS, RETRY_AFTER) if status in (429, 503) else JSON_HEADERS


def _never() -> float:
    return inf


class _RunningResponse:
    """The response to a running request.

    run               the exchange's own task: the writer
      running.run     the call, in its own nursery and scope
    _wait_first       until the first message, or until silence begins a stream; a disconnect cancels the call
    EventStream       the same for the length of the stream
    """

    def __init__(self, exchange: HttpExchange, started: Started, keep_alive_s: float) -> None:
        self._exchange = exchange
        self._started = started
        self._keep_alive_s = keep_alive_s
        self._gone: str | None = None

    async def run(self) -> None:
        """Write the answer or the stream. If the client goes first, return when the call has ended."""
        lone = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._started.running.run)
                lone = await self._wait_first()
                if not lone and self._gone is None:
                    await self._write_events()
            if lone:
                await self._write_answer()
            elif self._gone is not None:
                self._exchange.close(self._gone)
        finally:
            self._started.release()

    async def _wait_first(self) -> bool:
        lone = False
        async with trio.open_nursery() as nursery:
            waiting = nursery.cancel_scope

            def disconnected(event: Mapping[str, Any]) -> None:
                if not waiting.cancel_called:
                    waiting.cancel()
                    self._note_gone(disconnected_by(event))

            nursery.start_soon(watch, self._exchange.receive, disconnected, _never)
            lone = await self._is_lone_answer()
            waiting.cancel()
        return lone

    def _note_gone(self, by: str) -> None:
        """Cancel the call since the client has gone. Only the first reason counts; the disconnect may come twice."""
        if self._gone is not None:
            return
        self._gone = by
        client = by == "client"
        self._cancel("the client closed the response stream" if client else f"the connection ended: {self._gone}")

    def _cancel(self, why: str) -> None:
        # ASGI servers send a disconnect after a complete response too; then the call has ended.
        call = self._started.running.call
        if not call.machine.settled:
            call.cancel(Cause.DISCONNECT, why)

    async def _is_lone_answer(self) -> bool:
        """Wait until the form of the response is known: JSON if the answer is the first message, and comes in time."""
        stream = self._started.stream
        with trio.move_on_after(self._keep_alive_s):
            while not stream.replay.last:
                await stream.wait_changed()
        # This stream forbids comments, and the head of an event stream would break its silence too.
        while not stream.replay.last and not stream.comments:
            await stream.wait_changed()
        return stream.replay.closed and stream.replay.last == 1

    async def _write_answer(self) -> None:
        """Write the answer; a disconnect could only lose the record of a delivery, so it does not stop it."""
        exchange, stream, status = self._exchange, self._started.stream, self._started.status
        try:
            await exchange.respond(status, _headers(status), stream.replay.after(0)[0], stream)
        except Rejection as full:
            await _reject(exchange, full)
            return
        stream.delivered(1, 1, exchange.recorder)

    async def _begin_events(self, stream: Stream) -> None:
        try:
            await self._exchange.start_events(stream)
        except OSError:
            # Our listener reports this by the disconnect only; other servers may raise here.
            self._gone = "client"
            self._cancel("the connection ended before the response began")

    async def _write_events(self) -> None:
        exchange, stream = self._exchange, self._started.stream
        reading = Reading(exchange.recorder)
        reading.add(stream, 0)
        writer = EventStream(
            reading,
            retry_ms=0,
            keep_alive_s=self._keep_alive_s,
            outlasts_half_close=False,
            on_gone=self._note_gone,
        )
        try:
            await self._begin_events(stream)
            if self._gone is None:
                await writer.run(exchange.send, exchange.receive)
        finally:
            exchange.close(self._gone or writer.ended_by, writer.written)
            reading.close("the connection is gone")
        if self._gone is None and not stream.replay.closed:
            self._cancel("the client read too slowly: messages were lost before it got them")
