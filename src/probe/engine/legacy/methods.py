"""The methods of the legacy era that are no tool calls and no tasks, and the pings of the server.

All but `stream/resume` of the draft "Streams" are answered at once. Its connection reads the stream from the client's
position. When the reading ends, the result of the request has the state of the stream, so it is the last message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Any, ClassVar

import trio

from ...core.draft_stream import LostError, TooEarlyError
from ...core.replay import EvictedError
from ...core.session import DuplicateIdError, TooManyInFlightError
from ...log.context import Recorder
from ...log.events import LimitReached, StreamResumed
from ...settings import Settings
from ...wire.client_messages import (
    GetPromptRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, Request, RequestId, notification, request
from ...wire.revisions import V2025_11_25
from ...wire.v2025.draft_streams import META_KEY, Reference, read_reference
from ..calls.outcome import Outcome
from ..calls.scope import CallScope, run
from ..calls.tool_runs import Start, ToolRuns, Work
from ..catalogue.catalogue import Resource
from ..catalogue.offers import SIMPLE, Offer
from ..catalogue.tool import ClientRequestError
from ..clock import Clock
from ..messages import RequestContext
from ..services import Services
from ..sessions import Session
from ..streams.draft_streams import DraftStreams, ToolStream, lost_error
from ..streams.reading import OVERFLOW, Reading, Track
from ..streams.stream import NO_STREAM, Stream, drop, send


def capabilities(offer: Offer, *, streams: bool) -> Json:
    """The server capabilities for a session; draft streams are declared to clients that declare them."""
    declared = offer.capabilities()
    if streams:
        declared["experimental"] = {"streams": {}}
    if offer.revision >= V2025_11_25:
        declared["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    return declared


class Methods:
    """The handlers of one engine, by method name."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._limits = services.limits

    def answer(self, session: Session, method: str, params: Any, context: RequestContext) -> Json:
        if method in SIMPLE:
            return SIMPLE[method](session.offer, params)
        return self._HANDLERS[method](self, session, params, context)

    def _subscribe(self, session: Session, params: SubscribeRequestParams, context: RequestContext) -> Json:
        uri, limit = params.uri, self._limits.max_subscriptions
        session.offer.check_resource(uri)
        if uri in session.subscriptions:
            return {}
        # A cancelled ticker ends in the session's next turn, and counts until then.
        if max(len(session.subscriptions), session.tickers) >= limit:
            context.recorder.append(LimitReached("max_subscriptions", limit))
            raise McpError(Code.BUSY, f"Too many subscriptions: the limit max_subscriptions is {limit}")
        scope, resource = trio.CancelScope(), session.offer.resource(uri)
        if resource is not None and resource.ticks_s is not None:
            session.submit(partial(self._tick, session, resource, resource.ticks_s, scope))
            session.tickers += 1
        session.subscriptions[uri] = scope
        return {}

    async def _tick(self, session: Session, resource: Resource, every_s: float, scope: trio.CancelScope) -> None:
        try:
            with scope:
                while True:
                    await trio.sleep(self._clock.until_tick(every_s))
                    self._send_updated(session, resource)
        finally:
            session.tickers -= 1

    def _send_updated(self, session: Session, resource: Resource) -> None:
        message = notification("notifications/resources/updated", {"uri": resource.uri})
        if session.standalone is None:
            drop(session.recorder, message, NO_STREAM)
        else:
            send(session.recorder, session.standalone, message)

    def _unsubscribe(self, session: Session, params: UnsubscribeRequestParams, _context: RequestContext) -> Json:
        session.offer.require("resources")
        scope = session.subscriptions.pop(params.uri, None)
        if scope is not None:
            scope.cancel()
        return {}

    def _read(self, session: Session, params: ReadResourceRequestParams, _context: RequestContext) -> Json:
        return session.offer.read(params.uri, self._clock.wall(), {})

    def _get_prompt(self, session: Session, params: GetPromptRequestParams, _context: RequestContext) -> Json:
        return session.offer.get_prompt(params.name, params.arguments or {}, {})

    def _set_level(self, session: Session, params: SetLevelRequestParams, _context: RequestContext) -> Json:
        session.log_level = params.level
        return {}

    # Functions of the class: bound methods would refer to the object that has them, and so keep it after its end.
    _HANDLERS: ClassVar[Mapping[str, Callable[[Methods, Session, Any, RequestContext], Json]]] = {
        "ping": lambda methods, session, params, context: {},
        "resources/read": _read,
        "resources/subscribe": _subscribe,
        "resources/unsubscribe": _unsubscribe,
        "prompts/get": _get_prompt,
        "logging/setLevel": _set_level,
    }


