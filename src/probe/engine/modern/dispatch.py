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

from ...core.modern_inbound import Inbound
from ...observe.events import LimitReached
from ...observe.log import EventLog
from ...settings import Settings
from ...wire.errors import Code, McpError, busy
from ...wire.jsonrpc import Json, Request, error_response, notification, result_response
from ...wire.revisions import MODERN
from ...wire.v2026.codec import complete, create_task, input_required, modern_error
from ...wire.v2026.meta import TASKS_EXTENSION
from ...wire.v2026.registry import GetPromptParams, ListenParams, ReadResourceParams
from ..calls import CallScope
from ..clock import Clock
from ..interactions import Interactions
from ..offers import SIMPLE, Offer
from ..outbox import Outbox
from ..outcome import Outcome
from ..shares import AddressLimitError, AddressShares
from ..streams import Stream
from ..tasks import TaskService
from ..tool_runs import Running, Start, ToolRuns, handled
from .incoming import Incoming, Source
from .listeners import Listeners
from .rounds import RoundTrips
from .tasks import TaskDesk
from .tool_calls import ToolCalls

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
class Answered:
    """The answer in one piece; `call` is the tool call it answers, which waits to hear that it was delivered."""

    status: int
    body: bytes
    call: CallScope | None


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


Answer: TypeAlias = Answered | Started


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


class Dispatch:
    """The modern front of one engine. `running` are the calls that drain waits for; it waits for no subscription."""

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        settings: Settings,
        shares: AddressShares,
        outbox: Outbox,
        tasks: TaskService,
        interactions: Interactions,
        trips: RoundTrips,
        runs: ToolRuns,
        server_info: Json,
        instructions: str,
    ) -> None:
        self._log = log
        self._clock = clock
        self._settings = settings
        self._shares = shares
        self._outbox = outbox
        self.listeners = Listeners(log, clock, settings, outbox)
        self._desk = TaskDesk(tasks, settings, self.listeners, interactions, runs)
        self._trips = trips
        self._runs = runs
        self._tool_calls = ToolCalls(settings, outbox, self.listeners, interactions, self._desk, trips, runs)
        self._server_info = server_info
        self._handlers: Mapping[str, Callable[[Incoming, Any], Json | Outcome | Start]] = {
            "server/discover": lambda incoming, params: discovered(incoming.offer, instructions),
            "tools/call": self._tool_calls.call,
            "prompts/get": self._get_prompt,
            "resources/read": self._read,
            "subscriptions/listen": self._listen,
            "tasks/get": lambda incoming, params: self._desk.get(params),
            "tasks/update": lambda incoming, params: self._desk.update(params),
            "tasks/cancel": lambda incoming, params: self._desk.cancel(params),
        }
        self._numbers = count(1)
        self.running: set[CallScope] = set()
        self._open = 0
        self._quiet = trio.lowlevel.ParkingLot()

    async def wait_quiet(self) -> None:
        """Wait until no call runs."""
        while self.running:
            await self._quiet.park()

    def receive(self, request: Request, inbound: Inbound, offer: Offer, source: Source) -> Answer:
        """Take one request. Never waits.

        Raises `Rejection` when there is no room for it, or its client holds enough.
        """
        self._check_room(request, source)
        incoming = Incoming(request, inbound.meta, offer, source)
        outcome = handled(lambda: self._handle(incoming, inbound.params))
        if not isinstance(outcome, Outcome):
            return self._launch(incoming, outcome)
        message, status = self._answer(request, outcome)
        call = outcome.call
        id = call.facts.id if call else None
        return Answered(status, self._outbox.answer(source.exchange, source.client, message, call=id), call)

    def _check_room(self, request: Request, source: Source) -> None:
        """Only what may last needs room: whoever asks for a task, or cancels one, would rather free some."""
        limits = self._settings.limits
        used, name, most = {
            "tools/call": (self._open, "max_calls", limits.max_calls),
            "subscriptions/listen": (len(self.listeners), "max_listens", limits.max_listens),
        }.get(request.method, (0, "", 1))
        if used >= most:
            self._log.append(LimitReached(source.client, name, most))
            raise busy(f"Too many requests: the limit {name} is {most}", 5, request.id)
        if name:
            try:
                self._shares.check(name, source.holder, source.client)
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
        request, offer = incoming.request, incoming.offer
        source = incoming.source
        honoured = self.listeners.honoured(params.notifications, offer, self._desk.knows, source.client)

        def start(stream: Stream) -> Running:
            call = self._runs.open_plain(source.exchange, request.id, request.method, source.client)
            listener = self.listeners.open(request.id, honoured, offer, call, stream)
            # A task may have changed between its creation and now: whoever listens need not ask as well.
            for id in honoured.tasks:
                self._desk.publish(id, listener)
            return Running(call, lambda: self.listeners.serve(listener, offer))

        return start

    def _launch(self, incoming: Incoming, start: Start) -> Started:
        request, source = incoming.request, incoming.source
        listens = request.method == "subscriptions/listen"
        purpose = "subscription" if listens else "response"
        stream = Stream(
            f"r{next(self._numbers)}",
            source.client,
            purpose,
            self._log,
            self._settings,
            exchange=source.exchange,
            resumable=False,
        )
        running = start(stream)
        call, place = running.call, "max_listens" if listens else "max_calls"
        self._shares.take(place, source.holder)
        if not listens:
            self.running.add(call)
            self._open += 1

        def tell(outcome: Outcome | None) -> int:
            status = 200
            if outcome is not None:
                message, status = self._answer(request, outcome)
                self._outbox.send(stream, message, call=call.facts.id, on_delivery=call.answer_delivered)
                if listens and source.transport != "http":
                    self._outbox.send(stream, _torn_down(request), call=call.facts.id)
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
            self._shares.give_back(place, source.holder)

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
