"""The modern era on a pipe: requests that run while the connection lasts, and their `notifications/cancelled`.

2026-07-28 basic/transports/stdio: "There is no header layer", and "because stdio is a single shared bidirectional
channel, there is no per-request stream to close".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from ...core.call import Cause
from ...log.context import Recorder
from ...log.events import LimitReached, essentials, subject
from ...wire.errors import Refusal, Rejection, busy
from ...wire.jsonrpc import Notification, Request, RequestId, Response, shown_id
from ...wire.revisions import V2026_07_28
from ..engine import Engine
from ..messages import RequestContext, read_message
from ..modern.dispatch import AnsweredAtOnce, InFlight, Started
from ..streams.reading import Track
from .wires import Peer, PipeWriter

Job: TypeAlias = Callable[[], Awaitable[None]]


class PipeModern:
    """The modern requests of one connection. Its owner starts the jobs of `submit`."""

    def __init__(self, engine: Engine, peer: Peer, writer: PipeWriter, submit: Callable[[Job], None]) -> None:
        self._engine = engine
        self._peer = peer
        self._writer = writer
        self._submit = submit
        self._client: str | None = None
        self._in_flight = InFlight()
        self._calls = self._in_flight.running

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, id: RequestId) -> bool:
        return id in self._calls

    def client(self, value: Any, recorder: Recorder) -> str | None:
        """The label of the client of a message; `recorder` is the message's.

        Only a request names its client. Other messages count for the client of the latest request; None before the
        first.
        """
        if isinstance(value, dict) and "id" in value and "method" in value:
            self._client = self._engine.clients.label(recorder, self._peer.address, value, self._peer.transport)
        return self._client

    def is_meant(self, value: Any) -> bool:
        """True if a message is a cancellation of one of these requests; it need not name its era."""
        about = subject(value) if essentials(value)[1] == "notifications/cancelled" else None
        return about is not None and about in self._calls

    def let_go(self, why: str) -> None:
        # The drain has ended each request already, and its answer is still for the client.
        in_flight = [] if self._engine.drained.is_set() else list(self._calls.values())
        for call in in_flight:
            if not call.machine.settled and call.machine.cause is None:
                call.cancel(Cause.DISCONNECT, why)

    def receive(self, value: Any, context: RequestContext) -> None:
        if isinstance(value, list):
            why = f"Invalid Request: revision {V2026_07_28} has no batches, send one message at a time"
            raise Rejection(Refusal.INVALID_REQUEST, why)
        match read_message(value, self._engine.settings.limits):
            case Request() as request:
                self._request(request, context)
            case Notification() as notification:
                self._engine.modern.notified(notification, context, self._in_flight)
            case Response() as response:
                # Not refused: the error would look like an answer to a request of the client.
                clause = f"{V2026_07_28} basic/transports/stdio: the client MUST NOT write JSON-RPC responses"
                context.misuse("answer without a question", clause, f"id {shown_id(response.id)}")

    def duplicate(self, request: Request, context: RequestContext) -> Rejection:
        """The refusal of an id in flight, in either era: the client matches answers by id."""
        clause = f"{V2026_07_28} basic: a request id MUST NOT be that of another request in flight"
        context.misuse("duplicate id", clause, f"id {shown_id(request.id)}")
        why = f"Invalid Request: request id {shown_id(request.id)} is already in flight on this connection"
        return Rejection(Refusal.INVALID_REQUEST, why, request.id)

    def _request(self, request: Request, context: RequestContext) -> None:
        engine, limits = self._engine, self._engine.settings.limits
        if request.id in self._calls:
            raise self.duplicate(request, context)
        inbound, offer = engine.read_modern(None, request, self._peer.selection)
        if len(self._calls) >= limits.max_in_flight:
            context.recorder.append(LimitReached("max_in_flight", limits.max_in_flight))
            raise busy(f"Too many requests: the limit max_in_flight is {limits.max_in_flight}", 1, request.id)
        answer = engine.modern.receive(request, inbound, offer, context)
        if isinstance(answer, AnsweredAtOnce):
            self._writer.send_answers([answer.message])
            if request.method == "tools/call":
                self._in_flight.finished.store(request.id, context.recorder)
        else:
            track = self._writer.reading.add(answer.stream, 0)
            call = self._calls[request.id] = answer.running.call
            call.take_back = partial(self._writer.reading.drop, track, "cancelled by the client")
            self._submit(partial(self._run, request.id, answer, track))

    async def _run(self, id: RequestId, started: Started, track: Track) -> None:
        try:
            await started.running.run()
            await track.wait_ended()
        finally:
            del self._calls[id]
            self._in_flight.finished.store(id, started.running.call.recorder)
            started.release()
            self._writer.note_progress()
