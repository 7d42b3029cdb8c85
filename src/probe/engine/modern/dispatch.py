"""One modern request that has passed all checks: it is answered at once, or runs on a stream as long as its exchange.

The exchange of the request owns the work. It awaits `RunningRequest.run`, and cancels the call when its client has
disconnected, since no other connection can get the answer (2026-07-28 basic/patterns/cancellation). A place is taken
when the work begins and released at the end of the exchange.

The outcome decides the HTTP status, which is used only if the answer is the only message: otherwise the head of the
event stream was sent before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, ClassVar, TypeAlias

import trio
from msgspec import Struct
from pydantic import BaseModel

from ...core.modern_inbound import Inbound
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, Notification, Request, RequestId, clip, error_response, notification, result_response
from ...wire.revisions import MODERN, V2026_07_28
from ...wire.v2026.codec import complete, create_task, input_required, modern_error
from ...wire.v2026.meta import SKILLS_EXTENSION, TASKS_EXTENSION
from ...wire.v2026.registry import GetPromptParams, ListenParams, ReadResourceParams
from ..calls.outcome import Outcome, handled
from ..calls.scope import CallScope, FinishedCalls, take_cancellation
from ..calls.tool_runs import RunningRequest, Start, ToolRuns, Work
from ..catalogue.offers import SIMPLE, Offer
from ..messages import ClientInfo, Repeats, RequestContext
from ..services import Limit, LimitError, Services
from ..streams.stream import Emitted, Stream, answer, send
from ..tasks import TaskService
from .listeners import Listeners
from .rounds import Incoming, RoundTrips
from .tasks import ModernTools

_CANCELLATION = f"{V2026_07_28} basic/patterns/cancellation"
_STATUS: Mapping[int, int] = {
    Code.METHOD_NOT_FOUND: 404,
    Code.MISSING_CLIENT_CAPABILITY: 400,
    Code.BUSY: 503,
}
"""The HTTP status of an error after the checks; 200 for others. 2026-07-28 demands the first two."""


class AnsweredAtOnce(Struct, frozen=True):
    """The answer in one piece, and its HTTP status. The caller notes its delivery."""

    status: int
    message: Emitted


@dataclass(slots=True, eq=False)
class Started:
    """A request that runs.

    Its owner awaits `running.run` once; this puts the answer on `stream` and ends the stream. After that, `status` is
    the HTTP status of an answer that is the only message. `release` is called once, at the end of the exchange: the
    request holds its place until then, even if its reader is slow.
    """

    running: RunningRequest
    stream: Stream
    release: Callable[[], None]
    status: int = 200


ModernAnswer: TypeAlias = AnsweredAtOnce | Started


@dataclass(slots=True)
class InFlight:
    """The requests of one connection by their ids."""

    running: dict[RequestId, CallScope] = field(default_factory=dict)
    finished: FinishedCalls = field(default_factory=FinishedCalls)


def _status(error: McpError) -> int:
    if isinstance(error, LimitError):
        return error.rejection().refusal.status
    return _STATUS.get(error.code, 200)


def _torn_down(request: Request) -> Json:
    """basic/patterns/cancellation: "A server MUST send `notifications/cancelled`" when it ends a subscription.

    It is sent only where one connection carries everything ("On stdio", in the schema), after the result of
    subscriptions.md.
    """
    params = {"requestId": request.id, "reason": "the server has ended the subscription"}
    return notification("notifications/cancelled", params)


def discovered(offer: Offer, instructions: str) -> Json:
    """`server/discover`."""
    capabilities = {**offer.capabilities(), "extensions": {TASKS_EXTENSION: {}, **offer.extensions()}}
    found = {"supportedVersions": list(MODERN), "capabilities": capabilities, "instructions": instructions}
    return {**found, "cacheScope": "private"} if offer.skills_by_declaration else found


class ModernRouter:
    """The modern front of one engine. `running` are the calls that the drain waits for, without subscriptions."""

    def __init__(
        self, services: Services, tasks: TaskService, trips: RoundTrips, runs: ToolRuns, about: Json, instructions: str
    ) -> None:
        self._clock = services.clock
        self._settings = services.settings
        self._limits = services.limits
        why = "Too many requests: the limit {name} is {most}"
        self._calls = Limit("max_calls", why, services.shares)
        self._subscriptions = Limit("max_listens", why, services.shares)
        self._places = {"tools/call": self._calls, "subscriptions/listen": self._subscriptions}
        self.listeners = Listeners(services)
        self._tasks = tasks
        self._tools = ModernTools(services, tasks, self.listeners, trips, runs)
        self._trips = trips
        self._runs = runs
        self._server_info = about
        self._instructions = instructions
        self._repeats = Repeats(services.log)
        self._numbers = count(1)
        self.running: set[CallScope] = set()
        self._quiet = trio.lowlevel.ParkingLot()

    async def wait_quiet(self) -> None:
        while self.running:
            await self._quiet.park()

    def receive(self, request: Request, inbound: Inbound, offer: Offer, context: RequestContext) -> ModernAnswer:
        """Take one request. Never waits.

        Raises `Rejection` if there is no room for it, or its client has its full share.
        """
        self._check_room(request, context)
        if request.method == "tools/call":
            # A repeated id matters only where a second run has effects; some clients use one id for everything.
            self._repeats.note(request, context)
        info = inbound.meta.client_info or {}
        context.client = ClientInfo(clip(str(info.get("name", ""))), clip(str(info.get("version", ""))))
        declared = offer.declaring_skills() if inbound.meta.declares(SKILLS_EXTENSION) else offer
        incoming = Incoming(request, inbound.meta, declared, context)
        outcome = handled(self._handle, incoming, inbound.params)
        if not isinstance(outcome, Outcome):
            return self._launch(incoming, outcome)
        message, status = self._answer(request, outcome)
        return AnsweredAtOnce(status, answer(context.recorder, message))

    def notified(self, message: Notification, context: RequestContext, in_flight: InFlight | None) -> None:
        """Take one notification. `in_flight` are the requests on its connection; None over HTTP."""
        if message.method != "notifications/cancelled":
            context.misuse("unknown notification", f"{V2026_07_28} schema, ClientNotification", clip(message.method))
        elif in_flight is None:
            clause = f"{_CANCELLATION}: closing the response stream is the cancellation"
            context.misuse("notifications/cancelled over HTTP", clause, clip(message.method))
        else:
            self._cancelled(message, context, in_flight)

    def _cancelled(self, message: Notification, context: RequestContext, in_flight: InFlight) -> None:
        """Servers "MUST NOT send any further messages for it": those that wait for the writer are dropped too."""
        # The id belongs to this connection; other connections of the same client may use it too.
        connection = context.recorder.context.connection
        calls = (task.call for task in self._tasks.everyone())
        own = (call for call in calls if call.recorder.context.connection == connection)
        take_cancellation(message, _CANCELLATION, context, in_flight.running, in_flight.finished, own)

    def _check_room(self, request: Request, context: RequestContext) -> None:
        limit = self._places.get(request.method)
        if limit is not None:
            try:
                limit.check(context.holder, context.recorder)
            except LimitError as full:
                raise full.rejection(request.id) from None

    def _handle(self, incoming: Incoming, params: BaseModel) -> Json | Outcome | Start:
        method = incoming.request.method
        if method in SIMPLE:
            return SIMPLE[method](incoming.offer, params)
        return self._HANDLERS[method](self, incoming, params)

    def _get_prompt(self, incoming: Incoming, params: GetPromptParams) -> Json:
        given, offer = params.arguments or {}, incoming.offer
        inputs = offer.prompt(params.name, given).inputs
        return offer.get_prompt(params.name, given, self._trips.open(incoming).answers(inputs))

    def _read(self, incoming: Incoming, params: ReadResourceParams) -> Json:
        resource = incoming.offer.resource(params.uri)
        asks = {} if resource is None else resource.inputs
        return incoming.offer.read(params.uri, self._clock.wall(), self._trips.open(incoming).answers(asks))

    def _listen(self, incoming: Incoming, params: ListenParams) -> Start:
        request, offer, context = incoming.request, incoming.offer, incoming.context
        accepted = self.listeners.accept(params.notifications, offer, self._tools.knows, context.recorder)

        def start(stream: Stream) -> tuple[CallScope, Work]:
            call = self._runs.open_plain(context, request, offer)
            context.concerns(call.recorder)
            listener = self.listeners.open(request.id, accepted, offer, call, stream)
            # A task may have changed since its creation; with this, the client need not poll it as well.
            for id in accepted.tasks:
                self._tools.publish(id, listener)
            return call, partial(self.listeners.serve, listener, offer)

        return start

    # Functions of the class: bound methods would refer to the object that has them, and so keep it after its end.
    _HANDLERS: ClassVar[Mapping[str, Callable[[ModernRouter, Incoming, Any], Json | Outcome | Start]]] = {
        "server/discover": lambda self, incoming, _: discovered(incoming.offer, self._instructions),
        "prompts/get": _get_prompt,
        "resources/read": _read,
        "subscriptions/listen": _listen,
        "tools/call": lambda self, incoming, params: self._tools.call(incoming, params),
        "tasks/get": lambda self, incoming, params: self._tools.get(incoming, params),
        "tasks/update": lambda self, incoming, params: self._tools.update(incoming, params),
        "tasks/cancel": lambda self, incoming, params: self._tools.cancel(incoming, params),
    }

    def _launch(self, incoming: Incoming, start: Start) -> Started:
        request, context = incoming.request, incoming.context
        listens = request.method == "subscriptions/listen"
        purpose, limit = ("subscription", self._subscriptions) if listens else ("response", self._calls)
        stream = Stream(f"r{next(self._numbers)}", purpose, context.recorder, self._limits, resumable=False)
        call, work = start(stream)
        stream.belong_to(call.recorder)
        limit.take(context.holder)
        if not listens:
            self.running.add(call)

        def answer(outcome: Outcome) -> None:
            message, started.status = self._answer(request, outcome)
            send(context.recorder, stream, message)
            if listens and context.transport != "http":
                send(context.recorder, stream, _torn_down(request))

        running = RunningRequest(call, work, stream, answer, partial(self._close, call, stream))
        started = Started(running, stream, partial(limit.release, context.holder))
        return started

    def _close(self, call: CallScope, stream: Stream) -> None:
        stream.end(self._clock.now())
        self.running.discard(call)
        self._quiet.unpark_all()

    def _answer(self, request: Request, outcome: Outcome) -> tuple[Json, int]:
        if outcome.error is not None:
            return error_response(request.id, modern_error(outcome.error.body())), _status(outcome.error)
        return result_response(request.id, self._shaped(request, outcome)), 200

    def _shaped(self, request: Request, outcome: Outcome) -> Json:
        result, info = outcome.result or {}, self._server_info
        match outcome.kind:
            case "input_required":
                return input_required(result["inputRequests"], result["requestState"], server_info=info)
            case "task":
                return create_task(result, server_info=info)
            case _:
                comes_and_goes = request.method == "tools/list" and bool(self._settings.toolhost_secret)
                return complete(request.method, result, server_info=info, lasting=not comes_and_goes)
