"""Draft streams: tool calls with streams that outlive their connections, and the service that owns them.

    DraftStreams.serve     for the life of the engine
      one call             a `tools/call` on a stream: no connection and no session owns it
      `_watch`             drops streams after their resume timeout, and finished ones

Over HTTP the owner of a stream is the session in the request; on a pipe it is the client with the secret that came with
the stream, because a new connection has a new session. Only the owner may resume, poll, or get the reason of a loss.
`holder` is the session of the client's present connection: the call's id is in flight in this session only, so the
client can cancel it and answer its questions there.

A stream leaves the table in one of two ways. It is *forgotten* when its client has all of it and the time for another
resume has passed. It is *lost* when its client did not come back in time, when more messages wait than may be kept,
when the server has no room, or when its session has ended. Then its call is cancelled, and the table of lost streams
keeps the reason: without it a client could not tell a loss from a wrong id.

At a bound of all streams, finished ones are dropped first. After them, the client with the most loses a stream.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from math import ceil, inf
from typing import TypeAlias

import trio

from ...core.call import Cause
from ...core.callbacks import nothing
from ...core.draft_stream import DraftStream, Interval, Lost, LostError, MessageKind, Poll
from ...log.bounded import Newest
from ...log.context import Recorder
from ...log.events import LimitReached, StreamLost
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, RefusedResponse, RequestId, Response, Rpc
from ...wire.v2025 import draft_streams as wire
from ..calls.outcome import contain
from ..calls.scope import CallScope
from ..messages import RequestContext
from ..services import Limit, LimitError, Services
from ..sessions import ClientRequests, Session
from .stream import Reader, Stream, StreamLostError, send

_NOBODY = b"\0" * sha256().digest_size
# Enough for several clients that lose theirs in the same hour.
_LOST_KEPT = 1000
_TOO_MANY = "Too many streams that are not read to their end: the limit {name} is {most}"

WHY = {
    Lost.ABANDONED: "the stream was abandoned: not resumed or polled within resumeInterval.max",
    Lost.OVERFLOW: "the stream is lost: more waited for its client than replay_messages or replay_bytes allow",
    Lost.SESSION_ENDED: "the stream is lost: its session has ended",
    Lost.SERVER_FULL: "the stream is lost: all streams together are as large or as many as the server allows",
}
"""The reasons of a loss, in words for the client."""


def lost_error(lost: Lost) -> McpError:
    """The error for the owner of a lost stream."""
    return McpError(Code.STREAM_LOST, WHY[lost], {"reason": lost.value})


class ToolStream(Stream):
    """The stream of one `tools/call`. Its owner can resume it from any connection.

    `holder` is None before the client has come back, and once the stream is not `kept`. `address` is the client address
    for shares. `call` is None once it is over. `answer_taken` is set once the client has the answer.
    """

    # A client without a count of its own does not get a message twice.
    one_by_one = True

    def __init__(
        self,
        number: int,
        stream_id: str,
        session: Session,
        request_id: RequestId,
        request: Recorder,
        services: Services,
        changed: Callable[[ToolStream], None],
    ) -> None:
        settings, clock = services.settings, services.clock
        self.machine = DraftStream(
            Interval(settings.stream_min_s, settings.stream_max_s),
            settings.stream_retention_s,
            max_messages=settings.limits.replay_messages,
            max_bytes=settings.limits.replay_bytes,
            now=clock.now(),
        )
        label = session.next_stream_label()
        super().__init__(label, "resumable", request, settings.limits, replay=self.machine.log)
        self.stream_id = stream_id
        self.request_id = request_id
        self.holder: Session | None = session
        self.call: CallScope | None = None
        self.owner = Owner(session.label, None if session.secret is None else digest_of(session.secret))
        self.number = number
        self.address = session.holder
        self.kept = True
        self.answer_taken = False
        self.weight = 0
        self._home = session
        # resumeInterval.min of the draft: a client that obeys the event stream's `retry` obeys the draft, too.
        self.retry_ms = ceil(settings.stream_min_s * 1000)
        self.questions = ClientRequests(f"q{number}-")
        self._answer_at: int | None = None
        self._clock = clock
        self._changed = changed

    def sends_answer(self) -> None:
        self._answer_at = self.replay.last + 1

    @property
    def finished(self) -> bool:
        return self.replay.closed and not self.machine.untaken

    def marked(self, value: Json) -> Json:
        return wire.marked(value, self.stream_id, self.replay.last + 1)

    def attach(self, recorder: Recorder, wake: Callable[[], None] = nothing) -> Reader:
        self.machine.connect(self._clock.now())
        return super().attach(recorder, wake)

    def detach(self, reader: Reader) -> None:
        if self.reader is reader:
            self.machine.disconnect(self._clock.now())
        super().detach(reader)
        self._changed(self)

    def dismissed(self, reader: Reader) -> str | None:
        lost = self.machine.lost
        own = "forgotten" if self.machine.forgotten else None if lost is None else f"lost: {lost}"
        return super().dismissed(reader) or own

    def delivered(self, first: int, last: int, reader: Recorder, *, event_ids: bool = False) -> None:
        super().delivered(first, last, reader, event_ids=event_ids)
        self.answer_taken = self.answer_taken or (self._answer_at is not None and last >= self._answer_at)
        self.machine.taken(last, self._clock.now())
        self._changed(self)

    def acknowledge(self, position: int) -> None:
        self.machine.taken(position, self._clock.now())
        self._changed(self)

    def end(self, now: float) -> None:
        super().end(now)
        self.machine.end(now)
        self._changed(self)

    def resume(self, received: int | None) -> int:
        """The position after which a resumption reads. Raises the errors of the machine."""
        try:
            return self.machine.resume(received, self._clock.now())
        finally:
            self._changed(self)

    def poll(self, received: int | None) -> Poll:
        try:
            return self.machine.poll(received, self._clock.now())
        finally:
            self._changed(self)

    def forget(self) -> None:
        self.kept = False
        self._home.drop(self)
        self._wake()

    def _keep(self, message: bytes, rpc: Rpc) -> int:
        kind = {"request": MessageKind.REQUEST, "error": MessageKind.ERROR}.get(rpc, MessageKind.OTHER)
        try:
            position = self.machine.emit(message, kind, self._clock.now())
        except LostError as error:
            raise StreamLostError(WHY[error.lost]) from None
        finally:
            self._changed(self)
        # With this message, all streams together may exceed their bound, and this stream was lost for it.
        if self.machine.lost is not None:
            raise StreamLostError(WHY[self.machine.lost])
        return position


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a stream: `secret` is the digest of its secret, None where the session is the owner."""

    session: str
    secret: bytes | None

    @property
    def key(self) -> str | bytes:
        return self.secret or self.session


