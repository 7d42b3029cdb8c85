"""Draft streams: the streams of tool calls that outlive the connection which asked for them, and their owner.

    DraftStreams.serve     for the life of the engine
      one call             a `tools/call` on a stream: it belongs to no connection, and to no session
      the watch            streams that nobody came back for are abandoned, finished ones forgotten

Whose a stream is, is decided by its session where a request names that (HTTP), and else by a secret which the server
hands out with it: connections drop, and a new one has a new session.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from math import ceil, inf
from typing import TypeAlias

import trio

from ..core.call import Cause
from ..core.draft_stream import DraftStream, Interval, Kind, Lost, LostError, Poll
from ..observe.events import LimitReached, Rpc, StreamLost
from ..observe.log import EventLog
from ..settings import Settings
from ..wire.errors import Code, McpError
from ..wire.jsonrpc import Json, RequestId, Response
from ..wire.v2025 import draft_streams as wire
from .calls import CallScope
from .client_requests import ClientRequests
from .clock import Clock
from .outbox import Outbox
from .outcome import contain
from .sessions import Session
from .streams import Reader, Stream, StreamLostError

Job: TypeAlias = Callable[[], Awaitable[None]]

_NOBODY = b"\0" * sha256().digest_size
# Whose loss can still be told from an id that never existed: more than one client can lose in a bad hour.
_MOST_LOST = 1000

_WHY = {
    Lost.ABANDONED: "the stream was abandoned: not resumed or polled within resumeInterval.max",
    Lost.OVERFLOW: "the stream is lost: more waited for its client than replay_messages or replay_bytes allow",
    Lost.SESSION_ENDED: "the stream is lost: its session has ended",
    Lost.SERVER_FULL: "the stream is lost: all streams together are as large or as many as the server allows",
}


def lost_error(lost: Lost) -> McpError:
    """What the owner of a lost stream is told."""
    return McpError(Code.STREAM_LOST, _WHY[lost], {"reason": lost.value})


class ToolStream(Stream):
    """The stream of one `tools/call`, which can be resumed from any connection of its owner.

    `holder` is the session on whose connection its call can be cancelled and its questions answered; None while nobody
    has come back for it, and once it is not `kept`. `call` is None when it is over, `told` whether the client has what
    answers it.
    """

    def __init__(
        self,
        number: int,
        stream_id: str,
        session: Session,
        exchange: int,
        request_id: RequestId,
        machine: DraftStream,
        log: EventLog,
        clock: Clock,
        settings: Settings,
        changed: Callable[[ToolStream], None],
    ) -> None:
        label = session.next_stream_label()
        super().__init__(label, session.label, "resumable", log, settings, exchange=exchange, replay=machine.log)
        self.stream_id = stream_id
        self.request_id = request_id
        self.machine = machine
        self.holder: Session | None = session
        self.call: CallScope | None = None
        self.owner = _Owner(session.label, None if session.secret is None else _digest(session.secret))
        self.number = number
        self.kept = True
        self.told = False
        self.weight = 0
        self._home = session
        self._retry_ms = ceil(settings.stream_min_s * 1000)
        self._questions = ClientRequests(f"q{number}-")
        self._clock = clock
        self._changed = changed

    @property
    def retry_ms(self) -> int:
        """resumeInterval.min, so that a client which comes back as its event stream says does as the draft says."""
        return self._retry_ms

    @property
    def one_by_one(self) -> bool:
        """What was taken is what a client that keeps no count is not sent again."""
        return True

    @property
    def questions(self) -> ClientRequests:
        """Its own, as a question may be answered in another session than it was asked in."""
        return self._questions

    @property
    def finished(self) -> bool:
        """Whether its client has had everything, as far as sockets know."""
        return self.replay.closed and not self.machine.untaken

    def marked(self, value: Json) -> Json:
        """The message with its place in this stream."""
        return wire.marked(value, self.stream_id, self.replay.last + 1)

    def attach(self, exchange: int, ring: Callable[[], None] = lambda: None) -> Reader:
        """As of any stream; nobody is waited for any more."""
        self.machine.connect(self._clock.now())
        return super().attach(exchange, ring)

    def detach(self, reader: Reader) -> None:
        """As of any stream; from now on the client is waited for."""
        if self.reader is reader:
            self.machine.disconnect(self._clock.now())
        super().detach(reader)
        self._changed(self)

    def dismissed(self, reader: Reader) -> str | None:
        """Also because there is nothing left to read."""
        lost = self.machine.lost
        own = "forgotten" if self.machine.forgotten else None if lost is None else f"lost: {lost}"
        return super().dismissed(reader) or own

    def delivered(self, first: int, last: int, exchange: int) -> None:
        """As of any stream; these messages are unsent no more."""
        super().delivered(first, last, exchange)
        self.machine.taken(last, self._clock.now())
        self._changed(self)

    def acknowledge(self, position: int) -> None:
        """The client's word counts as a socket's."""
        self.machine.taken(position, self._clock.now())
        self._changed(self)

    def end(self, now: float) -> None:
        """As of any stream; it is kept as the draft says."""
        super().end(now)
        self.machine.end(now)
        self._changed(self)

    def resume(self, received: int | None) -> int:
        """From where to read on, as the machine says."""
        try:
            return self.machine.resume(received, self._clock.now())
        finally:
            self._changed(self)

    def poll(self, received: int | None) -> Poll:
        """How it stands, as the machine says; whoever has `received` everything is waited for no more."""
        try:
            return self.machine.poll(received, self._clock.now())
        finally:
            self._changed(self)

    def forget(self) -> None:
        """Its service keeps it no more: whoever reads it looks up, and finds out why."""
        self.kept = False
        self._home.drop(self)
        self._wake()

    def _keep(self, message: bytes, rpc: Rpc) -> int:
        kind = {"request": Kind.REQUEST, "error": Kind.ERROR}.get(rpc, Kind.OTHER)
        try:
            return self.machine.emit(message, kind, self._clock.now())
        except LostError as error:
            raise StreamLostError(_WHY[error.lost]) from None
        finally:
            self._changed(self)


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose a stream is: `secret` is the digest of what proves it, None where only the session does."""

    session: str
    secret: bytes | None

    @property
    def key(self) -> str | bytes:
        """What its streams have in common."""
        return self.secret or self.session


