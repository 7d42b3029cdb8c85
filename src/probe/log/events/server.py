"""The server as a whole: its states, its limits, its audit file."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class LimitReached(Struct, frozen=True):
    """A limit of `settings.Limits` refused something. Cause: the request that was refused, where there is one."""

    kind: ClassVar[str] = "limit.reached"
    limit: str
    value: float


class AuditState(Struct, frozen=True):
    """The audit file can be written again (`ok`), or no longer (`failing`).

    `lost` rows are missing from it for good.
    """

    kind: ClassVar[str] = "audit.state"
    state: str
    why: str | None
    lost: int


class ServerState(Struct, frozen=True):
    """The server as a whole: `ready`, `draining`, `stopped`."""

    kind: ClassVar[str] = "server.state"
    state: str
