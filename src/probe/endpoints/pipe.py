"""One connection that carries everything both ways, in both eras: a WebSocket, or standard input and output.

    run             ends when the peer has gone or the server has drained, and what belongs to the connection is over
      _write        the one writer: what answers in one piece, and the streams that the connection reads
      _stop         the server has drained
      _read         one message after the other, and no next one while the peer does not read
      a call        of the modern era; those of the legacy era belong to the session and to `DraftStreams`

The connection is the life of its legacy session and of its modern requests. It is not that of draft streams, which can
be read on from another one (product contract, section 3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import trio

from ..core.call import Cause
from ..core.modern_inbound import climb, era_of_piped
from ..engine.calls import MAX_REASON, CallScope
from ..engine.draft_streams import ToolStream, lost_error
from ..engine.engine import Engine
from ..engine.legacy.dispatch import Answered as LegacyAnswered
from ..engine.legacy.inlet import Inlet
from ..engine.modern.dispatch import Answered, Started
from ..engine.modern.incoming import Source
from ..engine.outcome import contain
from ..engine.reading import Reading
from ..engine.reading import Source as Reads
from ..engine.sessions import Session
from ..observe.events import (
    ClientMisuse,
    ConnectionClosed,
    ConnectionOpened,
    LimitReached,
    MessagesDelivered,
    essentials,
    subject,
)
from ..wire.errors import McpError, Refusal, Rejection, busy
from ..wire.jsonrpc import (
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    clip,
    error_response,
    is_id,
    result_response,
    shown_id,
)
from ..wire.revisions import V2026_07_28
from ..wire.v2026.codec import modern_error
from .messages import check_token, read_batch, read_id, read_initialize, read_json, read_message, record_received
from .wires import Closed, Wire, WireBrokenError

NORMAL, GOING_AWAY, POLICY = 1000, 1001, 1008
# RFC 6455 section 7.4.1: these say that there was none.
_NO_CODE = (1005, 1006)

# Enough to keep a socket busy; beyond it the next message is read when the peer has read some answers.
_UNREAD_BYTES = 64 * 1024
# What was answered before the peer went may still be read, as with a shell's pipe; a dead peer delays nobody.
_FLUSH_S = 2.0
# A task's handle is answered before its first status is sent: few enough to be fair, enough not to turn those round.
_SAID_PER_TURN = 16
# Held messages count so much beside their bytes: empty ones are bounded, too.
_MESSAGE_COST = 1024
# How long the reader may take to tell of a disconnect that a failed write has shown.
_WHO_S = 1.0
_TOO_SLOW = "the client reads too slowly"
_CANCELLATION = f"{V2026_07_28} basic/patterns/cancellation"

Job: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end. `client` is the address with its port, `exchange` the upgrade request, if there was one.

    `origin` is where the peer reaches this server's pages, empty when it cannot; `selection` the tools it asks for.
    """

    transport: str
    address: str
    origin: str
    selection: str
    client: str = "stdio"
    exchange: int | None = None

    @property
    def timed(self) -> bool:
        """Whether a silent peer is given up. Who started this process keeps it as long as it wants."""
        return self.transport != "stdio"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a connection ended: the close code of RFC 6455, and `client` or why the server ended it."""

    code: int
    why: str


@dataclass(frozen=True, slots=True)
class _Said:
    """One message that answers in one piece, and what to do when the peer's side has taken it."""

    body: bytes
    taken: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Running:
    """A modern request in flight, and the stream of its response as this connection reads it."""

    call: CallScope
    source: Reads


