"""The answers of the modern era to one request: at once, or by work that has started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from ..calls.running_request import RunningRequest
from ..streams.outbox import Emitted
from ..streams.stream import Stream


class AnsweredAtOnce(Struct, frozen=True):
    """The answer in one piece, to be noted as delivered, and its HTTP status."""

    status: int
    message: Emitted


@dataclass(slots=True, eq=False)
class Started:
    """A request that runs.

    Its owner awaits `running.run` once, which leaves the answer on `stream` and ends that. `status` is then the HTTP
    status that the answer has should it be the only message, so that no event stream is needed. `release` is called
    once, when the exchange has ended: until then the request holds its place, however long its reader takes.
    """

    running: RunningRequest
    stream: Stream
    release: Callable[[], None]
    status: int = 200


ModernAnswer: TypeAlias = AnsweredAtOnce | Started
