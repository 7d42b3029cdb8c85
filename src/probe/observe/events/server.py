"""The server as a whole: its states, its limits, its audit file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit of `settings.Limits` refused something. Cause: the request that was refused, where there is one."""

    kind: ClassVar[str] = "limit.reached"
    limit: str
    value: float


@dataclass(frozen=True, slots=True)
class AuditState:
    """The audit file can be written again (`ok`), or no longer (`failing`); `lost` rows will never be in it."""

    kind: ClassVar[str] = "audit.state"
    state: str
    why: str | None
    lost: int


@dataclass(frozen=True, slots=True)
class ServerState:
    """The server as a whole: `ready`, `draining`, `stopped`."""

    kind: ClassVar[str] = "server.state"
    state: str
