"""The state of the audit, for pages and telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The state of the audit. While it is `failing`, the file cannot be written `since` then; `why` has the reason.

    `lost` rows had no room in that time, and are not in the file.
    """

    store: Literal["memory", "file"]
    state: Literal["ok", "failing"]
    since: float | None
    why: str | None
    lost: int
