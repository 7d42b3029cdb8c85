"""One modern request that has climbed the ladder: it is answered at once, or runs while its exchange lasts.

    a request that never waits      its answer
    a request that waits            a stream: whatever it sends, and its answer as the last message

The exchange that brought the request owns the work: it awaits `Started.work` and cancels the call when its client has
gone, for there is no other who could hear of it (2026-07-28 basic/patterns/cancellation).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import trio
from pydantic import BaseModel

from ...core.call import Cause
from ...core.modern_inbound import Inbound
from ...observe.events import LimitReached
from ...wire.errors import Code, McpError, busy
from ...wire.jsonrpc import Json, Notification, Request, clip, error_response, notification, result_response
from ...wire.revisions import MODERN, V2026_07_28
from ...wire.v2026.codec import complete, create_task, input_required, modern_error
from ...wire.v2026.meta import TASKS_EXTENSION
from ...wire.v2026.registry import GetPromptParams, ListenParams, ReadResourceParams
from ..calls.cancellation import read_cancellation
from ..calls.outcome import Outcome
from ..calls.request_context import ClientInfo, RequestContext
from ..calls.scope import CallScope
from ..calls.tool_runs import Running, Start, ToolRuns, handled
from ..catalogue.offers import SIMPLE, Offer
from ..services import Services
from ..shares import AddressLimitError
from ..streams.outbox import Emitted, answer, send
from ..streams.stream import Stream
from ..tasks import TaskService
from .in_flight import InFlight
from .incoming import Incoming
from .listeners import Listeners
from .rounds import RoundTrips
from .tasks import ModernTaskMethods
from .tool_calls import ModernToolCalls

_CANCELLATION = f"{V2026_07_28} basic/patterns/cancellation"

_STATUS: Mapping[int, int] = {
    Code.METHOD_NOT_FOUND: 404,
    Code.MISSING_CLIENT_CAPABILITY: 400,
    Code.BUSY: 503,
}
"""The HTTP status of an error which the ladder does not find; 200 for others.

