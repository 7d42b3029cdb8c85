"""Legacy sessions, their requests to the client, and the service that owns their work.

    SessionService.serve            one nursery for all sessions, for the life of the engine
      Session.run                   one nursery per session; ends when the session has ended
        one call, one subscription  started from the session's inbox

An HTTP handler puts a job into the session's inbox. So work survives the connection of its request (2025-11-25
basic/transports: "Disconnection SHOULD NOT be interpreted as the client cancelling its request") and has an owner.

The ids of requests to the client count from 1 in each session, so one id may be in use in both directions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import trio

from ..core.call import Cause
from ..core.session import SessionInput, SessionMachine, UsedIds
from ..log.bounded import Newest
from ..log.context import Recorder
from ..log.events import ClientMisuse, SessionClosed, SessionOpened
from ..log.redaction import MOST_CAPABILITIES, bounded, fingerprint
from ..wire.jsonrpc import Json, RefusedResponse, RequestId, Response, clip
from ..wire.v2025 import draft_streams
from ..wire.v2025.registry import asked_capabilities
from .calls.outcome import contain
from .calls.scope import CallScope, FinishedCalls
from .catalogue.offers import Offer
from .catalogue.tool import ClientRequestError, LogLevel
from .messages import ClientInfo, RequestContext
from .services import Limit, Services
from .streams.stream import ReplayBudget, Stream


@dataclass(slots=True, eq=False)
class _Pending:
    answered: trio.Event
    question: Recorder | None = None
    answer: Response | RefusedResponse | None = None
    answered_by: Recorder | None = None


class ClientAnswer(NamedTuple):
    """A client's result, and the recorder of its message."""

    result: Json
    recorder: Recorder


