"""`notifications/cancelled` from a client: the request that it names, and the record of one without effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...core.call import Cause
from ...log.bounded import Newest
from ...log.context import Recorder
from ...wire.jsonrpc import Notification, RequestId, clip, is_id, shown_id
from .request_context import RequestContext
from .scope import MAX_REASON, CallScope

# A client cancels one of its latest requests, even if it does so too late.
_MOST = 100


class FinishedCalls(Newest[RequestId, Recorder]):
    """The latest finished calls of one client, by the ids of their requests: a late message may name one."""

    def __init__(self) -> None:
        super().__init__(_MOST)


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A request to cancel the request with this `id`; `clause` is the rule of the client's revision."""

    id: RequestId
    reason: str | None
    clause: str
    context: RequestContext

    def stop(self, call: CallScope) -> None:
        """Cancel this call, and drop its messages that wait for the writer of a pipe."""
        self.context.concerns(call.recorder)
        if call.cancel(Cause.NOTIFICATION, self.reason, self.context.recorder):
            call.take_back()

    def without_effect(self, tasks: Iterable[CallScope], finished: FinishedCalls, *, initialize: bool = False) -> None:
        """Record why it has no effect: the call became one of these tasks, is over, or is unknown."""
        named = f"request {shown_id(self.id)}"
        task = next((call for call in tasks if call.request_id == self.id), None)
        call = finished.get(self.id) if task is None else task.recorder
        if call is not None:
            self.context.concerns(call)
        if task is not None:
            detail = f"{named} made a task: use tasks/cancel"
            self.context.misuse("notifications/cancelled for a task", self.clause, detail)
        elif initialize:
            self.context.misuse("notifications/cancelled for initialize", self.clause, named)
        else:
            self.context.misuse("cancellation without effect", self.clause, f"{named} is unknown or finished")


def read_cancellation(message: Notification, clause: str, context: RequestContext) -> Cancellation | None:
    """Read a `notifications/cancelled`. A malformed one is recorded and ignored; the result is then None."""
    params = message.params or {}
    id, reason = params.get("requestId"), params.get("reason", "")
    if not is_id(id) or not isinstance(reason, str):
        context.misuse("malformed cancellation", clause, "requestId or reason has the wrong type")
        return None
    return Cancellation(id, clip(reason, MAX_REASON) or None, clause, context)
