"""The router of the legacy era: it judges, starts and answers the messages of one exchange in a session.

    the exchange has                                 the answer
    only notifications and responses                 accepted, without a message
    requests that are all answered at once           their answers
    a request with a handler that waits              a stream: such requests run in the session's nursery
    a call, of a client with draft streams           a stream of its own: it runs in the nursery of `DraftStreams`

An exchange is taken in one step, without a checkpoint. First each request id is marked as in flight, or the whole
exchange is refused before any of it has begun. Then each message is handled in its order. If a handler returns the way
to begin its work, the response becomes a stream, and the answers of the other requests go on it too.

A request stops being in flight in the same step in which its answer is put on its stream, or in which it is settled
without an answer. A cancellation finds a request that will be answered, or none (`RunningRequest`).

Over HTTP, one stream answers a whole exchange. On a pipe, each request has its own: the messages of one request that
wait for a slow reader can then be dropped alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeAlias

import trio

from ...core.session import DuplicateIdError, SessionInput, SessionState, TooManyInFlightError
from ...log.context import Recorder
from ...log.events import LimitReached
from ...wire.client_messages import (
    CallToolRequestParams,
    CancelTaskRequestParams,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    InitializeRequestParams,
    PaginatedRequestParams,
)
from ...wire.errors import Code, McpError, Refusal, Rejection
from ...wire.jsonrpc import (
    Json,
    Notification,
    RefusedResponse,
    Request,
    RequestId,
    Response,
    clip,
    encode,
    error_response,
    refused_responses,
    result_response,
    shown_id,
)
from ...wire.v2025 import draft_streams
from ...wire.v2025.registry import request_params, shape_result
from ..calls.outcome import Outcome, handled
from ..calls.scope import CallScope, run, take_cancellation
from ..calls.tool_runs import RunningRequest, Start, ToolRuns, Work
from ..messages import Received, Repeats, RequestContext
from ..services import Services
from ..sessions import Session
from ..streams.draft_streams import DraftStreams, ToolStream, lost_error
from ..streams.reading import Reading, Track
from ..streams.stream import Emitted, Stream, drop, send
from ..streams.stream import answer as answer_whole
from ..tasks import TaskService
from .methods import Methods, StreamMethods, start_pinging
from .tasks import LegacyTools

_Requests: TypeAlias = Sequence[tuple[Request, RequestContext]]


class _Answer(NamedTuple):
    message: Json
    recorder: Recorder


class _ResponseStream:
    """The response to one exchange while its requests run.

    A `shared` one answers several requests, and belongs to none of their calls.
    """

    def __init__(self, session: Session, reading: Reading, *, shared: bool) -> None:
        self._session = session
        self.reading = reading
        self.shared = shared
        self._track: Track | None = None
        self._running = 0

    def begin(self, request: Recorder) -> Track:
        if self._track is None or self._session.piped:
            opened_for = request.bind(call=None, task=None) if self.shared else request
            self._track = self.reading.add(self._session.open_stream(opened_for), 0)
        self._running += 1
        return self._track

    def done(self, stream: Stream) -> None:
        self._running -= 1
        if self._running == 0 or self._session.piped:
            self._session.end_stream(stream)


def _answered(session: Session, request: Request, outcome: Outcome) -> Json:
    if outcome.error is not None:
        return error_response(request.id, outcome.error.body())
    shaped = shape_result(request.method, session.machine.revision, outcome.result or {})
    return result_response(request.id, shaped)


class LegacyRouter:
    """The legacy front of one engine."""

    def __init__(self, services: Services, tasks: TaskService, streams: DraftStreams, runs: ToolRuns) -> None:
        self._repeats = Repeats(services.log)
        self._clock = services.clock
        self._settings = services.settings
        self._methods = Methods(services)
        self._tools = LegacyTools(services, tasks, runs)
        self._runs = runs
        self._streams = streams
        self._stream_methods = StreamMethods(streams, services.clock, runs)

    def question(self, session: Session, id: RequestId | None) -> Recorder | None:
        return session.client_requests.question(id) or self._streams.question(session, id)

    def receive(self, session: Session, received: Sequence[Received], reading: Reading) -> list[Emitted] | None:
        """Take the messages of one exchange. Returns the answers in request order; the caller notes their delivery.

        Without requests there are none. None: they come on streams, and `reading` reads these already.

        Raises `Rejection` for an id in flight and beyond the in-flight limit, before any message has had an effect.
        """
        session.machine.touch(self._clock.now())
        requests = [(message, context) for message, context in received if isinstance(message, Request)]
        if session.machine.state is SessionState.NEGOTIATED:
            self._note_early(requests)
        self._begin_all(session, requests)
        shared = not session.piped and len(requests) > 1
        response, before = _ResponseStream(session, reading, shared=shared), len(reading)
        answers: list[_Answer] = []
        for message, context in received:
            context.client = session.client
            answer: _Answer | None = None
            match message:
                case Request():
                    answer = self._request(session, message, context, response)
                case Notification():
                    answer = self._notified(session, message, context, reading)
                case Response():
                    self._resolved(session, message, context)
            if answer is not None:
                answers.append(answer)
        if len(reading) == before:
            return self._emitted(session, answers)
        if answers:
            self._answer(response, answers)
        return None

    def listening(self, session: Session) -> None:
        start_pinging(session, self._settings)

    def disconnected(self, session: Session) -> None:
        self._streams.release(session)

    def _note_early(self, requests: _Requests) -> None:
        early = [(message, context) for message, context in requests if message.method != "ping"]
        if early:
            clause = "2025-11-25 basic/lifecycle, Initialization: the client MUST send an initialized notification"
            message, context = early[0]
            context.misuse("request before notifications/initialized", clause, clip(message.method))

    def _answer(self, response: _ResponseStream, answers: Sequence[_Answer]) -> None:
        stream = response.begin(answers[0].recorder).stream
        for answer in answers:
            send(answer.recorder, stream, self._fitting(stream, answer))
        response.done(stream)

    def _emitted(self, session: Session, answers: Sequence[_Answer]) -> list[Emitted]:
        most = self._settings.limits.max_pipe_bytes // 2 if session.piped else inf
        emitted: list[Emitted] = []
        size = 0
        for message, recorder in answers:
            fitting = message
            if emitted and size + len(encode(message)) > most:
                why = f"Too large: a batch is answered with {most} bytes (half of max_pipe_bytes)"
                fitting = error_response(message["id"], McpError(Code.BUSY, why).body())
            emitted.append(answer_whole(recorder, fitting))
            size += len(emitted[-1].body)
        return emitted

    def _fitting(self, stream: Stream, answer: _Answer) -> Json:
        """The answer to a request of a batch, or an error in its place if it is too large for the log of the stream.

        The stream has no reader yet, so a message that the log pushes out now is lost. Half of the log is for the
        answers at once. The other half is for such errors, and for messages of running requests until the reader has
        caught up.
        """
        most = self._settings.limits.replay_bytes // 2
        if stream.replay.bytes + len(encode(answer.message)) <= most:
            return answer.message
        answer.recorder.append(LimitReached("replay_bytes", self._settings.limits.replay_bytes))
        why = f"Too large: beside a request that waits, a batch is answered with {most} bytes (half of replay_bytes)"
        return error_response(answer.message["id"], McpError(Code.BUSY, why).body())

    def _begin_all(self, session: Session, requests: _Requests) -> None:
        """Mark the requests as in flight, all or none, and record each id that the session has used before.

        The clause has no exception for a request that the client repeats. A request that was refused by HTTP status
        never began, so its id may come again: 429 and 503 invite the client to retry.
        """
        begun: list[RequestId] = []
        for message, context in requests:
            try:
                session.machine.begin(message.id)
            except (DuplicateIdError, TooManyInFlightError) as error:
                for earlier in begun:
                    session.machine.finish(earlier)
                raise self._refused(session, message, context, error) from None
            begun.append(message.id)
        for message, context in requests:
            repeated = self._repeats.note(message, context)
            if session.used_ids.use(message.id) and not repeated:
                clause = f"{session.machine.revision} basic, Requests: an id is not used twice within a session"
                context.misuse("id used before", clause, f"id {shown_id(message.id)} of {clip(message.method)}")

    def _refused(self, session: Session, request: Request, context: RequestContext, error: ValueError) -> Rejection:
        if isinstance(error, DuplicateIdError):
            if not self._repeats.note(request, context, in_flight=True):
                context.misuse("duplicate id", "2025-11-25 basic: ids are not used twice within a session", str(error))
            return Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: {error}", id=request.id)
        context.recorder.append(LimitReached("max_in_flight", len(session.machine.in_flight)))
        retry = ((b"retry-after", b"1"),)
        return Rejection(Refusal.TOO_MANY_REQUESTS, f"Too many requests: {error}", id=request.id, headers=retry)

    def _request(
        self, session: Session, request: Request, context: RequestContext, response: _ResponseStream
    ) -> _Answer | None:
        if request.method == "tools/call" and session.streams:
            return self._on_stream(session, request, context, response.reading)
        handle = self._handle
        if request.method in draft_streams.METHODS:
            handle = partial(self._stream_methods.handle, response.reading)
        outcome = handled(handle, session, request, context)
        if not isinstance(outcome, Outcome):
            self._launch(session, request, context, outcome, response)
            return None
        self._finish(session, request, context)
        return _Answer(_answered(session, request, outcome), context.recorder)

    def _finish(self, session: Session, request: Request, context: RequestContext) -> None:
        session.machine.finish(request.id)
        if request.method == "tools/call":
            session.finished.store(request.id, context.recorder)

    def _on_stream(
        self, session: Session, request: Request, context: RequestContext, reading: Reading
    ) -> _Answer | None:
        try:
            stream = self._streams.open(session, request.id, context, self._runs.announce(context))
        except McpError as full:
            session.machine.finish(request.id)
            return _Answer(error_response(request.id, full.body()), context.recorder)
        reading.add(stream, 0)
        outcome = handled(self._handle, session, request, context)
        if isinstance(outcome, Outcome):
            self._finish(session, request, context)
            self._send_on(stream, _Answer(_answered(session, request, outcome), context.recorder))
            self._streams.close(stream)
            return None if stream.machine.lost is None else self._too_large(stream, request, context)
        call = self._begin_on(stream, session, request, outcome)
        stream.call = session.calls[request.id] = call
        return None

    def _begin_on(self, stream: ToolStream, session: Session, request: Request, start: Start) -> CallScope:
        call, work = start(stream)

        def answer(outcome: Outcome) -> None:
            self._streams.call_over(stream)
            self._send_on(stream, _Answer(_answered(session, request, outcome), call.request))

        def close() -> None:
            self._streams.call_over(stream)
            self._streams.close(stream)

        # It runs in `DraftStreams`: the connection and the session may end before it.
        self._streams.submit(RunningRequest(call, work, stream, answer, close).run)
        return call

    def _too_large(self, stream: ToolStream, request: Request, context: RequestContext) -> _Answer:
        assert stream.machine.lost is not None
        stream.answer_taken = True
        return _Answer(error_response(request.id, lost_error(stream.machine.lost).body()), context.recorder)

    def _send_on(self, stream: ToolStream, answer: _Answer) -> None:
        if stream.replay.closed:
            drop(answer.recorder, answer.message, "the stream is lost")
        else:
            stream.sends_answer()
            send(answer.recorder, stream, answer.message)

    def _handle(self, session: Session, request: Request, context: RequestContext) -> Json | Outcome | Start:
        try:
            params = request_params(request.method, session.machine.revision, request.params)
        except McpError as error:
            raise context.refused(error) from None
        match params:
            case CallToolRequestParams():
                return self._tools.call(session, request, params, context)
            case GetTaskRequestParams():
                return self._tools.get(session, params, context)
            case CancelTaskRequestParams():
                return self._tools.cancel(session, params, context)
            case GetTaskPayloadRequestParams():
                return partial(self._start_result, session, request, context, params.task_id)
            case InitializeRequestParams():
                why = "Invalid Request: this session is initialized already"
                raise context.refused(McpError(Code.INVALID_REQUEST, why))
            case PaginatedRequestParams() if request.method == "tasks/list":
                return self._tools.list(session, params)
        return self._methods.answer(session, request.method, params, context)

    def _start_result(
        self, session: Session, request: Request, context: RequestContext, task_id: str, stream: Stream
    ) -> tuple[CallScope, Work]:
        call = self._runs.open_plain(context, request, session.offer)
        task = self._tools.tasks.find(task_id, session.label)
        if task is not None:
            context.concerns(task.call.recorder)

        async def work() -> Outcome | None:
            result = partial(self._tools.result, session, task_id, stream)
            return call.settle(await run(call, result, trio.sleep_forever))

        return call, work

    def _launch(
        self, session: Session, request: Request, context: RequestContext, start: Start, response: _ResponseStream
    ) -> None:
        track = response.begin(context.recorder)
        stream = track.stream
        call, work = start(stream)
        if context.recorder.context.call is None:
            context.concerns(call.recorder)
        if not response.shared:
            stream.belong_to(context.recorder)
        session.calls[request.id] = call

        def answer(outcome: Outcome) -> None:
            send(context.recorder, stream, _answered(session, request, outcome))

        def close() -> None:
            session.call_over(request.id)
            response.done(stream)

        running = RunningRequest(call, work, stream, answer, close)
        if session.piped:
            call.take_back = partial(response.reading.drop, track, "cancelled by the client")
        session.submit(running.run)

    def refused(self, session: Session, value: Any, why: str, contexts: Sequence[RequestContext]) -> None:
        """The messages in `value` are refused because of `why`: the questions that they answer fail."""
        for answer in refused_responses(value, why):
            if self._settles(session, answer, contexts[0]):
                clause = f"{session.machine.revision} basic, Responses"
                what = "malformed answer" if answer.malformed else "answer in a refused batch"
                contexts[0].misuse(what, clause, f"id {shown_id(answer.id)}: {answer.why}")

    def _settles(self, session: Session, answer: Response | RefusedResponse, context: RequestContext) -> bool:
        own = session.client_requests.resolve(answer, context.recorder)
        return own or self._streams.resolve(session, answer, context.recorder)

    def _resolved(self, session: Session, response: Response, context: RequestContext) -> None:
        if not self._settles(session, response, context):
            clause = "JSON-RPC 2.0, 5: a response answers a request"
            context.misuse("answer without a question", clause, f"id {shown_id(response.id)}")

    def _notified(
        self, session: Session, message: Notification, context: RequestContext, reading: Reading
    ) -> _Answer | None:
        """Take a notification. The draft's example of `stream/resume` has no id: its refusal is an answer."""
        match message.method:
            case "notifications/initialized":
                session.machine.receive(SessionInput.INITIALIZED)
            case "notifications/cancelled":
                self._cancelled(session, message, context)
            case "stream/resume":
                return self._resumed(session, message, context, reading)
            case "notifications/roots/list_changed" | "notifications/progress" | "notifications/tasks/status":
                pass
            case unknown:
                clause = f"{session.machine.revision} schema, ClientNotification"
                context.misuse("unknown notification", clause, clip(unknown))

        return None

    def _resumed(
        self, session: Session, message: Notification, context: RequestContext, reading: Reading
    ) -> _Answer | None:
        try:
            self._stream_methods.resume_unanswered(session, message.params, context, reading)
        except McpError as refused:
            return _Answer({"jsonrpc": "2.0", "error": refused.body()}, context.recorder)
        return None

    def _cancelled(self, session: Session, message: Notification, context: RequestContext) -> None:
        """2025-11-25 basic/utilities/cancellation: invalid ones are ignored; this server records them as well."""
        clause = "2025-11-25 basic/utilities/cancellation, Behavior Requirements"
        tasks = (task.call for task in self._tools.tasks.of(session.label))
        take_cancellation(message, clause, context, session.calls, session.finished, tasks, session.initialize_id)
