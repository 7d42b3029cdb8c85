"""The rules of progress reports, and the rate at which they are passed on.

2025-11-25 basic/utilities/progress: "The `progress` value MUST increase with each notification", "Both parties SHOULD
implement rate limiting to prevent flooding", "Progress notifications MUST stop after completion".

A token bucket passes `burst` reports at once and `rate` a second on average. A report without a token waits, and a
newer report replaces it. The last report is never lost, because `flush` is called before the end.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

_MOST: Final = sys.float_info.max


class Report(NamedTuple):
    """One step. `total` is None where it is unknown."""

    progress: float
    total: float | None = None
    message: str | None = None


class ProgressGate:
    """Passes on the reports of one call or task, strictly increasing, none after `stop`.

    `reported` counts valid reports, `emitted` those passed on, `coalesced` those replaced by a newer one, `invalid`
    those that did not increase or were not finite, `late` those after `stop`; `latest` is the newest valid one.
    """

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._room = float(burst)
        self._filled_at = now
        self._waiting: Report | None = None
        self._stopped = False
        self.latest: Report | None = None
        self.reported = self.emitted = self.coalesced = self.invalid = self.late = 0

    def report(self, report: Report, now: float) -> Report | None:
        """Take a report. Returns the report to send now, None to send none."""
        if self._stopped:
            self.late += 1
            return None
        progress, total = report.progress, report.total
        # False for NaN, for infinity, and for an integer that no double can hold.
        finite = -_MOST <= progress <= _MOST and (total is None or -_MOST <= total <= _MOST)
        if not finite or (self.latest is not None and progress <= self.latest.progress):
            self.invalid += 1
            return None
        self.reported += 1
        self.latest = report
        self.coalesced += self._waiting is not None
        self._waiting = report
        return self.take(now)

    def take(self, now: float) -> Report | None:
        """The waiting report, if it may be sent; at `due` it may."""
        due = self.due
        if due is None or now < due:
            return None
        filled = min(self._burst, self._room + (now - self._filled_at) * self._rate)
        self._filled_at = now
        # `due` decides, not the room: rounding may leave the token a hair short at the very moment that `due` names.
        self._room = max(0.0, filled - 1)
        return self.flush()

    def flush(self) -> Report | None:
        """The waiting report, also above the rate: for the end, where the last one must not be lost."""
        report, self._waiting = self._waiting, None
        self.emitted += report is not None
        return report

    def stop(self) -> None:
        """Pass on no more reports: the call is answered, or the task is terminal."""
        self._stopped = True
        self._waiting = None

    @property
    def due(self) -> float | None:
        """When the waiting report may be sent; None when none waits."""
        if self._waiting is None:
            return None
        return self._filled_at + max(0.0, 1 - self._room) / self._rate
