"""The answers of the legacy era to the messages of one exchange: each is a form of the response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..streams.outbox import Emitted


@dataclass(frozen=True, slots=True)
class Accepted:
    """Notifications and responses only: nothing to say."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Every request has its answer already; `messages` are in request order, and to be noted as delivered."""

    messages: list[Emitted]


@dataclass(frozen=True, slots=True)
class Streamed:
    """The answers come on streams, which the connection that brought the requests has begun to read."""


LegacyAnswer: TypeAlias = Accepted | Answered | Streamed