def start_pinging(session: Session, settings: Settings) -> None:
    """Send pings from now on, unless the settings turn them off or they are sent already."""
    if settings.ping_interval_s > 0 and session.ping is None:
        session.ping = scope = trio.CancelScope()
        session.submit(partial(_keep_pinging, session, settings, scope))


async def _keep_pinging(session: Session, settings: Settings, scope: trio.CancelScope) -> None:
    with scope:
        while True:
            await trio.sleep(settings.ping_interval_s)
            stream = session.standalone
            if stream is not None and stream.reader is not None:
                await _ping(session, stream, settings.client_ping_s)


async def _ping(session: Session, stream: Stream, timeout_s: float) -> None:
    def put(id: RequestId) -> Recorder | None:
        return send(session.recorder, stream, request(id, "ping", None))

    def withdraw(id: RequestId, reason: str) -> None:
        if not stream.replay.closed:
            params = {"requestId": id, "reason": reason}
            send(session.recorder, stream, notification("notifications/cancelled", params))

    try:
        await session.client_requests.ask("ping", put, withdraw, timeout_s)
    except ClientRequestError as error:
        session.misuse("ping not answered", "2025-11-25 basic/utilities/ping: MUST respond promptly", str(error))


class StreamMethods:
    """The methods `stream/resume`, `stream/poll` and `stream/poll/all` of one engine."""

    def __init__(self, streams: DraftStreams, clock: Clock, runs: ToolRuns) -> None:
        self._streams = streams
        self._clock = clock
        self._runs = runs

    def handle(self, reading: Reading, session: Session, request: Request, context: RequestContext) -> Json | Start:
        reference = _reference(session, request.method, request.params)
        if request.method == "stream/poll/all":
            streams = self._streams.all_of(session, reference.secret)
            return {"streams": [self._poll(stream, None) for stream in streams if not self._is_lost(stream)]}
        stream = self._streams.find(session, reference)
        context.concerns(stream.recorder)
        if request.method == "stream/poll":
            return self._poll(stream, _received(stream, reference, context))
        _check_id(request.id, stream)
        track = self._read(session, stream, reference, context, reading)
        return lambda answers: self._start(session, request, context, reading, track)

    def resume_unanswered(
        self, session: Session, params: Mapping[str, Any] | None, context: RequestContext, reading: Reading
    ) -> None:
        """Begin a `stream/resume` without an id, as in the draft's example: it has no answer. Raises `McpError`."""
        reference = _reference(session, "stream/resume", params)
        stream = self._streams.find(session, reference)
        context.concerns(stream.recorder)
        self._read(session, stream, reference, context, reading)

    def _is_lost(self, stream: ToolStream) -> bool:
        """True if the stream's time has passed, even if the service has not yet run since."""
        deadline = stream.machine.deadline
        return deadline is not None and deadline <= self._clock.now()

    def _poll(self, stream: ToolStream, received: int | None) -> Json:
        try:
            polled = stream.poll(received)
        except (LostError, EvictedError, IndexError) as error:
            raise _refusal(error) from None
        return {
            "streamId": stream.stream_id,
            "status": polled.status.value,
            "pendingMessages": polled.pending_messages,
            "hasRequest": polled.has_request,
            "hasError": polled.has_error,
        }

    def _read(
        self, session: Session, stream: ToolStream, reference: Reference, context: RequestContext, reading: Reading
    ) -> Track:
        try:
            self._streams.check_hand_over(stream, session)
            cursor = stream.resume(_received(stream, reference, context))
            self._streams.hand_over(stream, session)
        except (LostError, EvictedError, IndexError, TooEarlyError, DuplicateIdError, TooManyInFlightError) as error:
            raise _refusal(error) from None
        resumed = context.recorder.bind(session=stream.session, stream=stream.id)
        resumed.append(StreamResumed(cursor, stream.replay.last - cursor))
        track = reading.add(stream, cursor)
        session.reader_attached()
        return track

    def _start(
        self, session: Session, request: Request, context: RequestContext, reading: Reading, track: Track
    ) -> tuple[CallScope, Work]:
        call, stream = self._runs.open_plain(context, request, session.offer), track.stream
        assert isinstance(stream, ToolStream), "no other stream is resumed by a request"

        async def read() -> Json:
            ended = await track.wait_ended()
            if stream.machine.lost is not None:
                raise lost_error(stream.machine.lost)
            if ended == OVERFLOW or stream.machine.forgotten:
                why = "Messages went to make room, or were forgotten, before this connection had read them"
                raise McpError(Code.STREAM_LOST, why, {"reason": "evicted", "firstKept": stream.replay.first})
            return {"streamId": stream.stream_id, "status": stream.machine.status.value}

        async def work() -> Outcome | None:
            try:
                return call.settle(await run(call, read, trio.sleep_forever))
            finally:
                reading.drop(track, "the resume was cancelled")

        return call, work


