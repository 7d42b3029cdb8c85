"""The modern era on a pipe: requests that run while the connection lasts, and `notifications/cancelled` that stop them.

2026-07-28 basic/transports/stdio: "There is no header layer", and "because stdio is a single shared bidirectional
channel, there is no per-request stream to close".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from ..core.call import Cause
from ..core.modern_inbound import climb
from ..engine.calls import MAX_REASON, CallScope
from ..engine.engine import Engine
from ..engine.modern.dispatch import Answered, Started
from ..engine.modern.incoming import Source
from ..engine.reading import Track
from ..observe.events import ClientMisuse, LimitReached, essentials, subject
from ..wire.errors import Refusal, Rejection, busy, shutting_down
from ..wire.jsonrpc import Notification, Request, RequestId, Response, clip, is_id, shown_id
from ..wire.revisions import V2026_07_28
from .messages import check_token, read_message
from .pipe_writer import PipeWriter
from .wires import Peer

_CANCELLATION = f"{V2026_07_28} basic/patterns/cancellation"

Job: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Running:
    """A request in flight, and the stream of its response as this connection reads it."""

    call: CallScope
    track: Track


class PipeModern:
    """The modern requests of one connection, whose owner starts the jobs that it is given by `submit`."""

    def __init__(self, engine: Engine, peer: Peer, writer: PipeWriter, submit: Callable[[Job], None]) -> None:
        self._engine = engine
        self._peer = peer
        self._writer = writer
        self._submit = submit
        self._client: str | None = None
        self._calls: dict[RequestId, _Running] = {}

    def __len__(self) -> int:
        """How many requests are in flight."""
        return len(self._calls)

    def __contains__(self, id: RequestId) -> bool:
        """Whether a request of this id is in flight."""
        return id in self._calls

    def client(self, value: Any) -> str:
        """Whose a message is: only a request has to say it, what else comes is from the client that was heard last."""
        asks = isinstance(value, dict) and "id" in value and "method" in value
        if asks or self._client is None:
            self._client = self._engine.clients.label(self._peer.address, value, self._peer.transport)
        return self._client

    def is_meant(self, value: Any) -> bool:
        """Whether a message is a cancellation of one of these: it need not say of which era it is."""
        about = subject(value) if essentials(value)[1] == "notifications/cancelled" else None
        return about is not None and about in self._calls

    def let_go(self, why: str) -> None:
        """The connection is over, and so is what was in flight on it. Harmless when repeated."""
        # The drain has told each request to end, and what it says then is still for the client.
        in_flight = [] if self._engine.drained.is_set() else list(self._calls.values())
        for running in in_flight:
            if not running.call.machine.settled and running.call.machine.cause is None:
                running.call.cancel(Cause.DISCONNECT, why)

    def receive(self, value: Any, exchange: int, client: str | None) -> None:
        """Take one message. Raises `Rejection`."""
        if isinstance(value, list):
            why = f"Invalid Request: revision {V2026_07_28} has no batches, send one message at a time"
            raise Rejection(Refusal.INVALID_REQUEST, why)
        match read_message(value, self._engine.settings.limits):
            case Request() as request:
                self._request(request, exchange, client)
            case Notification() as notification:
                self._notified(notification, exchange, client)
            case Response() as response:
                # Not refused: the error would itself look like an answer to a request of the client's.
                clause = f"{V2026_07_28} basic/transports/stdio: the client MUST NOT write JSON-RPC responses"
                self._misuse(exchange, client, "answer without a question", clause, f"id {shown_id(response.id)}")

    def duplicate(self, request: Request, exchange: int, client: str | None) -> Rejection:
        """The refusal of an id in flight, in either era: the answers on one connection could not be told apart."""
        clause = f"{V2026_07_28} basic: a request id MUST NOT be that of another request in flight"
        self._misuse(exchange, client, "duplicate id", clause, f"id {shown_id(request.id)}")
        why = f"Invalid Request: request id {shown_id(request.id)} is already in flight on this connection"
        return Rejection(Refusal.INVALID_REQUEST, why, request.id)

    def _request(self, request: Request, exchange: int, client: str | None) -> None:
        engine, peer, limits = self._engine, self._peer, self._engine.settings.limits
        if request.id in self._calls:
            raise self.duplicate(request, exchange, client)
        offer = engine.offer(peer.selection, V2026_07_28)
        inbound = climb(None, request, input_schema=offer.input_schema)
        check_token(request, inbound.meta, limits)
        if engine.draining:
            raise shutting_down(request.id)
        if len(self._calls) >= limits.max_in_flight:
            engine.log.append(LimitReached(client, "max_in_flight", limits.max_in_flight))
            raise busy(f"Too many requests: the limit max_in_flight is {limits.max_in_flight}", 1, request.id)
        source = Source(exchange, client, peer.origin, peer.transport, peer.holder)
        answer = engine.modern.receive(request, inbound, offer, source)
        if isinstance(answer, Answered):
            self._writer.say([answer.body], exchange, client, [] if answer.call is None else [answer.call])
        else:
            running = _Running(answer.call, self._writer.reading.add(answer.stream, 0))
            self._calls[request.id] = running
            self._submit(partial(self._run, request.id, answer, running))

    async def _run(self, id: RequestId, started: Started, running: _Running) -> None:
        """One request that runs, until its answer is written."""
        try:
            await started.work()
            await running.track.wait_ended()
        finally:
            del self._calls[id]
            started.over()
            self._writer.note_progress()

    def _notified(self, notification: Notification, exchange: int, client: str | None) -> None:
        if notification.method == "notifications/cancelled":
            self._cancelled(notification, exchange, client)
        else:
            clause = f"{V2026_07_28} schema, ClientNotification"
            self._misuse(exchange, client, "unknown notification", clause, clip(notification.method))

    def _cancelled(self, notification: Notification, exchange: int, client: str | None) -> None:
        """"Servers MUST NOT send any further messages for it": also none of those that wait for the writer."""
        params = notification.params or {}
        id, reason = params.get("requestId"), params.get("reason", "")
        if not is_id(id) or not isinstance(reason, str):
            why = "requestId or reason has the wrong type"
            self._misuse(exchange, client, "malformed cancellation", _CANCELLATION, why)
            return
        known, named = self._calls.get(id), f"request {shown_id(id)}"
        if known is not None:
            if known.call.cancel(Cause.NOTIFICATION, clip(reason, MAX_REASON) or None):
                self._writer.reading.drop(known.track, "cancelled by the client")
        elif self._made_task(id, client):
            what = "notifications/cancelled for a task"
            self._misuse(exchange, client, what, _CANCELLATION, f"{named} made a task: use tasks/cancel")
        else:
            why = f"{named} is unknown or finished"
            self._misuse(exchange, client, "cancellation without effect", _CANCELLATION, why)

    def _made_task(self, id: RequestId, client: str | None) -> bool:
        made = (task.call.facts for task in self._engine.tasks.everyone())
        return any(facts.request_id == id and facts.session == client for facts in made)

    def _misuse(self, exchange: int, client: str | None, what: str, clause: str, detail: str) -> None:
        self._engine.log.append(ClientMisuse(client, what, clause, detail, exchange))
