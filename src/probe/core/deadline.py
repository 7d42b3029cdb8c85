"""The two deadlines of a dispatch, as a synchronous tool call is called (product contract, section 7).

Each valid progress report moves the idle deadline; no report moves the ceiling, and none shortens either.

As for a cancel scope of trio, a deadline has passed at its own moment: a report at that moment is too late.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

_NOTED_EVERY_S: Final = 1.0
"""Seconds between extensions in the event log: a tool may report thousands of times."""


class Deadlines(NamedTuple):
    """The state at one moment; `progress` gives the next one. All times are seconds on the caller's clock."""

    started: float
    idle_s: float
    ceiling_s: float
    idle_at: float
    progress_count: int = 0
    noted_at: float | None = None

    @classmethod
    def start(cls, now: float, *, idle_s: float, ceiling_s: float) -> Deadlines:
        return cls(now, idle_s, ceiling_s, now + idle_s)

    @property
    def at(self) -> float:
        """The earlier of the two: the deadline of the call's cancel scope."""
        return min(self.idle_at, self.latest)

    @property
    def latest(self) -> float:
        return self.started + self.ceiling_s

    @property
    def at_ms(self) -> int:
        return _ms(self.at - self.started)

    @property
    def which(self) -> Literal["idle", "ceiling"]:
        return "ceiling" if self.started + self.ceiling_s <= self.idle_at else "idle"

    @property
    def idle_ms(self) -> int:
        return _ms(self.idle_s)

    @property
    def ceiling_ms(self) -> int:
        return _ms(self.ceiling_s)

    def progress(self, now: float) -> tuple[Deadlines, bool]:
        """A valid report arrived: return the next state, and True if the event log should note the extension.

        It notes the first report, and then one a second at most.
        """
        if now >= self.at:
            return self, False
        later = max(self.idle_at, now + self.idle_s)
        news = self.noted_at is None or now >= self.noted_at + _NOTED_EVERY_S
        noted_at = now if news else self.noted_at
        return Deadlines(self.started, self.idle_s, self.ceiling_s, later, self.progress_count + 1, noted_at), news

    def error(self, now: float) -> tuple[str, dict[str, Any]]:
        """The message and the data of the error, once `at` has passed."""
        numbers = {
            "deadline": self.which,
            "elapsedMs": _ms(now - self.started),
            "idleMs": self.idle_ms,
            "ceilingMs": self.ceiling_ms,
            "progressCount": self.progress_count,
        }
        if self.which == "idle":
            return f"The call was cancelled: no progress for {self.idle_s:g} s (idle deadline)", numbers
        return f"The call was cancelled: it ran longer than {self.ceiling_s:g} s (ceiling)", numbers


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
