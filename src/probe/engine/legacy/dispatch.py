"""What one exchange brings to a legacy session: its messages are judged, started and answered here.

    what the exchange holds                          the answer
    only notifications and responses                 accepted, nothing to say
    requests that are all answered at once           their answers
    any request whose handler waits                  a stream: the waiting ones run in the session's nursery
    a call, of a client with draft streams           a stream of its own: it runs in the nursery of `DraftStreams`

So a method's answer has the same form every time: JSON exactly where the handler never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, TypeAlias

import mcp_types as types
import trio

from ...core.call import Cause
from ...core.session import DuplicateIdError, Input, State, TooManyInFlightError
from ...observe.events import LimitReached
from ...observe.log import EventLog
from ...settings import Settings
from ...wire.errors import Code, McpError, Refusal, Rejection
from ...wire.jsonrpc import (
    Json,
    MalformedResponse,
    Message,
    Notification,
    Request,
    Response,
    clip,
    encode,
    error_response,
    is_id,
    malformed_responses,
    result_response,
    shown_id,
)
from ...wire.v2025 import draft_streams
from ...wire.v2025.codec import shape_result
from ...wire.v2025.registry import request_params
from ..calls import MAX_REASON, CallScope, run
from ..clock import Clock
from ..draft_streams import DraftStreams
from ..outbox import Outbox
from ..outcome import Outcome
from ..reading import Track
from ..sessions import Session
from ..streams import Stream
from ..tool_runs import Running, Start, ToolRuns, handled
from ..tool_stream import ToolStream, lost_error
from .inlet import Inlet
from .methods import Methods
from .pings import start_pinging
from .stream_desk import StreamDesk
from .tasks import TaskDesk
from .tool_calls import ToolCalls


@dataclass(frozen=True, slots=True)
class Accepted:
    """Notifications and responses only: nothing to say."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Every request has its answer already; `bodies` are the encoded messages in request order.

    `calls` are the tool calls among them, which wait to hear that their answers were delivered.
    """

    bodies: list[bytes]
    calls: list[CallScope]


@dataclass(frozen=True, slots=True)
class Streamed:
    """The answers come on streams, which the connection that brought the requests has begun to read."""


Answer: TypeAlias = Accepted | Answered | Streamed


@dataclass(frozen=True, slots=True)
class _Told:
    """The answer to one request, and the tool call it answers, if any."""

    message: Json
    call: CallScope | None

    @property
    def id(self) -> str | None:
        return self.call.facts.id if self.call else None

    def delivered(self) -> None:
        if self.call:
            self.call.answer_delivered()


class _Response:
    """The response to one exchange while its requests run: its stream ends when the last of them is over.

    Where one connection carries everything, no response holds them together: each request has a stream of its own,
    so that what waits for a slow reader can be taken back for one of them.
    """

    def __init__(self, session: Session, inlet: Inlet) -> None:
        self._session = session
        self.inlet = inlet
        self._track: Track | None = None
        self._running = 0

    def begin(self) -> Track:
        """One more request runs; the stream as its connection reads it."""
        if self._track is None or self._session.piped:
            self._track = self.inlet.reading.add(self._session.open_stream(self.inlet.exchange), 0)
        self._running += 1
        return self._track

    def done(self, stream: Stream) -> None:
        """One of them is over."""
        self._running -= 1
        if self._running == 0 or self._session.piped:
            self._session.end_stream(stream)


class Dispatch:
    """The legacy front of one engine."""

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        settings: Settings,
        outbox: Outbox,
        methods: Methods,
        tool_calls: ToolCalls,
        desk: TaskDesk,
        runs: ToolRuns,
        streams: DraftStreams,
    ) -> None:
        self._log = log
        self._clock = clock
        self._outbox = outbox
        self._methods = methods
        self._tool_calls = tool_calls
        self._desk = desk
        self._runs = runs
        self._settings = settings
        self._streams = streams
        self._stream_desk = StreamDesk(streams, log, clock, runs)
        # Takes back what a call in flight on a pipe has said and nobody has written yet.
        self._unheard: dict[CallScope, Callable[[], None]] = {}

    def receive(self, session: Session, messages: Sequence[Message], inlet: Inlet) -> Answer:
        """Take the messages of one exchange. Never waits.

        Raises `Rejection`, before anything has started, for an id that is in flight and beyond the in-flight limit.
        """
        session.machine.touch(self._clock.now())
        self._note_early(session, messages)
        self._begin_all(session, [message for message in messages if isinstance(message, Request)])
        response, before = _Response(session, inlet), len(inlet.reading)
        answers: list[_Told] = []
        for message in messages:
            answer = self._take(session, message, response)
            if answer is not None:
                answers.append(answer)
        return self._answer(session, answers, response, reads=len(inlet.reading) > before)

    def _take(self, session: Session, message: Message, response: _Response) -> _Told | None:
        match message:
            case Request():
                return self._request(session, message, response)
            case Notification():
                return self._notified(session, message, response.inlet)
            case Response():
                self._resolved(session, message)
                return None

    def listening(self, session: Session) -> None:
        """The client has opened a GET stream."""
        start_pinging(session, self._outbox, self._settings)

    def _note_early(self, session: Session, messages: Sequence[Message]) -> None:
        early = [item.method for item in messages if isinstance(item, Request) and item.method != "ping"]
        if early and session.machine.state is State.NEGOTIATED:
            clause = "2025-11-25 basic/lifecycle, Initialization: the client MUST send an initialized notification"
            session.misuse("request before notifications/initialized", clause, clip(early[0]))

    def _answer(self, session: Session, answers: list[_Told], response: _Response, *, reads: bool) -> Answer:
        if reads and answers:
            stream = response.begin().stream
            for answer in answers:
                fitting = self._fitting(session, stream, answer.message)
                self._outbox.send(stream, fitting, call=answer.id, on_delivery=answer.delivered)
            response.done(stream)
        if reads:
            return Streamed()
        bodies = self._bodies(session, answers, response.inlet.exchange)
        return Answered(bodies, [answer.call for answer in answers if answer.call]) if bodies else Accepted()

    def _bodies(self, session: Session, answers: Sequence[_Told], exchange: int) -> list[bytes]:
        """The answers in one piece; of a batch on a pipe no more than may wait there at once."""
        most = self._settings.limits.max_pipe_bytes // 2 if session.piped else inf
        bodies: list[bytes] = []
        size = 0
        for answer in answers:
            message = answer.message
            if bodies and size + len(encode(message)) > most:
                why = f"Too large: a batch is answered with {most} bytes (half of max_pipe_bytes)"
                message = error_response(message["id"], McpError(Code.BUSY, why).body())
            bodies.append(self._outbox.answer(exchange, session.label, message, call=answer.id))
            size += len(bodies[-1])
        return bodies

    def _fitting(self, session: Session, stream: Stream, answer: Json) -> Json:
        """The answer to a request of a batch, or the refusal of one too large to stand in the log with the others.

        Nobody reads the stream yet, so what is pushed out now is lost. Half of the log is for what is answered at once,
        the other half for such refusals and for what the waiting requests send before the reader has caught up.
        """
        most = self._settings.limits.replay_bytes // 2
        if stream.replay.bytes + len(encode(answer)) <= most:
            return answer
        self._log.append(LimitReached(session.label, "replay_bytes", self._settings.limits.replay_bytes))
        why = f"Too large: beside a request that waits, a batch is answered with {most} bytes (half of replay_bytes)"
        return error_response(answer["id"], McpError(Code.BUSY, why).body())

    def _begin_all(self, session: Session, requests: Sequence[Request]) -> None:
        for at, request in enumerate(requests):
            try:
                session.machine.begin(request.id)
            except (DuplicateIdError, TooManyInFlightError) as error:
                for earlier in requests[:at]:
                    session.machine.finish(earlier.id)
                raise self._refused(session, request, error) from None
        self._note_used(session, requests)

    def _note_used(self, session: Session, requests: Sequence[Request]) -> None:
        """Record each id that the session has used before, also for a request that the client only repeats.

        The clause knows no exception for a repeated request, and this one runs a second time. A request that was
        refused by HTTP status never began, so its id may come again: 429 and 503 ask for that.
        """
        for request in requests:
            if session.used_ids.use(request.id):
                clause = f"{session.machine.revision} basic, Requests: an id is not used twice within a session"
                session.misuse("id used before", clause, f"id {shown_id(request.id)} of {clip(request.method)}")

    def _refused(self, session: Session, request: Request, error: ValueError) -> Rejection:
        if isinstance(error, DuplicateIdError):
            session.misuse("duplicate id", "2025-11-25 basic: ids are not used twice within a session", str(error))
            return Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: {error}", id=request.id)
        self._log.append(LimitReached(session.label, "max_in_flight", len(session.machine.in_flight)))
        retry = ((b"retry-after", b"1"),)
        return Rejection(Refusal.TOO_MANY_REQUESTS, f"Too many requests: {error}", id=request.id, headers=retry)

    def _request(self, session: Session, request: Request, response: _Response) -> _Told | None:
        """The answer, or None when the request now runs."""
        if request.method == "tools/call" and session.streams:
            return self._on_stream(session, request, response.inlet)
        handle = self._stream_desk.handle if request.method in draft_streams.METHODS else self._handle
        outcome = handled(lambda: handle(session, request, response.inlet))
        if not isinstance(outcome, Outcome):
            self._launch(session, request, outcome, response)
            return None
        session.machine.finish(request.id)
        return _Told(self._answered(session, request, outcome), outcome.call)

    def _on_stream(self, session: Session, request: Request, inlet: Inlet) -> _Told | None:
        """A call on a draft stream of its own; None, or the refusal where there is no room for one."""
        try:
            stream = self._streams.open(session, request.id, inlet.exchange)
        except McpError as full:
            session.machine.finish(request.id)
            return _Told(error_response(request.id, full.body()), None)
        inlet.reading.add(stream, 0)
        outcome = handled(lambda: self._handle(session, request, inlet))
        if isinstance(outcome, Outcome):
            session.machine.finish(request.id)
            told = _Told(self._answered(session, request, outcome), outcome.call)
            self._tell(stream, told)
            self._streams.close(stream)
            return None if stream.machine.lost is None else self._too_large(stream, request)
        running = outcome(stream)
        stream.call = session.calls[request.id] = running.call
        self._streams.submit(partial(self._run_on, stream, session, request, running))
        return None

    async def _run_on(self, stream: ToolStream, session: Session, request: Request, running: Running) -> None:
        """The call of a draft stream. Owned by `DraftStreams`: connection and session may end before it."""

        def tell(outcome: Outcome | None) -> None:
            self._streams.call_over(stream)
            if outcome is None:
                stream.unanswered = True
            else:
                self._tell(stream, _Told(self._answered(session, request, outcome), running.call))
            self._streams.close(stream)

        running.call.answer = tell
        try:
            outcome = await running.work()
            if stream.call is running.call:
                tell(outcome)
        finally:
            self._streams.call_over(stream)
            self._streams.close(stream)

    def _too_large(self, stream: ToolStream, request: Request) -> _Told:
        """The answer to a call whose stream was lost before anybody could read it."""
        assert stream.machine.lost is not None
        stream.told = True
        return _Told(error_response(request.id, lost_error(stream.machine.lost).body()), None)

    def _tell(self, stream: ToolStream, told: _Told) -> None:
        def delivered() -> None:
            stream.told = True
            told.delivered()

        if stream.replay.closed:
            self._outbox.drop(stream.session, told.message, "the stream is lost", call=told.id)
        else:
            self._outbox.send(stream, told.message, call=told.id, on_delivery=delivered)
        if not stream.kept and told.call is not None:
            told.call.answer_lost()

    def _answered(self, session: Session, request: Request, outcome: Outcome) -> Json:
        if outcome.error is not None:
            return error_response(request.id, outcome.error.body())
        shaped = shape_result(request.method, session.machine.revision, outcome.result or {})
        return result_response(request.id, shaped)

    def _handle(self, session: Session, request: Request, inlet: Inlet) -> Json | Outcome | Start:
        exchange = inlet.exchange
        params = request_params(request.method, session.machine.revision, request.params)
        match params:
            case types.CallToolRequestParams():
                return self._tool_calls.call(session, request, params, exchange)
            case types.GetTaskRequestParams():
                return self._desk.get(session, params)
            case types.CancelTaskRequestParams():
                return self._desk.cancel(session, params)
            case types.GetTaskPayloadRequestParams():
                return partial(self._start_result, session, request, exchange, params.task_id)
            case types.InitializeRequestParams():
                raise McpError(Code.INVALID_REQUEST, "Invalid Request: this session is initialized already")
            case types.PaginatedRequestParams() if request.method == "tasks/list":
                return self._desk.list(session, params)
        return self._methods.answer(session, request.method, params)

    def _start_result(
        self, session: Session, request: Request, exchange: int, task_id: str, stream: Stream
    ) -> Running:
        call = self._runs.open_plain(exchange, request.id, request.method, session.label)

        async def work() -> Outcome | None:
            return call.settle(await run(call, lambda: self._desk.result(session, task_id, stream), trio.sleep_forever))

        return Running(call, work)

    def _launch(self, session: Session, request: Request, start: Start, response: _Response) -> None:
        track = response.begin()
        stream = track.stream
        running = start(stream)
        session.calls[request.id] = running.call
        if session.piped:
            self._unheard[running.call] = partial(response.inlet.reading.drop, track, "cancelled by the client")

        def over() -> None:
            if session.calls.get(request.id) is running.call:
                self._unheard.pop(running.call, None)
                session.call_over(request.id)
                response.done(stream)

        def tell(outcome: Outcome | None) -> None:
            if outcome is None:
                stream.unanswered = True
            else:
                told = _Told(self._answered(session, request, outcome), running.call)
                self._outbox.send(stream, told.message, call=told.id, on_delivery=told.delivered)
            over()

        async def job() -> None:
            try:
                outcome = await running.work()
                if session.calls.get(request.id) is running.call:
                    tell(outcome)
            finally:
                over()

        running.call.answer = tell
        session.submit(job)

    def refused(self, session: Session, value: Any, why: str) -> None:
        """A client's messages in `value` are refused as malformed because of `why`: the questions they answer fail."""
        for answer in malformed_responses(value, why):
            if self._settles(session, answer):
                clause = f"{session.machine.revision} basic, Responses"
                session.misuse("malformed answer", clause, f"id {shown_id(answer.id)}: {answer.why}")

    def _settles(self, session: Session, answer: Response | MalformedResponse) -> bool:
        return session.client_requests.resolve(answer) or self._streams.resolve(session, answer)

    def _resolved(self, session: Session, response: Response) -> None:
        if not self._settles(session, response):
            clause = "JSON-RPC 2.0, 5: a response answers a request"
            session.misuse("answer without a question", clause, f"id {shown_id(response.id)}")

    def _notified(self, session: Session, message: Notification, inlet: Inlet) -> _Told | None:
        """Nothing answers a notification, but what the draft calls a request although its example has no id."""
        match message.method:
            case "notifications/initialized":
                session.machine.receive(Input.INITIALIZED)
            case "notifications/cancelled":
                self._cancelled(session, message)
            case "stream/resume":
                return self._resumed(session, message, inlet)
            case "notifications/roots/list_changed" | "notifications/progress" | "notifications/tasks/status":
                pass
            case unknown:
                session.misuse(
                    "unknown notification", f"{session.machine.revision} schema, ClientNotification", clip(unknown)
                )

        return None

    def _resumed(self, session: Session, message: Notification, inlet: Inlet) -> _Told | None:
        try:
            self._stream_desk.take_up(session, message.params, inlet)
        except McpError as refused:
            return _Told({"jsonrpc": "2.0", "error": refused.body()}, None)
        return None

    def _cancelled(self, session: Session, message: Notification) -> None:
        """2025-11-25 basic/utilities/cancellation: invalid ones are ignored; this server records them as well."""
        clause = "2025-11-25 basic/utilities/cancellation, Behavior Requirements"
        params = message.params or {}
        id, reason = params.get("requestId"), params.get("reason", "")
        if id is None or not is_id(id) or not isinstance(reason, str):
            session.misuse("malformed cancellation", clause, "requestId or reason has the wrong type")
            return
        named, call = f"request {shown_id(id)}", session.calls.get(id)
        if call is not None:
            if call.cancel(Cause.NOTIFICATION, clip(reason, MAX_REASON) or None) and call in self._unheard:
                self._unheard[call]()
        elif any(task.call.facts.request_id == id for task in self._desk.tasks.of(session.label)):
            session.misuse("notifications/cancelled for a task", clause, f"{named} made a task: use tasks/cancel")
        elif id == session.initialize_id:
            session.misuse("notifications/cancelled for initialize", clause, named)
        else:
            session.misuse("cancellation without effect", clause, f"{named} is unknown or finished")
