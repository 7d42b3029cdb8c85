"""Draft streams: the streams of tool calls that outlive the connection which asked for them, and their owner.

    DraftStreams.serve     for the life of the engine
      one call             a `tools/call` on a stream: it belongs to no connection, and to no session
      the watch            streams that nobody came back for are abandoned, finished ones forgotten

The owner of a stream is its session where a request names that (HTTP), and else whoever has a secret which the server
hands out with it: connections drop, and a new one has a new session.

Three things that end together everywhere else end apart here: the connection that asked, the session whose connection
it was, and the call. So each stream has three links, and each link has one rule.

* `owner` never changes. It decides who may resume, poll, or learn that the stream was lost.
* `holder` is the session on whose connection the client is now. The call's request id is in flight in that session and
  in no other, so that the client can cancel it there, and answer its questions there. `hand_over` moves it, `release`
  takes it away with the connection.
* `call` is None when the call is over. It runs in the nursery of this service, so neither of the other two ends it.

A stream leaves the table in one of two ways. It is forgotten when its client has had all of it and the time to ask
again has passed. It is lost when nobody came back in time, when more waits than may be kept, or when the server has no
room, or when it ended with its session. Then its call is cancelled, and its owner can learn why it was lost, as long as
there is one: silence about a loss would be worse than the loss.

The number and the bytes of all streams are bounded. When a bound is reached, finished streams go first, and then the
client that holds most loses one of its own: a client cannot push out the stream of one that holds less.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from math import inf
from typing import TypeAlias

import trio

from ...core.call import Cause
from ...core.draft_stream import Interval, Lost
from ...log.context import Recorder
from ...log.events import LimitReached, StreamLost
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import RefusedResponse, RequestId, Response
from ...wire.v2025 import draft_streams as wire
from ..calls.outcome import contain
from ..calls.request_context import RequestContext
from ..calls.scope import CallScope
from ..services import Services
from ..sessions import Session
from ..shares import Limit, LimitError
from .outbox import send
from .tool_stream import WHY, Owner, ToolStream, digest_of, lost_error

Job: TypeAlias = Callable[[], Awaitable[None]]

_NOBODY = b"\0" * sha256().digest_size
# The lost streams that can still be told from ids that never existed: more than one client loses in a bad hour.
_MOST_LOST = 1000
_TOO_MANY = "Too many streams that are not read to their end: the limit {name} is {most}"


@dataclass(frozen=True, slots=True)
class _Grave:
    """The owner of a lost stream, and why it was lost."""

    owner: Owner
    lost: Lost


class DraftStreams:
    """The draft streams of one engine. `serve` owns the calls on them; the other methods never wait."""

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

    def open(self, session: Session, request_id: RequestId, context: RequestContext, call: Recorder) -> ToolStream:
        """A stream for the call of this recorder, with its first message.

        Raises `McpError` -32000 where there is no room.
        """
        limits, new_id = self._limits, self._services.new_id
        if session.piped and session.secret is None:
            session.secret = new_id()
            session.proofs.add(digest_of(session.secret))
        self._make_room(session, context)
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
        """Have the call of a stream started in this service's nursery."""
        self._inbox.send_nowait(job)

    def close(self, stream: ToolStream) -> None:
        """Nothing more comes on the stream: its last message says so."""
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
        """Wait until no call runs."""
        while any(stream.call is not None for stream in self):
            await self._quiet.park()

    def find(self, session: Session, reference: wire.Reference) -> ToolStream:
        """The stream that a client means, if it is that client's.

        Raises `McpError`: -32602 for an unknown one and for somebody else's, the same in the same time, and 1003 for
        one that this client has lost.
        """
        digest, proof = digest_of(reference.stream_id or ""), digest_of(reference.secret)
        stream, grave = self._streams.get(digest), self._lost.get(digest)
        owner = stream.owner if stream is not None else grave.owner if grave is not None else Owner("", _NOBODY)
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
        proof = digest_of(secret)
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

    def resolve(self, session: Session, answer: Response | RefusedResponse, recorder: Recorder) -> bool:
        """A client's answer may be to a question on one of the streams that its session holds."""
        held = (stream for stream in self._of(session) if stream.holder is session)
        return any(stream.questions.resolve(answer, recorder) for stream in held)

    def question(self, session: Session, id: RequestId | None) -> Recorder | None:
        """The recorder of the open question on one of the streams that a session holds, by its id."""
        found = (stream.questions.question(id) for stream in self._of(session) if stream.holder is session)
        return next((question for question in found if question is not None), None)

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
        size, most = stream.replay.bytes, self._limits.draft_stream_bytes
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
            hoard = max(self._hoards().values(), key=lambda streams: sum(stream.weight for stream in streams))
            largest = max(hoard, key=lambda stream: (stream.reader is None, stream.weight))
            victim = growing if growing in hoard else largest
            victim.recorder.caused_by(None).append(LimitReached("draft_stream_bytes", most))
            victim.machine.lose(Lost.SERVER_FULL)
            if victim is not growing:
                self._remove(victim)

    def _remove(self, stream: ToolStream) -> None:
        digest, lost = digest_of(stream.stream_id), stream.machine.lost
        del self._streams[digest]
        hoard = self._by_owner[stream.owner.key]
        del hoard[digest]
        if not hoard:
            del self._by_owner[stream.owner.key]
        self._bytes -= stream.weight
        self._limit.release(stream.address)
        if lost is not None:
            self._bury(digest, stream, lost)
        self._let_go(stream)
        stream.forget()

    def _bury(self, digest: bytes, stream: ToolStream, lost: Lost) -> None:
        # The owner cannot ask for it once its session has ended; and the end of a session cancels its calls itself.
        asked_for = lost is not Lost.SESSION_ENDED
        if asked_for:
            self._lost[digest] = _Grave(stream.owner, lost)
        if len(self._lost) > _MOST_LOST:
            self._lost.popitem(last=False)
        stream.recorder.append(StreamLost(lost.value, stream.machine.untaken))
        if stream.call is not None and asked_for:
            stream.call.cancel(Cause.DISCONNECT, WHY[lost])

    def _hoards(self) -> dict[str | bytes, list[ToolStream]]:
        """All streams, by the client address that they came from; those of this machine by their owners."""
        hoards: dict[str | bytes, list[ToolStream]] = {}
        for stream in self:
            hoards.setdefault(stream.address or stream.owner.key, []).append(stream)
        return hoards

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
            # The client that has most has to give, unless it is the one that asks.
            hoards = self._hoards()
            hoard, own = max(hoards.values(), key=len), len(hoards.get(session.holder or "", mine))
            away = [stream for stream in hoard if stream.reader is None]
            if len(hoard) <= own + 1 or not away:
                raise self._limit.full(context.recorder)
            away[0].machine.lose(Lost.SERVER_FULL)
            self._remove(away[0])

    def _give_up(self, streams: list[ToolStream]) -> bool:
        """Forget one that is finished, if there is any."""
        stream = next((stream for stream in streams if stream.finished), None)
        if stream is not None:
            self._remove(stream)
        return stream is not None

    def _let_go(self, stream: ToolStream) -> None:
        if stream.holder is not None and stream.call is not None:
            stream.holder.call_over(stream.request_id)
        stream.holder = None

    def _belongs(self, session: Session, owner: Owner, proof: bytes) -> bool:
        """Whether a stream of `owner` is the session's; `proof` is the digest of the secret in the request."""
        own = owner.session == session.label and owner.secret is None
        proven = hmac.compare_digest(proof, owner.secret or _NOBODY)
        # Over HTTP only the session decides: event ids name streams by labels, which are those of its session.
        return own or (session.piped and ((proven and owner.secret is not None) or owner.secret in session.proofs))
