"""One connection that carries everything both ways, in both eras: a WebSocket, or standard input and output.

    run             ends when the peer has gone or the server has drained, and the connection's work is over
      _write        the one writer (`wires`)
      _stop         waits for the drain of the server
      _read         takes one message after the other; messages that need an answer may be held back
      a call        of the modern era (`_ModernRequests`); legacy calls belong to the session and to `DraftStreams`

The legacy session and the modern requests of a connection end with it. Draft streams do not: a client can read them
from another connection (product contract, section 3).

**Backpressure.** A peer that sends requests and does not read the answers would fill the memory. So a message that
needs an answer is held back while more bytes wait for the writer than a socket takes at once, and the reader stops when
the held messages have the size of one largest message (`max_body_bytes`). A message without an answer is taken at once:
a cancellation, or the answer to a question, may be what lets the peer read on. A cancellation also brings forward the
request that it names.

**Both eras** may mix. `era_of_piped` decides for each message alone, with two additions. Without a session, only
`initialize` and `notifications/initialized` are legacy. A cancellation belongs to the era of the request that it names:
2026-07-28 basic/transports/stdio has "no per-request stream to close". An id in flight is in flight for both eras,
since the client matches answers on one connection by id only.

**The end.** The first of five causes ends the connection: the peer closed it, it was idle, it reads too slowly, it
broke the framing, or the server has drained. Messages from before a close by the peer are still answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, TypeAlias

import trio

from ...core.call import Cause
from ...core.modern_inbound import era_of_piped
from ...log.context import Recorder
from ...log.events import (
    ClientMisuse,
    ConnectionClosed,
    ConnectionOpened,
    LimitReached,
    MessageRefused,
    essentials,
    subject,
)
from ...wire.errors import McpError, Refusal, Rejection, busy
from ...wire.jsonrpc import (
    MalformedError,
    Notification,
    Request,
    RequestId,
    Response,
    error_response,
    is_id,
    parse,
    result_response,
    shown_id,
)
from ...wire.revisions import V2026_07_28
from ...wire.v2026.codec import modern_error
from ..calls.outcome import contain
from ..engine import Engine
from ..messages import (
    Received,
    RequestContext,
    read_batch,
    read_id,
    read_initialize,
    read_message,
    record_received,
    refused_message,
    unreadable,
    unreadable_json,
)
from ..modern.dispatch import AnsweredAtOnce, InFlight, Started
from ..sessions import Session
from ..streams.reading import Track
from ..streams.stream import answer
from .wires import Closed, ConnectionEnd, Peer, PipeWriter, TooLargeError, Wire, WireBrokenError

Job: TypeAlias = Callable[[], Awaitable[None]]


NORMAL, GOING_AWAY, POLICY = 1000, 1001, 1008
# RFC 6455 section 7.4.1: these codes stand for a close without a code.
_NO_CODE = (1005, 1006)

# The time for answers after the peer has closed: with a shell's pipe it may still read; a dead peer delays no one else.
_FLUSH_S = 2.0
# The cost of each held message beside its bytes, so that empty messages are bounded too.
_MESSAGE_COST = 1024
# The time for the reader to find the reason of a disconnect after a write has failed.
_REASON_S = 1.0


async def serve_pipe(
    engine: Engine, wire: Wire, peer: Peer, *, on_end: Callable[[], None] = lambda: None
) -> ConnectionEnd:
    """Serve one connection until its peer has gone, or the server has drained. The caller closes `wire`.

    `on_end` is called once the end of the connection is certain; its work may then still take time to stop. No
    misbehaviour of a peer raises. If this is cancelled, everything of the connection ends with it.
    """
    return await _Pipe(engine, wire, peer, on_end).run()


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingMessage:
    value: Any
    message: bytes


class _Pipe:
    """One connection: its session, its modern requests in flight, and its held messages."""

    def __init__(self, engine: Engine, wire: Wire, peer: Peer, on_end: Callable[[], None]) -> None:
        self._engine = engine
        self._on_end = on_end
        self._settings = engine.settings
        self._wire = wire
        self._peer = peer
        recorder = peer.request or Recorder(engine.log).bind(exchange=next(engine.services.exchanges), label=peer.label)
        label = f"{'i' if peer.transport == 'stdio' else 'w'}{recorder.context.exchange}"
        # Its cause becomes the entry of the connection's beginning, in `run`.
        self._recorder = recorder.bind(connection=label)
        self._session: Session | None = None
        self._received_any = False
        self._held: deque[_WaitingMessage] = deque()
        self._held_bytes = 0
        self._ending: ConnectionEnd | None = None
        self._listening = trio.CancelScope()
        # Each job is a modern request in flight, so there are at most this many.
        self._inbox, self._jobs = trio.open_memory_channel[Job](self._settings.limits.max_in_flight)
        self._writer = PipeWriter(engine.services, wire, self._recorder, peer.holder, self._too_slow, self._admit)
        self._modern = _ModernRequests(engine, peer, self._writer, self._inbox.send_nowait)

    async def run(self) -> ConnectionEnd:
        peer = self._peer
        opened = self._recorder.append(ConnectionOpened(peer.transport, peer.client, peer.peer))
        self._recorder = self._recorder.caused_by(opened)
        self._wire.opened(self._recorder)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._stop)
                await self._serve()
                nursery.cancel_scope.cancel()
        finally:
            self._let_go("the server stopped")
            self._writer.close()
            self._writer.release()
            ending = self._ending or ConnectionEnd(GOING_AWAY, "the server stopped")
            code = None if peer.transport == "stdio" or ending.code in _NO_CODE else ending.code
            self._recorder.bind(session=self._label).append(ConnectionClosed(code, ending.why, self._writer.sent))
        return ending

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            async for job in self._jobs:
                nursery.start_soon(contain, job)
            with trio.move_on_after(_FLUSH_S):
                while not self._writer.broken and (self._modern or not self._writer.finished):
                    await self._writer.wait_progress()
            # This ends modern requests with unwritten answers, and the reading of draft streams.
            self._writer.close()

    async def _stop(self) -> None:
        await self._engine.drained.wait()
        self._end(GOING_AWAY, self._engine.ending)

    async def _write(self) -> None:
        try:
            await self._writer.run()
        except OSError:
            # The reader may find the end too, with a reason. If it finds none, this is the reason.
            await trio.sleep(_REASON_S)
            self._end(NORMAL, "client")

    def _end(self, code: int, why: str) -> None:
        if self._ending is None:
            self._ending = ConnectionEnd(code, why)
            self._listening.cancel()
            self._on_end()

    def _too_slow(self, limit: str | None) -> None:
        if self._ending is None and limit is not None:
            value = getattr(self._settings.limits, limit)
            self._recorder.bind(session=self._label).caused_by(None).append(LimitReached(limit, value))
        self._end(POLICY, "the client reads too slowly")

    def _let_go(self, why: str) -> None:
        if self._session is not None:
            self._engine.legacy.disconnected(self._session)
            self._session.end(Cause.DISCONNECT, why)
        self._modern.let_go(why)

    async def _read(self) -> None:
        try:
            with self._listening:
                while self._ending is None:
                    await self._read_one()
            if self._ending == ConnectionEnd(NORMAL, "client"):
                # Messages from before the end are answered, since the peer may still read.
                with trio.move_on_after(_FLUSH_S):
                    await self._wait_held(0)
        finally:
            # Held messages do not begin any more: the connection has no place for them.
            self._held.clear()
            self._held_bytes = 0
            self._let_go("the connection ended")
            self._inbox.close()

    async def _wait_held(self, most_bytes: int) -> None:
        while self._held and self._held_bytes > most_bytes and not self._writer.broken:
            await self._writer.wait_progress()

    async def _read_one(self) -> None:
        try:
            message = await self._next()
            if message is None:
                closed = self._wire.closed or Closed(NORMAL, "client")
                self._end(closed.code or NORMAL, closed.by)
            else:
                self._accept(message)
                await self._wait_held(self._settings.limits.max_body_bytes)
        except TooLargeError as large:
            recorder = self._next_recorder().bind(session=self._label)
            recorder.append(unreadable("size", large.message, large.head, size=large.size))
            self._send_refused(large, recorder, modern=self._session is None)
        except WireBrokenError as broken:
            self._end(broken.code, broken.why)

    async def _next(self) -> bytes | None:
        settings = self._settings
        patience_s = settings.session_idle_s if self._received_any else settings.idle_connection_s
        while True:
            with trio.move_on_after(patience_s if self._peer.timed else inf):
                return await self._wire.receive()
            if not (self._modern or (self._session and self._session.calls)):
                self._end(GOING_AWAY, "idle")

    def _next_recorder(self) -> Recorder:
        return self._recorder.bind(exchange=next(self._engine.services.exchanges))

    @property
    def _label(self) -> str | None:
        return self._session.label if self._session else None

    def _accept(self, message: bytes) -> None:
        """Take a message at once if it needs no answer, else when the peer has read enough of the answers."""
        self._received_any = True
        try:
            value = parse(message, max_depth=self._settings.limits.max_json_depth)
        except MalformedError as error:
            value = error
        held = _WaitingMessage(value, message)
        if _is_silent(value):
            self._admit_named(subject(value))
            self._take(held)
        else:
            self._held.append(held)
            self._held_bytes += len(message) + _MESSAGE_COST
            self._admit()

    def _admit(self) -> bool:
        admitted = False
        while self._held and self._writer.has_room:
            self._release(self._held[0])
            admitted = True
        return admitted

    def _admit_named(self, id: RequestId | None) -> None:
        for held in [held for held in self._held if id is not None and _id_of(held.value) == id]:
            self._release(held)

    def _release(self, held: _WaitingMessage) -> None:
        self._held.remove(held)
        self._held_bytes -= len(held.message) + _MESSAGE_COST
        self._take(held)

    def _take(self, held: _WaitingMessage) -> None:
        """Judge, answer or start one message. A peer that no longer reads gets no answer."""
        if self._writer.broken:
            return
        session, value, recorder = self._session, held.value, self._next_recorder()
        if isinstance(value, MalformedError):
            self._take_unreadable(value, held.message, recorder.bind(session=self._label))
        elif era_of_piped(value, initialized=session is not None) == "modern" or self._modern.is_meant(value):
            self._take_modern(held, recorder.bind(session=self._modern.client(value, recorder)))
        else:
            self._take_legacy(held, recorder.bind(session=self._label))

    def _take_unreadable(self, error: MalformedError, message: bytes, recorder: Recorder) -> None:
        recorder.append(unreadable_json(error, message))
        clause = "JSON-RPC 2.0, 5.1: -32700, invalid JSON was received"
        recorder.append(ClientMisuse("not JSON", clause, str(error)))
        self._send_refused(Rejection(Refusal.PARSE_ERROR, str(error)), recorder, modern=self._session is None)

    def _take_modern(self, held: _WaitingMessage, recorder: Recorder) -> None:
        [own] = record_received(recorder, held.value, held.message, self._settings.limits)[:1]
        context = self._context(own)
        id = _id_of(held.value)
        try:
            if self._session is not None and id in self._session.machine.in_flight:
                message = read_message(held.value, self._settings.limits)
                if isinstance(message, Request):
                    raise self._modern.duplicate(message, context)
            self._modern.receive(held.value, context)
        except Rejection as rejection:
            self._refuse(rejection, context.recorder, modern=True)

    def _take_legacy(self, held: _WaitingMessage, recorder: Recorder) -> None:
        session, limits = self._session, self._settings.limits
        if session is None:
            recorders = record_received(recorder, held.value, held.message, limits)
        else:
            question = partial(self._engine.legacy.question, session)
            recorders = record_received(recorder, held.value, held.message, limits, question)
        contexts = [self._context(recorder) for recorder in recorders]
        try:
            if session is None:
                self._initialize(held, contexts[0])
            else:
                self._receive(session, held.value, contexts)
        except Rejection as rejection:
            self._refuse(rejection, contexts[0].recorder, modern=False)

    def _context(self, recorder: Recorder) -> RequestContext:
        peer = self._peer
        return RequestContext(recorder, peer.transport, peer.origin, peer.holder)

    def _refuse(self, rejection: Rejection, message: Recorder, *, modern: bool) -> None:
        message.append(MessageRefused(rejection.refusal.name, rejection.message))
        self._send_refused(rejection, message, modern=modern)

    def _send_refused(self, rejection: Rejection, recorder: Recorder, *, modern: bool) -> None:
        body = rejection.body()
        shaped = {**body, "error": modern_error(body["error"])} if modern else body
        self._writer.send_answers([answer(recorder, shaped)])

    def _receive(self, session: Session, value: Any, contexts: Sequence[RequestContext]) -> None:
        limits = self._settings.limits
        try:
            if isinstance(value, list):
                messages = read_batch(value, session.machine.revision, limits, contexts[0].recorder)
            else:
                messages = [read_message(value, limits)]
        except Rejection as rejection:
            self._engine.legacy.refused(session, value, rejection.reason, contexts)
            raise
        received = [Received(*pair) for pair in zip(messages, contexts, strict=True)]
        try:
            for message, context in received:
                if isinstance(message, Request) and message.id in self._modern:
                    raise self._modern.duplicate(message, context)
            self._engine.refuse_while_draining(messages, read_id(value, limits))
            answers = self._engine.legacy.receive(session, received, self._writer.reading)
        except Rejection as rejection:
            self._refuse(rejection, refused_message(received, rejection), modern=False)
            return
        if answers:
            self._writer.send_answers(answers)

    def _initialize(self, held: _WaitingMessage, context: RequestContext) -> None:
        request = read_initialize(held.value, len(held.message), self._settings.limits)
        if request is None:
            clause = "2025-11-25 basic/lifecycle: the initialization phase MUST be the first interaction"
            context.misuse("initialized before initialize", clause)
            return
        if request.id in self._modern:
            raise self._modern.duplicate(request, context)
        self._engine.refuse_while_draining([request], request.id)
        try:
            session, result = self._engine.initialize(request, self._peer.selection, context)
        except McpError as error:
            value = error_response(request.id, error.body())
        else:
            value = result_response(request.id, result)
            self._open(session, context)
        self._writer.send_answers([answer(context.recorder, value)])

    def _open(self, session: Session, context: RequestContext) -> None:
        self._session = session
        # An open connection keeps its session; this module decides about silence.
        session.machine.hold()
        self._writer.reading.add(session.open_standalone(context.recorder), 0)
        self._engine.legacy.listening(session)


def _is_silent(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    method = value.get("method")
    if method is None:
        return "result" in value or "error" in value
    return isinstance(method, str) and "id" not in value and method.startswith("notifications/")


def _id_of(value: Any) -> RequestId | None:
    id = value.get("id") if isinstance(value, dict) else None
    return id if is_id(id) else None


class _ModernRequests:
    """The modern requests of one connection. Its owner starts the jobs of `submit`."""

    def __init__(self, engine: Engine, peer: Peer, writer: PipeWriter, submit: Callable[[Job], None]) -> None:
        self._engine = engine
        self._peer = peer
        self._writer = writer
        self._submit = submit
        self._client: str | None = None
        self._in_flight = InFlight()
        self._calls = self._in_flight.running

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, id: RequestId) -> bool:
        return id in self._calls

    def client(self, value: Any, recorder: Recorder) -> str | None:
        """The label of the client of a message; `recorder` is the message's.

        Only a request names its client. Other messages count for the client of the latest request; None before the
        first.
        """
        if isinstance(value, dict) and "id" in value and "method" in value:
            self._client = self._engine.clients.label(recorder, self._peer.address, value, self._peer.transport)
        return self._client

    def is_meant(self, value: Any) -> bool:
        """True if a message is a cancellation of one of these requests; it need not name its era."""
        about = subject(value) if essentials(value)[1] == "notifications/cancelled" else None
        return about is not None and about in self._calls

    def let_go(self, why: str) -> None:
        # The drain has ended each request already, and its answer is still for the client.
        in_flight = [] if self._engine.drained.is_set() else list(self._calls.values())
        for call in in_flight:
            if not call.machine.settled and call.machine.cause is None:
                call.cancel(Cause.DISCONNECT, why)

    def receive(self, value: Any, context: RequestContext) -> None:
        if isinstance(value, list):
            why = f"Invalid Request: revision {V2026_07_28} has no batches, send one message at a time"
            raise Rejection(Refusal.INVALID_REQUEST, why)
        match read_message(value, self._engine.settings.limits):
            case Request() as request:
                self._request(request, context)
            case Notification() as notification:
                self._engine.modern.notified(notification, context, self._in_flight)
            case Response() as response:
                # Not refused: the error would look like an answer to a request of the client.
                clause = f"{V2026_07_28} basic/transports/stdio: the client MUST NOT write JSON-RPC responses"
                context.misuse("answer without a question", clause, f"id {shown_id(response.id)}")

    def duplicate(self, request: Request, context: RequestContext) -> Rejection:
        """The refusal of an id in flight, in either era: the client matches answers by id."""
        clause = f"{V2026_07_28} basic: a request id MUST NOT be that of another request in flight"
        context.misuse("duplicate id", clause, f"id {shown_id(request.id)}")
        why = f"Invalid Request: request id {shown_id(request.id)} is already in flight on this connection"
        return Rejection(Refusal.INVALID_REQUEST, why, request.id)

    def _request(self, request: Request, context: RequestContext) -> None:
        engine, limits = self._engine, self._engine.settings.limits
        if request.id in self._calls:
            raise self.duplicate(request, context)
        inbound, offer = engine.read_modern(None, request, self._peer.selection)
        if len(self._calls) >= limits.max_in_flight:
            context.recorder.append(LimitReached("max_in_flight", limits.max_in_flight))
            raise busy(f"Too many requests: the limit max_in_flight is {limits.max_in_flight}", 1, request.id)
        answer = engine.modern.receive(request, inbound, offer, context)
        if isinstance(answer, AnsweredAtOnce):
            self._writer.send_answers([answer.message])
            if request.method == "tools/call":
                self._in_flight.finished.store(request.id, context.recorder)
        else:
            track = self._writer.reading.add(answer.stream, 0)
            call = self._calls[request.id] = answer.running.call
            call.take_back = partial(self._writer.reading.drop, track, "cancelled by the client")
            self._submit(partial(self._run, request.id, answer, track))

    async def _run(self, id: RequestId, started: Started, track: Track) -> None:
        try:
            await started.running.run()
            await track.wait_ended()
        finally:
            del self._calls[id]
            self._in_flight.finished.store(id, started.running.call.recorder)
            started.release()
            self._writer.note_progress()
