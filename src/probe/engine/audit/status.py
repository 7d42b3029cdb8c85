"""The state of the audit, as pages and telemetry show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The place where calls are kept. `failing` says since when and `why` a file cannot be written.

    `lost` rows had no room while it could not be, and are not in it.
    """

    store: Literal["memory", "file"]
    state: Literal["ok", "failing"]
    since: float | None
    why: str | None
    lost: int