def _check_id(id: RequestId, stream: ToolStream) -> None:
    if id == stream.request_id:
        why = f"Invalid Request: {id!r} is the id of the call whose answer is on this stream"
        raise McpError(Code.INVALID_REQUEST, why)


def _reference(session: Session, method: str, params: Mapping[str, Any] | None) -> Reference:
    if not session.streams:
        why = f"Method not found: {method} is for clients that declare capabilities.experimental.streams"
        raise McpError(Code.METHOD_NOT_FOUND, why)
    return read_reference(method, params)


def _received(stream: Stream, reference: Reference, context: RequestContext) -> int | None:
    """The position in a stream up to which the client has everything, by its own account.

    The draft, Streamable HTTP Considerations: "the `Last-Event-ID` header can be used to derive the point from which
    its view of streams will resume and poll from". An event id of another stream does not count.
    """
    if reference.received is None and context.seen is not None and context.seen[0] == stream.id:
        return context.seen[1]
    return reference.received


def _refusal(error: Exception) -> McpError:
    match error:
        case LostError():
            return lost_error(error.lost)
        case EvictedError():
            data = {"reason": "evicted", "firstKept": error.first}
            return McpError(Code.STREAM_LOST, f"Cannot resume without loss: {error}", data)
        case TooEarlyError():
            # Rounded up, so that a client that waits for this time is not too early again.
            wait_ms = ceil(error.wait_s * 1000)
            why = f"Too early: resumeInterval.min has not passed, wait {error.wait_s:.3f} s"
            return McpError(Code.RESUMED_TOO_EARLY, why, {"retryAfterMs": wait_ms})
        case IndexError():
            place = str(error).replace("cursor", "sequence")
            why = f"Invalid params: received (_meta[{META_KEY!r}], or Last-Event-ID): {place}"
            return McpError(Code.INVALID_PARAMS, why)
        case TooManyInFlightError():
            return McpError(Code.BUSY, f"Too many requests: {error}")
    return McpError(Code.INVALID_REQUEST, f"Invalid Request: the call of this stream goes on here, and {error}")