def digest_of(text: str) -> bytes:
    """The digest of a secret or of a stream id; only digests are kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


Job: TypeAlias = Callable[[], Awaitable[None]]


class DraftStreams:
    """The draft streams of one engine. `serve` owns their calls; the other methods never wait."""

    def __init__(self, services: Services) -> None:
        settings, limits = services.settings, services.limits
        self._services = services
        self._clock = services.clock
        self._limits = limits
        self._limit = Limit("max_draft_streams", _TOO_MANY, services.shares)
        self._shares = services.shares
        self._interval = Interval(settings.stream_min_s, settings.stream_max_s)
        self._numbers = count(1)
        self._streams: dict[bytes, ToolStream] = {}
        self._by_owner: dict[str | bytes, dict[bytes, ToolStream]] = {}
        self._lost: Newest[bytes, tuple[Owner, Lost]] = Newest(_LOST_KEPT)
        self._bytes = 0
        self._shared = services.shared.draft_streams
        self._earliest = inf
        self._sooner = trio.lowlevel.ParkingLot()
        self._quiet = trio.lowlevel.ParkingLot()
        # A job waits here until the service's next turn, so the bound is the largest number of streams.
        self._inbox, self._jobs = trio.open_memory_channel[Job](limits.max_draft_streams)

    def __iter__(self) -> Iterator[ToolStream]:
        return iter(list(self._streams.values()))

    @property
    def running(self) -> list[CallScope]:
        return [stream.call for stream in self if stream.call is not None and stream.holder is None]

    def open(self, session: Session, request_id: RequestId, context: RequestContext, call: Recorder) -> ToolStream:
        """Open a stream for the call of this recorder, with its first message.

        Raises `McpError` -32000 if there is no room.
        """
        limits, new_id = self._limits, self._services.new_id
        if session.piped and session.secret is None:
            session.secret = new_id()
            session.proofs.add(digest_of(session.secret))
        self._make_room(session, context)
        self._limit.check(session.holder, context.recorder)
        stream_id = new_id()
        stream = ToolStream(next(self._numbers), stream_id, session, request_id, call, self._services, self._note)
        digest = digest_of(stream_id)
        self._streams[digest] = self._by_owner.setdefault(stream.owner.key, {})[digest] = stream
        self._limit.take(stream.address)
        session.keep(stream)
        bounds = {"maxMessages": limits.replay_messages, "maxBytes": limits.replay_bytes}
        mark = {**bounds, "secret": session.secret} if session.piped else bounds
        interval = self._interval
        send(call, stream, wire.create(stream_id, interval.min_s, interval.max_s, mark))
        if not stream.kept:
            raise McpError(Code.BUSY, f"There is no room for this stream: {WHY[Lost.SERVER_FULL]}")
        return stream

    def submit(self, job: Job) -> None:
        self._inbox.send_nowait(job)

    def close(self, stream: ToolStream) -> None:
        if not stream.replay.closed:
            send(stream.recorder, stream, wire.end(stream.stream_id))
        stream.end(self._clock.now())

    def call_over(self, stream: ToolStream) -> None:
        """The call of a stream has ended: its id is free in the session that holds it. Harmless when repeated."""
        if stream.call is not None and stream.holder is not None:
            stream.holder.call_over(stream.request_id)
        stream.call = None
        self._quiet.unpark_all()

    async def wait_quiet(self) -> None:
        while any(stream.call is not None for stream in self):
            await self._quiet.park()

    def find(self, session: Session, reference: wire.Reference) -> ToolStream:
        """The stream of a reference, if it belongs to the client.

        Raises `McpError`: -32602 for an unknown stream and for another client's, with the same text and in the same
        time, and 1003 for a lost stream of this client.
        """
        digest, proof = digest_of(reference.stream_id or ""), digest_of(reference.secret)
        stream, gone = self._streams.get(digest), self._lost.get(digest)
        owner = stream.owner if stream is not None else gone[0] if gone is not None else Owner("", _NOBODY)
        belongs = self._belongs(session, owner, proof)
        if belongs and owner.secret == proof:
            self._prove(session, reference.secret, proof)
        if belongs and stream is not None:
            return stream
        if belongs and gone is not None:
            raise lost_error(gone[1])
        raise McpError(
            Code.INVALID_PARAMS, "Stream not found: unknown, forgotten, or another client's (is its secret given?)"
        )

    def all_of(self, session: Session, secret: str) -> list[ToolStream]:
        proof = digest_of(secret)
        if session.piped and proof in self._by_owner:
            self._prove(session, secret, proof)
        return self._of(session)

    def _prove(self, session: Session, secret: str, proof: bytes) -> None:
        """One secret serves a client for all its streams, also for later ones of this connection."""
        session.proofs.add(proof)
        session.secret = session.secret or secret

    def _of(self, session: Session) -> list[ToolStream]:
        keys: set[str | bytes] = {session.label, *session.proofs}
        streams = [stream for key in keys for stream in self._by_owner.get(key, {}).values()]
        return sorted(streams, key=lambda stream: stream.number)

    def check_hand_over(self, stream: ToolStream, session: Session) -> None:
        if stream.holder is not session and stream.call is not None:
            session.machine.check(stream.request_id)

    def hand_over(self, stream: ToolStream, session: Session) -> None:
        """Move the stream and its call to this session, as `check_hand_over` allows, or change nothing."""
        if stream.holder is session:
            return
        if stream.call is not None:
            session.machine.begin(stream.request_id)
            session.calls[stream.request_id] = stream.call
        self._let_go(stream)
        stream.holder = session

    def release(self, session: Session) -> None:
        """The connection has closed: its streams wait for a client with the secret."""
        for stream in self._of(session):
            if stream.holder is session:
                self._let_go(stream)

    def end_owner(self, session: str) -> None:
        for stream in list(self._by_owner.get(session, {}).values()):
            stream.machine.lose(Lost.SESSION_ENDED)
            self._note(stream)

    def resolve(self, session: Session, answer: Response | RefusedResponse, recorder: Recorder) -> bool:
        """Returns False if it is no answer to a question on a stream of this session."""
        held = (stream for stream in self._of(session) if stream.holder is session)
        return any(stream.questions.resolve(answer, recorder) for stream in held)

    def question(self, session: Session, id: RequestId | None) -> Recorder | None:
        found = (stream.questions.question(id) for stream in self._of(session) if stream.holder is session)
        return next((question for question in found if question is not None), None)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            task_status.started()
            async for job in self._jobs:
                nursery.start_soon(contain, job, name=job)

    async def _watch(self) -> None:
        while True:
            deadlines = [at for stream in self if (at := stream.machine.deadline) is not None]
            self._earliest = min(deadlines, default=inf)
            with trio.move_on_at(self._earliest):
                await self._sooner.park()
            for stream in self:
                if stream.machine.expire(self._clock.now()):
                    self._note(stream)

    def _note(self, stream: ToolStream) -> None:
        if not stream.kept:
            return
        self._weigh(stream)
        machine = stream.machine
        if machine.lost is not None or machine.forgotten:
            self._remove(stream)
        elif machine.deadline is not None and machine.deadline < self._earliest:
            self._earliest = machine.deadline
            self._sooner.unpark_all()
        if self._shared is not None:
            self._shared.make_room()

    def leave_shared(self) -> None:
        if self._shared is not None:
            self._shared.remove(self._free)
            self._shared = None

    def _free(self) -> int:
        """Drop a finished stream that takes bytes, or else lose the largest; returns the bytes that are left."""
        finished = (stream for stream in self if stream.finished and stream.weight)
        dropped = next(finished, None) or max(self, key=lambda stream: stream.weight)
        if not dropped.finished:
            assert self._shared is not None, "called by the shared bound"
            dropped.recorder.caused_by(None).append(LimitReached("all_rooms:draft_stream_bytes", self._shared.most))
            dropped.machine.lose(Lost.SERVER_FULL)
        self._remove(dropped)
        return self._bytes

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._shared is not None:
            self._shared.weigh(self._free, self._bytes)

    def _weigh(self, stream: ToolStream) -> None:
        size, most = stream.replay.bytes, self._limits.draft_stream_bytes
        self._count(size - stream.weight)
        stream.weight = size
        if self._bytes > most:
            self._drop_excess(stream, most)

    def _drop_excess(self, growing: ToolStream, most: int) -> None:
        """Drop finished streams; then lose one of the client with the most: the growing one, else its largest."""
        for other in self:
            if self._bytes > most and other.finished and other is not growing:
                self._remove(other)
        while self._bytes > most and growing.machine.lost is None:
            held = max(self._by_client().values(), key=lambda streams: sum(stream.weight for stream in streams))
            largest = max(held, key=lambda stream: (stream.reader is None, stream.weight))
            dropped = growing if growing in held else largest
            dropped.recorder.caused_by(None).append(LimitReached("draft_stream_bytes", most))
            dropped.machine.lose(Lost.SERVER_FULL)
            if dropped is not growing:
                self._remove(dropped)

    def _remove(self, stream: ToolStream) -> None:
        digest, lost = digest_of(stream.stream_id), stream.machine.lost
        del self._streams[digest]
        held = self._by_owner[stream.owner.key]
        del held[digest]
        if not held:
            del self._by_owner[stream.owner.key]
        self._count(-stream.weight)
        self._limit.release(stream.address)
        if lost is not None:
            self._keep_lost(digest, stream, lost)
        self._let_go(stream)
        stream.forget()

    def _keep_lost(self, digest: bytes, stream: ToolStream, lost: Lost) -> None:
        # An ended session cannot ask for the stream, and it cancels its calls itself.
        asked_for = lost is not Lost.SESSION_ENDED
        if asked_for:
            self._lost.store(digest, (stream.owner, lost))
        stream.recorder.append(StreamLost(lost.value, stream.machine.untaken))
        if stream.call is not None and asked_for:
            stream.call.cancel(Cause.DISCONNECT, WHY[lost])

    def _by_client(self) -> dict[str | bytes, list[ToolStream]]:
        clients: dict[str | bytes, list[ToolStream]] = {}
        for stream in self:
            clients.setdefault(stream.address or stream.owner.key, []).append(stream)
        return clients

    def _make_room(self, session: Session, context: RequestContext) -> None:
        limits, mine = self._limits, self._of(session)
        own = limits.max_draft_streams_per_client
        if len(mine) >= own and not self._give_up(mine):
            context.recorder.append(LimitReached("max_draft_streams_per_client", own))
            raise LimitError(_TOO_MANY.format(name="max_draft_streams_per_client", most=own))
        if not self._shares.has_room("max_draft_streams", session.holder, limits.max_draft_streams):
            theirs = [stream for stream in self if stream.address == session.holder]
            if not self._give_up(theirs):
                self._shares.check("max_draft_streams", session.holder, context.recorder)
        if len(self._streams) >= limits.max_draft_streams and not self._give_up(list(self)):
            # The client with the most gives up a stream, unless it is the client of the new one.
            clients = self._by_client()
            held, own = max(clients.values(), key=len), len(clients.get(session.holder or "", mine))
            away = [stream for stream in held if stream.reader is None]
            if len(held) <= own + 1 or not away:
                raise self._limit.full(context.recorder)
            away[0].machine.lose(Lost.SERVER_FULL)
            self._remove(away[0])

    def _give_up(self, streams: list[ToolStream]) -> bool:
        stream = next((stream for stream in streams if stream.finished), None)
        if stream is not None:
            self._remove(stream)
        return stream is not None

    def _let_go(self, stream: ToolStream) -> None:
        if stream.holder is not None and stream.call is not None:
            stream.holder.call_over(stream.request_id)
        stream.holder = None

    def _belongs(self, session: Session, owner: Owner, proof: bytes) -> bool:
        own = owner.session == session.label and owner.secret is None
        proven = hmac.compare_digest(proof, owner.secret or _NOBODY)
        # Over HTTP only the session counts: event ids name streams by labels, and these belong to the session.
        return own or (session.piped and ((proven and owner.secret is not None) or owner.secret in session.proofs))