@dataclass(frozen=True, slots=True)
class _Grave:
    """What is left of a lost stream."""

    owner: _Owner
    lost: Lost


class DraftStreams:
    """The draft streams of one engine. `serve` owns the calls on them; the other methods never wait."""

    def __init__(
        self, log: EventLog, clock: Clock, settings: Settings, outbox: Outbox, new_id: Callable[[], str]
    ) -> None:
        limits = settings.limits
        self._log = log
        self._clock = clock
        self._settings = settings
        self._outbox = outbox
        self._new_id = new_id
        self._interval = Interval(settings.stream_min_s, settings.stream_max_s)
        self._numbers = count(1)
        self._streams: dict[bytes, ToolStream] = {}
        self._by_owner: dict[str | bytes, dict[bytes, ToolStream]] = {}
        self._lost: OrderedDict[bytes, _Grave] = OrderedDict()
        self._bytes = 0
        self._earliest = inf
        self._sooner = trio.lowlevel.ParkingLot()
        self._quiet = trio.lowlevel.ParkingLot()
        # A job waits here only until the service's next turn, so the bound is the number of streams there may be.
        self._inbox, self._jobs = trio.open_memory_channel[Job](limits.max_draft_streams)

    def __iter__(self) -> Iterator[ToolStream]:
        """The streams that are kept."""
        return iter(list(self._streams.values()))

    @property
    def running(self) -> list[CallScope]:
        """The calls that belong to no session at the moment."""
        return [stream.call for stream in self if stream.call is not None and stream.holder is None]

    def open(self, session: Session, request_id: RequestId, exchange: int) -> ToolStream:
        """A stream for one call, with its first message. Raises `McpError` -32000 where there is no room."""
        limits = self._settings.limits
        if session.piped and session.secret is None:
            session.secret = self._new_id()
            session.proofs.add(_digest(session.secret))
        self._make_room(session)
        machine = DraftStream(
            self._interval,
            self._settings.stream_retention_s,
            max_messages=limits.replay_messages,
            max_bytes=limits.replay_bytes,
            now=self._clock.now(),
        )
        stream_id = self._new_id()
        stream = ToolStream(
            next(self._numbers),
            stream_id,
            session,
            exchange,
            request_id,
            machine,
            self._log,
            self._clock,
            self._settings,
            self._note,
        )
        digest = _digest(stream_id)
        self._streams[digest] = self._by_owner.setdefault(stream.owner.key, {})[digest] = stream
        session.keep(stream)
        bounds = {"maxMessages": limits.replay_messages, "maxBytes": limits.replay_bytes}
        mark = {**bounds, "secret": session.secret} if session.piped else bounds
        interval = self._interval
        self._outbox.send(stream, wire.create(stream_id, interval.min_s, interval.max_s, mark))
        if not stream.kept:
            raise McpError(Code.BUSY, f"There is no room for this stream: {_WHY[Lost.SERVER_FULL]}")
        return stream

    def submit(self, job: Job) -> None:
        """Have the call of a stream started in this service's nursery."""
        self._inbox.send_nowait(job)

    def close(self, stream: ToolStream) -> None:
        """Nothing more comes on the stream: its last message says so."""
        if not stream.replay.closed:
            self._outbox.send(stream, wire.end(stream.stream_id))
        stream.end(self._clock.now())

    def call_over(self, stream: ToolStream) -> None:
        """The call of a stream has ended: its id is free in the session that holds it. Harmless when repeated."""
        if stream.call is not None and stream.holder is not None:
            stream.holder.call_over(stream.request_id)
        stream.call = None
        self._quiet.unpark_all()

    async def wait_quiet(self) -> None:
        """Wait until no call runs."""
        while any(stream.call is not None for stream in self):
            await self._quiet.park()

    def find(self, session: Session, reference: wire.Reference) -> ToolStream:
        """The stream that a client means, if it is that client's.

        Raises `McpError`: -32602 for an unknown one and for somebody else's, the same in the same time, and 1003 for
        one that this client has lost.
        """
        digest, proof = _digest(reference.stream_id or ""), _digest(reference.secret)
        stream, grave = self._streams.get(digest), self._lost.get(digest)
        owner = stream.owner if stream is not None else grave.owner if grave is not None else _Owner("", _NOBODY)
        belongs = self._belongs(session, owner, proof)
        if belongs and owner.secret == proof:
            self._prove(session, reference.secret, proof)
        if belongs and stream is not None:
            return stream
        if belongs and grave is not None:
            raise lost_error(grave.lost)
        raise McpError(
            Code.INVALID_PARAMS, "Stream not found: unknown, forgotten, or another client's (is its secret given?)"
        )

    def all_of(self, session: Session, secret: str) -> list[ToolStream]:
        """The streams of a client, oldest first."""
        proof = _digest(secret)
        if session.piped and proof in self._by_owner:
            self._prove(session, secret, proof)
        return self._of(session)

    def _prove(self, session: Session, secret: str, proof: bytes) -> None:
        """One secret serves a client for all its streams, also for those that this connection will make."""
        session.proofs.add(proof)
        session.secret = session.secret or secret

    def _of(self, session: Session) -> list[ToolStream]:
        keys: set[str | bytes] = {session.label, *session.proofs}
        streams = [stream for key in keys for stream in self._by_owner.get(key, {}).values()]
        return sorted(streams, key=lambda stream: stream.number)

    def check_hand_over(self, stream: ToolStream, session: Session) -> None:
        """Raise `DuplicateIdError` or `TooManyInFlightError` where the stream's call could not be a session's."""
        if stream.holder is not session and stream.call is not None:
            session.machine.check(stream.request_id)

    def hand_over(self, stream: ToolStream, session: Session) -> None:
        """From now on the stream's call is one of this session's, which has proved that it may have it.

        Raises what `check_hand_over` raises; then nothing changed.
        """
        if stream.holder is session:
            return
        if stream.call is not None:
            session.machine.begin(stream.request_id)
            session.calls[stream.request_id] = stream.call
        self._let_go(stream)
        stream.holder = session

    def release(self, session: Session) -> None:
        """The connection of a session has gone: its streams wait for whoever has the secret."""
        for stream in self._of(session):
            if stream.holder is session:
                self._let_go(stream)

    def end_owner(self, session: str) -> None:
        """A session has ended, and took its streams along, unless they can be had with a secret."""
        for stream in list(self._by_owner.get(session, {}).values()):
            stream.machine.lose(Lost.SESSION_ENDED)
            self._note(stream)

    def resolve(self, session: Session, response: Response) -> bool:
        """A client's answer may be to a question on one of the streams that its session holds."""
        return any(stream.questions.resolve(response) for stream in self._of(session) if stream.holder is session)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the calls of streams, and watch the intervals, until cancelled."""
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
        """Something about a stream has changed: follow its size, its deadline, its end."""
        if not stream.kept:
            return
        self._weigh(stream)
        machine = stream.machine
        if machine.lost is not None or machine.forgotten:
            self._remove(stream)
        elif machine.deadline is not None and machine.deadline < self._earliest:
            self._earliest = machine.deadline
            self._sooner.unpark_all()

    def _weigh(self, stream: ToolStream) -> None:
        size, most = stream.replay.bytes, self._settings.limits.draft_stream_bytes
        self._bytes += size - stream.weight
        stream.weight = size
        if self._bytes > most:
            self._relieve(stream, most)

    def _relieve(self, growing: ToolStream, most: int) -> None:
        """Finished streams go first. Then who holds most loses one: that which grows, or else the largest unread."""
        for other in self:
            if self._bytes > most and other.finished and other is not growing:
                self._remove(other)
        while self._bytes > most and growing.machine.lost is None:
            hoards = self._by_owner.values()
            hoard = max(hoards, key=lambda streams: sum(stream.weight for stream in streams.values())).values()
            largest = max(hoard, key=lambda stream: (stream.reader is None, stream.weight))
            victim = growing if growing in hoard else largest
            self._log.append(LimitReached(victim.session, "draft_stream_bytes", most))
            victim.machine.lose(Lost.SERVER_FULL)
            if victim is not growing:
                self._remove(victim)

    def _remove(self, stream: ToolStream) -> None:
        digest, lost = _digest(stream.stream_id), stream.machine.lost
        del self._streams[digest]
        hoard = self._by_owner[stream.owner.key]
        del hoard[digest]
        if not hoard:
            del self._by_owner[stream.owner.key]
        self._bytes -= stream.weight
        if lost is not None:
            self._bury(digest, stream, lost)
        self._let_go(stream)
        stream.forget()

    def _bury(self, digest: bytes, stream: ToolStream, lost: Lost) -> None:
        # Nobody can ask for it any more whose session has ended; and the end of a session cancels its calls itself.
        asked_for = lost is not Lost.SESSION_ENDED
        if asked_for:
            self._lost[digest] = _Grave(stream.owner, lost)
        if len(self._lost) > _MOST_LOST:
            self._lost.popitem(last=False)
        self._log.append(StreamLost(stream.session, stream.id, lost.value, stream.machine.untaken))
        if stream.call is not None and asked_for:
            stream.call.cancel(Cause.DISCONNECT, _WHY[lost])

    def _make_room(self, session: Session) -> None:
        limits, mine = self._settings.limits, self._of(session)
        own = limits.max_draft_streams_per_client
        if len(mine) >= own and not self._give_up(mine):
            raise self._full("max_draft_streams_per_client", own, session)
        if len(self._streams) >= limits.max_draft_streams and not self._give_up(list(self)):
            # Who has most has to give, unless that is who asks.
            hoard = max(map(list[ToolStream], map(dict.values, self._by_owner.values())), key=len)
            away = [stream for stream in hoard if stream.reader is None]
            if len(hoard) <= len(mine) + 1 or not away:
                raise self._full("max_draft_streams", limits.max_draft_streams, session)
            away[0].machine.lose(Lost.SERVER_FULL)
            self._remove(away[0])

    def _give_up(self, streams: list[ToolStream]) -> bool:
        """Forget one that is finished, if there is any."""
        stream = next((stream for stream in streams if stream.finished), None)
        if stream is not None:
            self._remove(stream)
        return stream is not None

    def _full(self, name: str, most: int, session: Session) -> McpError:
        self._log.append(LimitReached(session.label, name, most))
        return McpError(Code.BUSY, f"Too many streams that are not read to their end: the limit {name} is {most}")

    def _let_go(self, stream: ToolStream) -> None:
        if stream.holder is not None and stream.call is not None:
            stream.holder.call_over(stream.request_id)
        stream.holder = None

    def _belongs(self, session: Session, owner: _Owner, proof: bytes) -> bool:
        """Whether a stream of `owner` is the session's; `proof` is the digest of the secret in the request."""
        own = owner.session == session.label and owner.secret is None
        proven = hmac.compare_digest(proof, owner.secret or _NOBODY)
        # Over HTTP only the session decides: event ids name streams by labels, which are those of its session.
        return own or (session.piped and ((proven and owner.secret is not None) or owner.secret in session.proofs))


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