async def serve_pipe(engine: Engine, wire: Wire, peer: Peer) -> Ending:
    """Serve one connection until its peer has gone, or the server has drained. The caller closes `wire`.

    No misbehaviour of a peer raises. Cancelled, everything that belongs to the connection ends with it.
    """
    return await _Pipe(engine, wire, peer).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A message that may have to wait until the peer has read more of what was answered; `value` is its JSON.

    Or the `Rejection` of what is none.
    """

    value: Any
    message: bytes


class _Pipe:
    """One connection: its session, its modern requests in flight, and what it reads."""

    def __init__(self, engine: Engine, wire: Wire, peer: Peer) -> None:
        self._engine = engine
        self._settings = engine.settings
        self._wire = wire
        self._peer = peer
        self._exchange = next(engine.exchanges) if peer.exchange is None else peer.exchange
        self._label = f"{'i' if peer.transport == 'stdio' else 'w'}{self._exchange}"
        self._session: Session | None = None
        self._client: str | None = None
        self._heard = False
        self._calls: dict[RequestId, _Running] = {}
        self._reading = Reading(self._exchange, self._check_backlog, self._say_lost)
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._counted = 0
        self._said: deque[_Said] = deque()
        self._said_bytes = 0
        self._sent = 0
        self._broken = False
        self._writing = False
        self._written = trio.lowlevel.ParkingLot()
        self._ending: Ending | None = None
        self._listening = trio.CancelScope()
        # Each job is a modern request in flight, of which there are so many at most.
        self._inbox, self._jobs = trio.open_memory_channel[Job](self._settings.limits.max_in_flight)

    async def run(self) -> Ending:
        """Serve until the end."""
        log, peer = self._engine.log, self._peer
        log.append(ConnectionOpened(self._label, peer.transport, self._exchange, peer.client))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._stop)
                await self._serve()
                nursery.cancel_scope.cancel()
        finally:
            self._let_go("the server stopped")
            self._reading.close("the connection is gone")
            self._engine.piped_bytes -= self._counted
            ending = self._ending or Ending(GOING_AWAY, "the server stopped")
            label = self._session.label if self._session else None
            code = None if peer.transport == "stdio" or ending.code in _NO_CODE else ending.code
            log.append(ConnectionClosed(self._label, label, code, ending.why, self._sent))
        return ending

    async def _serve(self) -> None:
        """Until the connection has ended and its modern calls are over."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            async for job in self._jobs:
                nursery.start_soon(contain, job)
            with trio.move_on_after(_FLUSH_S):
                await self._wait_written()
            # A modern request waits until its answer is written, and a draft stream until nobody reads it any more.
            self._reading.close("the connection is gone")

    async def _stop(self) -> None:
        await self._engine.drained.wait()
        self._end(GOING_AWAY, "the server is shutting down")

    def _end(self, code: int, why: str) -> None:
        """The first to say so decides why the connection ends."""
        if self._ending is None:
            self._ending = Ending(code, why)
            self._listening.cancel()

    def _let_go(self, why: str) -> None:
        """What lives only as long as the connection ends. Harmless when repeated."""
        if self._session is not None:
            self._engine.streams.release(self._session)
            self._session.end(Cause.DISCONNECT, why)
        # The drain has told each request to end, and what it says then is still for the client.
        in_flight = [] if self._engine.drained.is_set() else list(self._calls.values())
        for running in in_flight:
            if not running.call.machine.settled and running.call.machine.cause is None:
                running.call.cancel(Cause.DISCONNECT, why)

    async def _read(self) -> None:
        try:
            with self._listening:
                while self._ending is None:
                    await self._read_one()
            if self._ending == Ending(NORMAL, "client"):
                # What came before the end was sent to be answered, as the peer may still read.
                with trio.move_on_after(_FLUSH_S):
                    await self._wait_held(0)
        finally:
            self._let_go("the connection ended")
            self._inbox.close()

    async def _wait_held(self, most_bytes: int) -> None:
        while self._held and self._held_bytes > most_bytes and not self._broken:
            await self._written.park()

    @property
    def _unread(self) -> int:
        """Bytes of messages that the peer has yet to take; draft streams have bounds of their own."""
        return self._said_bytes + self._reading.unread

    def _check_backlog(self) -> None:
        unread, limits = self._unread, self._settings.limits
        self._engine.piped_bytes += unread - self._counted
        self._counted = unread
        if self._ending is not None:
            return
        # One answer may be larger than all of it.
        if unread - (len(self._said[0].body) if self._said else 0) > limits.max_pipe_bytes:
            self._engine.log.append(LimitReached(self._whose, "max_pipe_bytes", limits.max_pipe_bytes))
            self._end(POLICY, _TOO_SLOW)
        elif unread > _UNREAD_BYTES and self._engine.piped_bytes > limits.max_unsent_bytes:
            self._engine.log.append(LimitReached(self._whose, "max_unsent_bytes", limits.max_unsent_bytes))
            self._end(POLICY, _TOO_SLOW)

    async def _read_one(self) -> None:
        try:
            message = await self._next()
            if message is None:
                closed = self._wire.closed or Closed(NORMAL, "client")
                self._end(closed.code or NORMAL, closed.by)
            else:
                self._accept(message)
                await self._wait_held(self._settings.limits.max_body_bytes)
        except Rejection as rejection:
            self._refuse(rejection, next(self._engine.exchanges), self._whose, modern=self._session is None)
        except WireBrokenError as broken:
            self._end(broken.code, broken.why)

    async def _next(self) -> bytes | None:
        """The next message. A peer that says nothing for too long, and waits for nothing, is given up."""
        settings = self._settings
        patience_s = settings.session_idle_s if self._heard else settings.idle_connection_s
        while True:
            with trio.move_on_after(patience_s if self._peer.timed else float("inf")):
                return await self._wire.receive()
            if not (self._calls or (self._session and self._session.calls)):
                self._end(GOING_AWAY, "idle")

    @property
    def _whose(self) -> str | None:
        return self._session.label if self._session else None

    def _accept(self, message: bytes) -> None:
        """Take a message at once if nothing answers it, else when the peer has read enough of what was answered.

        So a cancellation, or the answer to a question, is heard also from a peer that reads nothing.
        """
        self._heard = True
        try:
            value = read_json(message, self._settings.limits)
        except Rejection as rejection:
            value = rejection
        held = _Held(value, message)
        if _is_silent(value):
            self._admit_named(subject(value))
            self._take(held)
        else:
            self._held.append(held)
            self._held_bytes += len(message) + _MESSAGE_COST
            self._admit()

    def _admit(self) -> None:
        """Take what was held back, as far as there is room for answers."""
        while self._held and self._unread <= _UNREAD_BYTES:
            self._release(self._held[0])

    def _admit_named(self, id: RequestId | None) -> None:
        """A cancellation finds the request that it names, also where that had to wait."""
        named = [held for held in self._held if id is not None and _id_of(held.value) == id]
        for held in named:
            self._release(held)

    def _release(self, held: _Held) -> None:
        self._held.remove(held)
        self._held_bytes -= len(held.message) + _MESSAGE_COST
        self._take(held)

    def _take(self, held: _Held) -> None:
        """Judge, answer or start what one message holds; nothing for a peer that reads no more."""
        if self._broken:
            return
        engine, limits = self._engine, self._settings.limits
        exchange, session, value, message = next(engine.exchanges), self._session, held.value, held.message
        if isinstance(value, Rejection):
            clause = "JSON-RPC 2.0, 5.1: -32700, invalid JSON was received"
            self._misuse(exchange, self._whose, "not JSON", clause, value.message)
            self._refuse(value, exchange, self._whose, modern=session is None)
            return
        modern = era_of_piped(value, initialized=session is not None) == "modern" or self._cancels_modern(value)
        whose = self._modern_client(value) if modern else self._whose
        record_received(engine.log, exchange, whose, value, message, limits, self._label)
        try:
            if modern:
                self._modern(value, exchange, whose)
            else:
                self._legacy(value, exchange, len(message))
        except Rejection as rejection:
            self._refuse(rejection, exchange, whose, modern=modern)

    def _modern_client(self, value: Any) -> str:
        """Only a request has to say whose it is; what else comes is from the client that was heard last."""
        asks = isinstance(value, dict) and "id" in value and "method" in value
        if asks or self._client is None:
            self._client = self._engine.clients.label(self._peer.address, value, self._peer.transport)
        return self._client

    def _cancels_modern(self, value: Any) -> bool:
        """A cancellation need not say of which era it is; what it names does."""
        about = subject(value) if essentials(value)[1] == "notifications/cancelled" else None
        return about is not None and about in self._calls

    def _say_lost(self, source: Reads) -> None:
        """A call whose stream is lost under its reader is answered here: nothing else would ever tell of it."""
        stream = source.stream
        if isinstance(stream, ToolStream) and stream.machine.lost is not None and not stream.told:
            body = error_response(stream.request_id, lost_error(stream.machine.lost).body())
            exchange, whose = stream.exchange or self._exchange, stream.session
            self._say([self._engine.outbox.answer(exchange, whose, body)], exchange, whose, [])

    def _refuse(self, rejection: Rejection, exchange: int, whose: str | None, *, modern: bool) -> None:
        body = rejection.body()
        shaped = {**body, "error": modern_error(body["error"])} if modern else body
        self._say([self._engine.outbox.answer(exchange, whose, shaped)], exchange, whose, [])

    def _legacy(self, value: Any, exchange: int, size: int) -> None:
        limits, session = self._settings.limits, self._session
        if session is None:
            self._initialize(value, exchange, size)
            return
        batch = isinstance(value, list)
        messages = read_batch(value, session.machine.revision, limits) if batch else [read_message(value, limits)]
        for message in messages:
            if isinstance(message, Request) and message.id in self._calls:
                raise self._duplicate(message, exchange, session.label)
        self._refuse_while_draining(messages, read_id(value, limits))
        answer = self._engine.legacy.receive(session, messages, Inlet(exchange, self._reading))
        if isinstance(answer, LegacyAnswered):
            self._say(answer.bodies, exchange, session.label, answer.calls)

    def _refuse_while_draining(self, messages: Sequence[Message], id: RequestId | None) -> None:
        if self._engine.draining and any(isinstance(item, Request) for item in messages):
            raise busy("The server is shutting down", 5, id)

    def _initialize(self, value: Any, exchange: int, size: int) -> None:
        engine, peer = self._engine, self._peer
        request = read_initialize(value, size, self._settings.limits)
        if request is None:
            clause = "2025-11-25 basic/lifecycle: the initialization phase MUST be the first interaction"
            engine.log.append(ClientMisuse(None, "initialized before initialize", clause, "", exchange))
            return
        self._refuse_while_draining([request], request.id)
        try:
            session, result = engine.initialize(request, peer.selection, peer.origin, peer.transport)
        except McpError as error:
            answer = error_response(request.id, error.body())
        else:
            answer = result_response(request.id, result)
            self._open(session)
        self._say([engine.outbox.answer(exchange, self._whose, answer)], exchange, self._whose, [])

    def _open(self, session: Session) -> None:
        self._session = session
        # An open connection keeps its session: what is too silent is for this module to say.
        session.machine.hold()
        self._reading.add(session.open_standalone(), 0)
        self._engine.legacy.listening(session)

    def _modern(self, value: Any, exchange: int, client: str | None) -> None:
        if isinstance(value, list):
            why = f"Invalid Request: revision {V2026_07_28} has no batches, send one message at a time"
            raise Rejection(Refusal.INVALID_REQUEST, why)
        match read_message(value, self._settings.limits):
            case Request() as request:
                self._request(request, exchange, client)
            case Notification() as notification:
                self._notified(notification, exchange, client)
            case Response() as response:
                # Not refused: the error would itself look like an answer to a request of the client's.
                clause = f"{V2026_07_28} basic/transports/stdio: the client MUST NOT write JSON-RPC responses"
                self._misuse(exchange, client, "answer without a question", clause, f"id {shown_id(response.id)}")

    def _request(self, request: Request, exchange: int, client: str | None) -> None:
        engine, peer, limits = self._engine, self._peer, self._settings.limits
        if request.id in self._calls or (self._session and request.id in self._session.machine.in_flight):
            raise self._duplicate(request, exchange, client)
        offer = engine.offer(peer.selection, V2026_07_28)
        inbound = climb(None, request, input_schema=offer.input_schema)
        check_token(request, inbound.meta, limits)
        if engine.draining:
            raise busy("The server is shutting down", 5, request.id)
        if len(self._calls) >= limits.max_in_flight:
            engine.log.append(LimitReached(client, "max_in_flight", limits.max_in_flight))
            raise busy(f"Too many requests: the limit max_in_flight is {limits.max_in_flight}", 1, request.id)
        source = Source(exchange, client, peer.origin, peer.transport)
        answer = engine.modern.receive(request, inbound, offer, source)
        if isinstance(answer, Answered):
            self._say([answer.body], exchange, client, [] if answer.call is None else [answer.call])
        else:
            self._calls[request.id] = running = _Running(answer.call, self._reading.add(answer.stream, 0))
            self._inbox.send_nowait(partial(self._run, request.id, answer, running))

    def _duplicate(self, request: Request, exchange: int, client: str | None) -> Rejection:
        """Of either era: the answers on one connection could not be told apart."""
        clause = f"{V2026_07_28} basic: a request id MUST NOT be that of another request in flight"
        self._misuse(exchange, client, "duplicate id", clause, f"id {shown_id(request.id)}")
        why = f"Invalid Request: request id {shown_id(request.id)} is already in flight on this connection"
        return Rejection(Refusal.INVALID_REQUEST, why, request.id)

    async def _run(self, id: RequestId, started: Started, running: _Running) -> None:
        """One modern request that runs, until its answer is written."""
        try:
            await started.work()
            await running.source.wait_ended()
        finally:
            del self._calls[id]
            started.over()
            self._written.unpark_all()

    def _notified(self, notification: Notification, exchange: int, client: str | None) -> None:
        if notification.method != "notifications/cancelled":
            clause = f"{V2026_07_28} schema, ClientNotification"
            self._misuse(exchange, client, "unknown notification", clause, clip(notification.method))
            return
        self._cancelled(notification, exchange, client)

    def _cancelled(self, notification: Notification, exchange: int, client: str | None) -> None:
        """"Servers MUST NOT send any further messages for it": also none of those that wait for the writer."""
        params = notification.params or {}
        id, reason = params.get("requestId"), params.get("reason", "")
        if not is_id(id) or not isinstance(reason, str):
            why = "requestId or reason has the wrong type"
            self._misuse(exchange, client, "malformed cancellation", _CANCELLATION, why)
            return
        known, named = self._calls.get(id), f"request {shown_id(id)}"
        if known is not None:
            if known.call.cancel(Cause.NOTIFICATION, clip(reason, MAX_REASON) or None):
                self._reading.drop(known.source, "cancelled by the client")
        elif self._made_task(id, client):
            what = "notifications/cancelled for a task"
            self._misuse(exchange, client, what, _CANCELLATION, f"{named} made a task: use tasks/cancel")
        else:
            why = f"{named} is unknown or finished"
            self._misuse(exchange, client, "cancellation without effect", _CANCELLATION, why)

    def _made_task(self, id: RequestId, client: str | None) -> bool:
        made = (task.call.facts for task in self._engine.tasks.everyone())
        return any(facts.request_id == id and facts.session == client for facts in made)

    def _misuse(self, exchange: int, client: str | None, what: str, clause: str, detail: str) -> None:
        self._engine.log.append(ClientMisuse(client, what, clause, detail, exchange))

    def _say(self, bodies: Sequence[bytes], exchange: int, whose: str | None, calls: Sequence[CallScope]) -> None:
        """Send answers in one piece; they are delivered together."""

        def delivered() -> None:
            self._engine.log.append(MessagesDelivered(exchange, whose, None, 1, len(bodies)))
            for call in calls:
                call.answer_delivered()

        for place, body in enumerate(bodies, 1):
            self._said.append(_Said(body, delivered if place == len(bodies) else _nothing))
            self._said_bytes += len(body)
        self._reading.ring()

    async def _write(self) -> None:
        try:
            while True:
                wrote = await self._write_said()
                wrote = await self._write_streams() or wrote
                self._check_backlog()
                self._admit()
                if not (wrote or self._said):
                    await self._reading.wait_changed()
        except OSError:
            self._broken = True
            self._reading.close("the connection is gone")
            self._written.unpark_all()
            # Who reads from the peer may be told of the same with the reason; where nobody is, this is the reason.
            await trio.sleep(_WHO_S)
            self._end(NORMAL, "client")

    async def _write_said(self) -> bool:
        """Answers in one piece, so many at a time that a flood of them stops no stream."""
        wrote = bool(self._said)
        for _ in range(min(len(self._said), _SAID_PER_TURN)):
            said = self._said[0]
            await self._put(said.body)
            self._said.popleft()
            self._said_bytes -= len(said.body)
            said.taken()
        return wrote

    async def _write_streams(self) -> bool:
        piece = self._reading.take(_UNREAD_BYTES)
        if self._reading.overflowed:
            self._end(POLICY, _TOO_SLOW)
        if piece is None:
            return False
        source, self._writing = piece.source, True
        for position, message in enumerate(piece.messages, piece.first):
            # What was taken over, or cancelled, meanwhile is not for this connection any more.
            if source.ended is None and source.stream.reader is source.reader:
                await self._put(message)
                source.stream.delivered(position, position, self._exchange)
        self._writing = False
        self._written.unpark_all()
        return True

    async def _put(self, message: bytes) -> None:
        await self._wire.send(message)
        self._sent += 1
        self._written.unpark_all()

    async def _wait_written(self) -> None:
        while not self._broken and (self._said or self._writing or self._calls or not self._reading.caught_up):
            await self._written.park()


def _is_silent(value: Any) -> bool:
    """Whether nothing answers a message, however it is judged."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    method = value.get("method")
    if method is None:
        return "result" in value or "error" in value
    return isinstance(method, str) and "id" not in value and method.startswith("notifications/")


def _id_of(value: Any) -> RequestId | None:
    id = value.get("id") if isinstance(value, dict) else None
    return id if is_id(id) else None


def _nothing() -> None:
    pass