2026-07-28 demands the first two; a limit has the status that it has where it is found before the handler.
"""


def _status(error: McpError) -> int:
    if isinstance(error, AddressLimitError):
        return error.rejection().refusal.status
    return _STATUS.get(error.code, 200)


@dataclass(frozen=True, slots=True)
class AnsweredAtOnce:
    """The answer in one piece, to be noted as delivered, and its HTTP status."""

    status: int
    message: Emitted


@dataclass(frozen=True, slots=True)
class Started:
    """A request that runs.

    `work` is awaited once, by its owner. It leaves the answer on the stream, ends the stream, and gives the HTTP status
    that the answer has should it be the only message, so that no event stream is needed. `over` is called once, when
    the exchange has ended: until then the request holds its place, however long its reader takes.
    """

    call: CallScope
    stream: Stream
    work: Callable[[], Awaitable[int]]
    over: Callable[[], None]


Answer: TypeAlias = AnsweredAtOnce | Started


def _torn_down(request: Request) -> Json:
    """basic/patterns/cancellation: "A server MUST send `notifications/cancelled`" when it ends a subscription.

    Only on stdio and its like, as the schema has it, and after the result that subscriptions.md wants: official clients
    take it for a loss when it comes first, and behind the result for what it may be, the word on a finished request.
    """
    params = {"requestId": request.id, "reason": "the server has ended the subscription"}
    return notification("notifications/cancelled", params)


def discovered(offer: Offer, instructions: str) -> Json:
    """`server/discover`.

    Only revisions without sessions are named: a client chooses "one of these for subsequent requests", and those with
    sessions begin with `initialize`.
    """
    capabilities = {**offer.capabilities(), "extensions": {TASKS_EXTENSION: {}}}
    return {"supportedVersions": list(MODERN), "capabilities": capabilities, "instructions": instructions}


class ModernRouter:
    """The modern front of one engine. `running` are the calls that drain waits for; it waits for no subscription."""

    def __init__(
        self, services: Services, tasks: TaskService, trips: RoundTrips, runs: ToolRuns, about: Json, instructions: str
    ) -> None:
        self._clock = services.clock
        self._settings = services.settings
        self._limits = services.limits
        self._shares = services.shares
        self.listeners = Listeners(services)
        self._tasks = tasks
        self._desk = ModernTaskMethods(services, tasks, self.listeners, runs)
        self._trips = trips
        self._runs = runs
        self._tool_calls = ModernToolCalls(services, self.listeners, self._desk, trips, runs)
        self._server_info = about
        self._handlers: Mapping[str, Callable[[Incoming, Any], Json | Outcome | Start]] = {
            "server/discover": lambda incoming, params: discovered(incoming.offer, instructions),
            "tools/call": self._tool_calls.call,
            "prompts/get": self._get_prompt,
            "resources/read": self._read,
            "subscriptions/listen": self._listen,
            "tasks/get": self._desk.get,
            "tasks/update": self._desk.update,
            "tasks/cancel": self._desk.cancel,
        }
        self._numbers = count(1)
        self.running: set[CallScope] = set()
        self._open = 0
        self._quiet = trio.lowlevel.ParkingLot()

    async def wait_quiet(self) -> None:
        """Wait until no call runs."""
        while self.running:
            await self._quiet.park()

    def receive(self, request: Request, inbound: Inbound, offer: Offer, context: RequestContext) -> Answer:
        """Take one request. Never waits.

        Raises `Rejection` when there is no room for it, or its client holds enough.
        """
        self._check_room(request, context)
        info = inbound.meta.client_info or {}
        context.client = ClientInfo(clip(str(info.get("name", ""))), clip(str(info.get("version", ""))))
        incoming = Incoming(request, inbound.meta, offer, context)
        outcome = handled(lambda: self._handle(incoming, inbound.params))
        if not isinstance(outcome, Outcome):
            return self._launch(incoming, outcome)
        message, status = self._answer(request, outcome)
        return AnsweredAtOnce(status, answer(context.recorder, message))

    def notified(self, message: Notification, context: RequestContext, in_flight: InFlight | None) -> None:
        """Take one notification. `in_flight` are the requests on its connection; None over HTTP, which has none."""
        if message.method != "notifications/cancelled":
            context.misuse("unknown notification", f"{V2026_07_28} schema, ClientNotification", clip(message.method))
        elif in_flight is None:
            clause = f"{_CANCELLATION}: closing the response stream is the cancellation"
            context.misuse("notifications/cancelled over HTTP", clause, clip(message.method))
        else:
            self._cancelled(message, context, in_flight)

    def _cancelled(self, message: Notification, context: RequestContext, in_flight: InFlight) -> None:
        """"Servers MUST NOT send any further messages for it": also none of those that wait for the writer."""
        asked = read_cancellation(message, _CANCELLATION, context)
        if asked is None:
            return
        running = in_flight.running.get(asked.id)
        if running is None:
            # The id is one of this connection; other connections of the same client may use it, too.
            connection = context.recorder.context.connection
            own = (task for task in self._tasks.everyone() if task.call.recorder.context.connection == connection)
            asked.without_effect(own, in_flight.finished)
            return
        context.concerns(running.call.recorder)
        if running.call.cancel(Cause.NOTIFICATION, asked.reason, context.recorder):
            running.take_back()

    def _check_room(self, request: Request, context: RequestContext) -> None:
        """Only what may last needs room: whoever asks for a task, or cancels one, would rather free some."""
        limits = self._limits
        used, name, most = {
            "tools/call": (self._open, "max_calls", limits.max_calls),
            "subscriptions/listen": (len(self.listeners), "max_listens", limits.max_listens),
        }.get(request.method, (0, "", 1))
        if used >= most:
            context.recorder.append(LimitReached(name, most))
            raise busy(f"Too many requests: the limit {name} is {most}", 5, request.id)
        if name:
            try:
                self._shares.check(name, context.holder, context.recorder)
            except AddressLimitError as full:
                raise full.rejection(request.id) from None

    def _handle(self, incoming: Incoming, params: BaseModel) -> Json | Outcome | Start:
        method = incoming.request.method
        if method in SIMPLE:
            return SIMPLE[method](incoming.offer, params)
        return self._handlers[method](incoming, params)

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
        honoured = self.listeners.honoured(params.notifications, offer, self._desk.knows, context.recorder)

        def start(stream: Stream) -> Running:
            call = self._runs.open_plain(context, request, offer)
            context.concerns(call.recorder)
            listener = self.listeners.open(request.id, honoured, offer, call, stream)
            # A task may have changed between its creation and now: whoever listens need not ask as well.
            for id in honoured.tasks:
                self._desk.publish(id, listener)
            return Running(call, lambda: self.listeners.serve(listener, offer))

        return start

    def _launch(self, incoming: Incoming, start: Start) -> Started:
        request, context = incoming.request, incoming.context
        listens = request.method == "subscriptions/listen"
        purpose, place = ("subscription", "max_listens") if listens else ("response", "max_calls")
        stream = Stream(f"r{next(self._numbers)}", purpose, context.recorder, self._limits, resumable=False)
        running = start(stream)
        call = running.call
        stream.belong_to(call.recorder)
        self._shares.take(place, context.holder)
        if not listens:
            self.running.add(call)
            self._open += 1

        def tell(outcome: Outcome | None) -> int:
            status = 200
            if outcome is not None:
                message, status = self._answer(request, outcome)
                send(context.recorder, stream, message)
                if listens and context.transport != "http":
                    send(context.recorder, stream, _torn_down(request))
            stream.end(self._clock.now())
            return status

        async def work() -> int:
            status = 200
            try:
                outcome = await running.work()
                if not stream.replay.closed:
                    status = tell(outcome)
            finally:
                stream.end(self._clock.now())
                self.running.discard(call)
                self._quiet.unpark_all()
            return status

        def give_up(outcome: Outcome | None) -> None:
            tell(outcome)

        call.answer = give_up

        def over() -> None:
            self._open -= not listens
            self._shares.give_back(place, context.holder)

        return Started(call, stream, work, over)

    def _answer(self, request: Request, outcome: Outcome) -> tuple[Json, int]:
        """The response to a request, and the HTTP status it has when it stands alone."""
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
