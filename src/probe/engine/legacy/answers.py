"""The answers of the legacy era to the messages of one exchange: one class for each form of the response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..streams.outbox import Emitted


@dataclass(frozen=True, slots=True)
class Accepted:
    """The exchange has only notifications and responses: it is accepted, without a message."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Each request is answered already. `messages` are in request order; the caller notes their delivery."""

    messages: list[Emitted]


@dataclass(frozen=True, slots=True)
class Streamed:
    """The answers come on streams, and the connection of the requests already reads these."""


LegacyAnswer: TypeAlias = Accepted | Answered | Streamed
