"""Time for the engine: trio's clock, so that tests run in virtual time, and a wall clock derived from it."""

from __future__ import annotations

from datetime import UTC, datetime

import trio

from .timer import Timer


class Clock:
    """`now` is trio's monotonic clock in seconds; `wall` is seconds since the epoch, and moves with it.

    Made inside a trio run. The two clocks are compared once, so timestamps stay in order when the system clock is set.
    Its `timer` calls functions at times of the monotonic clock; the engine serves it.
    """

    def __init__(self, epoch: float) -> None:
        # `trio.current_time` finds this clock through the run, which costs time for each entry of the event log.
        self._clock = trio.lowlevel.current_clock()
        self._offset = epoch - self._clock.current_time()
        self.timer = Timer()

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.current_time()

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self._clock.current_time() + self._offset

    def until_tick(self, every_s: float) -> float:
        """Seconds until the wall clock is at the next multiple of `every_s`."""
        return every_s - self.wall() % every_s

    def both(self) -> tuple[float, float]:
        """Wall and monotonic seconds of one moment."""
        now = self._clock.current_time()
        return now + self._offset, now


def iso(wall: float) -> str:
    """An ISO 8601 timestamp in UTC with milliseconds."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
