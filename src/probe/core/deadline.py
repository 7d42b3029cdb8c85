"""The two deadlines of a synchronous tool call (product contract, section 7).

The idle deadline is moved by each valid progress report and the ceiling by nothing; progress never shortens either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The state at one moment; `progress` gives the next one. All times are seconds on the caller's clock."""

    started: float
    idle_s: float
    ceiling_s: float
    idle_at: float
    progress_count: int = 0

    @classmethod
    def start(cls, now: float, *, idle_s: float, ceiling_s: float) -> Deadlines:
        """Both deadlines run from `now`."""
        return cls(now, idle_s, ceiling_s, now + idle_s)

    @property
    def at(self) -> float:
        """The earlier of the two: the deadline of the call's cancel scope."""
        return min(self.idle_at, self.started + self.ceiling_s)

    def progress(self, now: float) -> Deadlines:
        """A valid report arrived."""
        later = max(self.idle_at, now + self.idle_s)
        return Deadlines(self.started, self.idle_s, self.ceiling_s, later, self.progress_count + 1)

    @property
    def which(self) -> Literal["idle", "ceiling"]:
        """The deadline that passes first."""
        return "ceiling" if self.started + self.ceiling_s <= self.idle_at else "idle"

    def error(self, now: float) -> tuple[str, dict[str, Any]]:
        """The sentence and the numbers for the client, once `at` has passed."""
        numbers = {
            "deadline": self.which,
            "elapsedMs": round((now - self.started) * 1000),
            "idleMs": round(self.idle_s * 1000),
            "ceilingMs": round(self.ceiling_s * 1000),
            "progressCount": self.progress_count,
        }
        if self.which == "idle":
            return f"The call was cancelled: no progress for {self.idle_s:g} s (idle deadline)", numbers
        return f"The call was cancelled: it ran longer than {self.ceiling_s:g} s (ceiling)", numbers
