"""The modern requests in flight on one connection that carries everything both ways."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...wire.jsonrpc import RequestId
from ..calls.finished_calls import FinishedCalls
from ..calls.scope import CallScope


@dataclass(slots=True)
class InFlight:
    """The requests of one connection by their ids: the running ones, and the latest finished ones."""

    running: dict[RequestId, CallScope] = field(default_factory=dict)
    finished: FinishedCalls = field(default_factory=FinishedCalls)
