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
    """The answer in one piece, and its HTTP status. The caller notes its delivery."""

    status: int
    message: Emitted


@dataclass(slots=True, eq=False)
class Started:
    """A request that runs.

    Its owner awaits `running.run` once; this puts the answer on `stream` and ends the stream. After that, `status` is
    the HTTP status of an answer that is the only message, and so needs no event stream. `release` is called once, at
    the end of the exchange: the request holds its place until then, even if its reader is slow.
    """

    running: RunningRequest
    stream: Stream
    release: Callable[[], None]
    status: int = 200


ModernAnswer: TypeAlias = AnsweredAtOnce | Started
