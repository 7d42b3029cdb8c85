"""The modern requests in flight on one connection that carries everything both ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...wire.jsonrpc import RequestId
from ..calls.finished_calls import FinishedCalls
from ..calls.scope import CallScope


@dataclass(frozen=True, slots=True)
class RunningRequest:
    """A request in flight; `take_back` takes back what it has sent and nobody has written yet."""

    call: CallScope
    take_back: Callable[[], None]


@dataclass(slots=True)
class InFlight:
    """The requests of one connection by their ids: those that run, and the latest that are over."""

    running: dict[RequestId, RunningRequest] = field(default_factory=dict)
    finished: FinishedCalls = field(default_factory=FinishedCalls)