class ClientRequests:
    """The requests of one session, or of one stream, that wait for the client.

    The ids are numbers. With a `prefix` they are strings: such requests may outlive their session.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._next = 0
        self._pending: dict[RequestId, _Pending] = {}

    def resolve(self, answer: Response | RefusedResponse, recorder: Recorder) -> bool:
        """Take a client's answer, or a message that was refused in its place.

        Returns False if no request waits for this id: it is unknown, answered before, or given up.
        """
        pending = None if answer.id is None else self._pending.pop(answer.id, None)
        if pending is None:
            return False
        pending.answer, pending.answered_by = answer, recorder
        pending.answered.set()
        return True

    def question(self, id: RequestId | None) -> Recorder | None:
        """The recorder of the request that waits for an answer with this id; its cause is the `message.emitted`."""
        pending = None if id is None else self._pending.get(id)
        return None if pending is None else pending.question

    async def ask(
        self,
        method: str,
        send: Callable[[RequestId], Recorder | None],
        withdraw: Callable[[RequestId, str], None],
        timeout_s: float,
    ) -> ClientAnswer:
        """Send a request through `send(id)`, which returns its recorder, and wait for its result.

        On time-out, and when the work that asks is cancelled, this calls `withdraw(id, reason)` (2025-11-25
        basic/lifecycle, Timeouts: "the sender SHOULD issue a cancellation notification"). The caller decides whether to
        send that.

        Raises `ClientRequestError` on time-out, for an error answer, and for a malformed one.
        """
        self._next += 1
        id: RequestId = f"{self._prefix}{self._next}" if self._prefix else self._next
        pending = _Pending(trio.Event())
        self._pending[id] = pending
        try:
            pending.question = send(id)
            with trio.fail_after(timeout_s):
                await pending.answered.wait()
        except trio.TooSlowError:
            # An answer may arrive after the time has passed and before this line runs. It counts.
            if pending.answer is None:
                withdraw(id, f"no answer within {timeout_s:g} s")
                raise ClientRequestError(f"The client did not answer {method} within {timeout_s:g} s") from None
        except trio.Cancelled:
            if pending.answer is None:
                withdraw(id, "the work that asked was cancelled")
            raise
        finally:
            self._pending.pop(id, None)
        assert pending.answered_by is not None, "the event is set only together with the answer"
        return ClientAnswer(_result(method, pending.answer), pending.answered_by)


def _result(method: str, answer: Response | RefusedResponse | None) -> Json:
    assert answer is not None, "the event is set only together with the answer"
    if isinstance(answer, RefusedResponse):
        fault = "is malformed" if answer.malformed else "was not taken"
        raise ClientRequestError(f"The client's answer to {method} {fault}: {answer.why}")
    if answer.error is not None:
        error = answer.error
        raise ClientRequestError(f"The client answered {method} with error {error['code']}: {error['message']}")
    return dict(answer.result or {})


Job: TypeAlias = Callable[[], Awaitable[None]]

# An earlier retry would find no free place either: a session goes on for long.
_RETRY_S = 60

# A session remembers this many strings and runs of numbers: at most 100 kB of ids. A client with consecutive ids takes
# one run. Beyond the bound a second use is not noticed.
_MOST_USED_IDS = 250
# Two megabytes.
_MOST_ENDED = 10_000

OnEnd: TypeAlias = Callable[[str, Cause, str, Recorder | None], None]
"""Ends the session with a label: the arguments are the cause, the reason, and the recorder of its request or None."""


class Session:
    """One client's session: its machine, its streams, its calls in flight, and the client's declarations.

    `context` is that of its `initialize`; `recorder` is for facts without a message as cause. A `piped` session belongs
    to one connection and ends with it, so no stream can be resumed. With `streams` the client declared draft streams;
    `secret` is its proof of ownership, and `proofs` are the digests of the secrets that it has shown.
    """

    def __init__(
        self,
        id: str,
        machine: SessionMachine,
        offer: Offer,
        context: RequestContext,
        services: Services,
        room: ReplayBudget,
        on_end: OnEnd,
    ) -> None:
        settings = services.settings
        self.id = id
        self.label = context.recorder.context.session or ""
        self.machine = machine
        self.transport = context.transport
        self.piped = context.transport != "http"
        self.streams = False
        self.holder = context.holder
        self.secret: str | None = None
        self.proofs: set[bytes] = set()
        self.client = context.client
        self.offer = offer
        self.origin = context.origin
        connection = context.recorder.context.connection if self.piped else None
        self.recorder = context.recorder.bind(connection=connection, exchange=None).caused_by(None)
        self.interactions = services.interactions
        self.ping: trio.CancelScope | None = None
        self.initialize_id: RequestId | None = None
        self.log_level: LogLevel = "info"
        self.used_ids = UsedIds(_MOST_USED_IDS)
        self.calls: dict[RequestId, CallScope] = {}
        self.finished = FinishedCalls()
        self.client_requests = ClientRequests()
        self.subscriptions: dict[str, trio.CancelScope] = {}
        self.tickers = 0
        self._standalone: deque[Stream] = deque()
        self._standalone_count = 0
        self._quiet = trio.lowlevel.ParkingLot()
        self._streams: dict[str, Stream] = {}
        self._finished: deque[Stream] = deque()
        # An upper bound: an ended stream does not grow, but may be evicted without a call here.
        self._finished_bytes = 0
        self._room = room
        self._stream_count = 0
        self._reader_came = trio.lowlevel.ParkingLot()
        # Each job belongs to a request in flight, to a ticker or to the ping, and each of these has a limit.
        capacity = 2 * settings.limits.max_in_flight + settings.limits.max_subscriptions
        self._inbox, self._jobs = trio.open_memory_channel[Job](capacity)
        self._ended = trio.Event()
        self._clock = services.clock
        self._settings = settings
        self._on_end = on_end

    def submit(self, job: Job) -> None:
        """Have a job started in the session's nursery. Raises `trio.WouldBlock` when the inbox is full."""
        self._inbox.send_nowait(job)

    def next_stream_label(self) -> str:
        self._stream_count += 1
        return f"p{self._stream_count}"

    def open_stream(self, request: Recorder) -> Stream:
        return self._open(self.next_stream_label(), "response", request)

    def _open(self, label: str, purpose: str, request: Recorder) -> Stream:
        stream = Stream(label, purpose, request, self._settings.limits, resumable=not self.piped)
        self._streams[label] = stream
        if not self.piped:
            # A pipe bounds its unsent bytes itself.
            self._room.add(stream, self.holder or self.label)
        return stream

    def keep(self, stream: Stream) -> None:
        """Make a stream of another owner readable here; it keeps the session alive until `drop`."""
        if not self.piped:
            self._streams[stream.id] = stream
            self.machine.hold()

    def drop(self, stream: Stream) -> None:
        if self._streams.pop(stream.id, None) is not None:
            self.machine.release(self._clock.now())

    def open_standalone(self, request: Recorder) -> Stream:
        """A new stream for messages without a request; `request` is the GET, or the `initialize` on the connection.

        2025-11-25 basic/transports, Multiple Connections: "The client MAY remain connected to multiple SSE streams
        simultaneously", so a further GET leaves the earlier ones as they are.
        """
        self._standalone_count += 1
        stream = self._open(f"g{self._standalone_count}", "standalone", request)
        self._standalone.append(stream)
        if len(self._standalone) > self._settings.limits.max_standalone_streams:
            self._end_one_standalone()
        return stream

    def _end_one_standalone(self) -> None:
        unread = [stream for stream in self._standalone if stream.reader is None][:-1]
        stream = unread[0] if unread else self._standalone[0]
        self._standalone.remove(stream)
        self.end_stream(stream)

    @property
    def standalone(self) -> Stream | None:
        """The newest GET stream with a reader, else the newest."""
        newest_first = list(reversed(self._standalone))
        read = [stream for stream in newest_first if stream.reader is not None]
        return next(iter(read or newest_first), None)

    def end_stream(self, stream: Stream) -> None:
        stream.end(self._clock.now())
        if not stream.resumable:
            del self._streams[stream.id]
            return
        self._finished.append(stream)
        self._finished_bytes += stream.replay.bytes
        self.forget_streams()

    def forget_streams(self) -> None:
        """Drop finished streams that are too old, or the oldest beyond the bounds."""
        limits = self._settings.limits
        oldest = self._clock.now() - self._settings.stream_retention_s
        if self._finished_bytes > limits.replay_bytes_per_session:
            self._finished_bytes = sum(stream.replay.bytes for stream in self._finished)
        while self._finished and (
            len(self._finished) > limits.replay_streams
            or self._finished_bytes > limits.replay_bytes_per_session
            or (self._finished[0].ended_at or 0.0) <= oldest
        ):
            stream = self._finished.popleft()
            self._finished_bytes -= stream.replay.bytes
            del self._streams[stream.id]
            self._room.remove(stream)

    def find_stream(self, id: str) -> Stream | None:
        self.forget_streams()
        return self._streams.get(id)

    def had_stream(self, id: str) -> bool:
        counts = {"p": self._stream_count, "g": self._standalone_count}
        number = id[1:] if id[1:].isdecimal() and len(id) < 12 else "0"
        return 0 < int(number) <= counts.get(id[:1], 0)

    def call_over(self, id: RequestId) -> None:
        self.finished.store(id, self.calls.pop(id).recorder)
        self.machine.finish(id)
        self.machine.touch(self._clock.now())
        self._quiet.unpark_all()

    async def wait_quiet(self) -> None:
        while self.calls:
            await self._quiet.park()

    def reader_attached(self) -> None:
        """Wake the tasks that wait for a reader."""
        self._reader_came.unpark_all()

    async def wait_reader(self) -> None:
        await self._reader_came.park()

    def misuse(self, what: str, clause: str, detail: str = "") -> None:
        self.recorder.append(ClientMisuse(what, clause, detail))

    def end(self, cause: Cause, why: str, by: Recorder | None = None) -> None:
        """End the session: its calls and tasks are cancelled, its streams end. Harmless when repeated.

        `by` is the recorder of the DELETE, if there is one.
        """
        if self.machine.closed:
            return
        self.machine.receive(SessionInput.END)
        (by or self.recorder).bind(session=self.label).append(SessionClosed(why))
        for call in list(self.calls.values()):
            call.cancel(cause, why, by)
        self._on_end(self.label, cause, why, by)
        for scope in [*self.subscriptions.values(), *([] if self.ping is None else [self.ping])]:
            scope.cancel()
        self._inbox.close()
        self._ended.set()

    async def run(self) -> None:
        """Start jobs until the session has ended, then wait for them and end its streams. Owned by `SessionService`.

        A ticker or the ping never ends by itself: it runs in a scope that `end` cancels.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_time)
                async for job in self._jobs:
                    nursery.start_soon(contain, job, name=job)
        finally:
            for stream in list(self._streams.values()):
                stream.end(self._clock.now())
                self._room.remove(stream)

    async def _watch_time(self) -> None:
        pause_s = min(self._settings.session_idle_s, self._settings.stream_retention_s)
        while not self._ended.is_set():
            now, deadline = self._clock.now(), self.machine.deadline
            if deadline is not None and deadline <= now:
                self.end(Cause.SESSION_END, "idle")
            self.forget_streams()
            # The deadline moves with each message, so it is checked when it passes and not followed.
            with trio.move_on_at(now + pause_s if deadline is None else min(deadline, now + pause_s)):
                await self._ended.wait()


class SessionService:
    """All sessions of one engine. `serve` owns them; the other methods are called from any task and never wait."""

    def __init__(self, services: Services, on_end: OnEnd) -> None:
        self._services = services
        self._settings = services.settings
        why = "Too many sessions: the limit {name} is {most}"
        self._limit = Limit("max_sessions", why, services.shares, retry_s=_RETRY_S)
        self.replay = ReplayBudget(services.limits.max_replay_bytes, services.shared.replay)
        self._on_end = on_end
        self._sessions: dict[str, Session] = {}
        # Keyed by digest, since the id is a secret.
        self._ended: Newest[bytes, str] = Newest(_MOST_ENDED)
        self._count = 0
        # A job waits here until the service's next turn, so the bound is the largest number of sessions.
        self._inbox, self._jobs = trio.open_memory_channel[Session](services.limits.max_sessions)

    def open(
        self, offer: Offer, capabilities: Mapping[str, Any], client: Mapping[str, Any], context: RequestContext
    ) -> Session:
        limits = self._settings.limits
        self._limit.acquire(context.holder, context.recorder)
        machine = SessionMachine(
            offer.revision,
            asked_capabilities(capabilities),
            max_in_flight=limits.max_in_flight,
            idle_s=self._settings.session_idle_s,
            first_s=self._settings.session_first_s,
            now=self._services.clock.now(),
        )
        id = self._services.new_id()
        context.client = ClientInfo(clip(str(client.get("name", ""))), clip(str(client.get("version", ""))))
        context.recorder = context.recorder.bind(session=self.next_label())
        session = Session(id, machine, offer, context, self._services, self.replay, self._on_end)
        session.streams = draft_streams.declared(capabilities)
        self._sessions[id] = session
        self._inbox.send_nowait(session)
        declared, named = bounded(capabilities, MOST_CAPABILITIES), context.client
        context.recorder.append(
            SessionOpened(fingerprint(id), offer.revision, named.name, named.version, declared, context.transport)
        )
        return session

    def next_label(self) -> str:
        self._count += 1
        return f"s{self._count}"

    def find(self, id: str) -> Session | None:
        session = self._sessions.get(id)
        return None if session is None or session.machine.closed else session

    def label(self, id: str) -> str | None:
        """The label of the session with this id, among the present and the 10,000 newest ended ones."""
        session = self._sessions.get(id)
        return self._ended.get(_digest(id)) if session is None else session.label

    def __iter__(self) -> Iterator[Session]:
        return (session for session in list(self._sessions.values()) if not session.machine.closed)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for session in self._jobs:
                nursery.start_soon(self._run, session)

    async def _run(self, session: Session) -> None:
        try:
            await session.run()
        finally:
            del self._sessions[session.id]
            self._ended.store(_digest(session.id), session.label)
            self._limit.release(session.holder)


def _digest(id: str) -> bytes:
    return blake2b(id.encode(errors="surrogatepass"), digest_size=16).digest()
