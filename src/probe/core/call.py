"""One call: its end, its deadlines, and its progress reports (product contract, sections 3 and 7).

Two parties race for a call: its handler wants to answer, and a cancellation wants it stopped. The table decides.

    state       cancel        expire        settle
    RUNNING     CANCELLING    EXPIRING      ANSWERED
    CANCELLING  CANCELLING    CANCELLING    SILENT      the result of a cancelled handler is dropped
    EXPIRING    EXPIRING      EXPIRING      ANSWERED    the answer names the deadline, or the shutdown
    ANSWERED    ANSWERED      ANSWERED      -
    SILENT      SILENT        SILENT        -

The first cause wins; a later one changes nothing. A deadline counts from the moment when it passed, also if the event
loop notices it later: each input of a call is preceded by `cancel(DEADLINE, …)` where it has passed.

**Deadlines.** Each valid progress report moves the idle deadline; no report moves the ceiling, and none shortens
either. As for a cancel scope of trio, a deadline has passed at its own moment: a report at that moment is too late.

**Progress.** 2025-11-25 basic/utilities/progress: "The `progress` value MUST increase with each notification", "Both
parties SHOULD implement rate limiting to prevent flooding", "Progress notifications MUST stop after completion". A
token bucket passes `burst` reports at once and `rate` a second on average. A report without a token waits, and a newer
report replaces it. The last report is never lost, because `flush` is called before the end.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Any, Final, Literal, NamedTuple


class CallState(Enum):
    """The states of a call."""

    # Members are single objects; the hash of `Enum` is that of the name, by a function in Python.
    __hash__ = object.__hash__

    RUNNING = auto()
    CANCELLING = auto()
    EXPIRING = auto()
    ANSWERED = auto()
    SILENT = auto()


class Cause(StrEnum):
    """The cause that ends a call or a task before it is done."""

    NOTIFICATION = "notification"
    DISCONNECT = "disconnect"
    TASKS_CANCEL = "tasks_cancel"
    DEADLINE = "deadline"
    TTL = "ttl"
    SESSION_END = "session_end"
    SHUTDOWN = "shutdown"


class CallInput(Enum):
    """The inputs of a call's machine."""

    __hash__ = object.__hash__

    CANCEL = auto()
    EXPIRE = auto()
    SETTLE = auto()


class CallViolationError(RuntimeError):
    """The table has no row for an input: a defect of this server, never of a client."""


_TRANSITIONS: Mapping[tuple[CallState, CallInput], CallState] = {
    (CallState.RUNNING, CallInput.CANCEL): CallState.CANCELLING,
    (CallState.RUNNING, CallInput.EXPIRE): CallState.EXPIRING,
    (CallState.RUNNING, CallInput.SETTLE): CallState.ANSWERED,
    # 2025-11-25 basic/utilities/cancellation: "Not send a response for the cancelled request".
    (CallState.CANCELLING, CallInput.CANCEL): CallState.CANCELLING,
    (CallState.CANCELLING, CallInput.EXPIRE): CallState.CANCELLING,
    (CallState.CANCELLING, CallInput.SETTLE): CallState.SILENT,
    (CallState.EXPIRING, CallInput.CANCEL): CallState.EXPIRING,
    (CallState.EXPIRING, CallInput.EXPIRE): CallState.EXPIRING,
    (CallState.EXPIRING, CallInput.SETTLE): CallState.ANSWERED,
    # "cancellation notifications may arrive after request processing has completed": both parties handle the race.
    (CallState.ANSWERED, CallInput.CANCEL): CallState.ANSWERED,
    (CallState.ANSWERED, CallInput.EXPIRE): CallState.ANSWERED,
    (CallState.SILENT, CallInput.CANCEL): CallState.SILENT,
    (CallState.SILENT, CallInput.EXPIRE): CallState.SILENT,
}

# The client did not ask for these two, so it gets an answer.
_ANSWERED_CAUSES = frozenset({Cause.DEADLINE, Cause.SHUTDOWN})


class CallMachine:
    """The machine of one call. `cause`, `reason` and `cancelled_at` are of the first cancellation."""

    def __init__(self) -> None:
        self.state = CallState.RUNNING
        self.cause: Cause | None = None
        self.reason: str | None = None
        self.cancelled_at: float | None = None
        self.settled_at: float | None = None

    def cancel(self, cause: Cause, now: float, reason: str | None = None) -> bool:
        """True for the first cause: the caller must cancel the scope now.

        `now` is the time of the decision; for a deadline, the time at which it passed.
        """
        before = self.state
        self._move(CallInput.EXPIRE if cause in _ANSWERED_CAUSES else CallInput.CANCEL)
        first = before is CallState.RUNNING
        if first:
            self.cause, self.reason, self.cancelled_at = cause, reason, now
        return first

    def settle(self, now: float) -> bool:
        """The work is over. True: the caller must send the answer.

        Raises `CallViolationError` for a call that has settled before.
        """
        self._move(CallInput.SETTLE)
        self.settled_at = now
        return self.state is CallState.ANSWERED

    @property
    def settled(self) -> bool:
        return self.state in (CallState.ANSWERED, CallState.SILENT)

    def _move(self, event: CallInput) -> None:
        try:
            self.state = _TRANSITIONS[self.state, event]
        except KeyError:
            raise CallViolationError(f"call cannot {event.name} in state {self.state.name}") from None


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
        """The deadline of the call's cancel scope."""
        return min(self.idle_at, self.latest)

    @property
    def latest(self) -> float:
        return self.started + self.ceiling_s

    @property
    def at_ms(self) -> int:
        return _ms(self.at - self.started)

    @property
    def which(self) -> Literal["idle", "ceiling"]:
        return "ceiling" if self.latest <= self.idle_at else "idle"

    @property
    def idle_ms(self) -> int:
        return _ms(self.idle_s)

    @property
    def ceiling_ms(self) -> int:
        return _ms(self.ceiling_s)

    def progress(self, now: float) -> tuple[Deadlines, bool]:
        """The state after a valid report, and True if the event log should note the extension.

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


_LARGEST: Final = sys.float_info.max


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
        """Take a report. Returns the report to send now, if any."""
        if self._stopped:
            self.late += 1
            return None
        progress, total = report.progress, report.total
        # False for NaN, for infinity, and for an integer that no double can hold.
        finite = -_LARGEST <= progress <= _LARGEST and (total is None or -_LARGEST <= total <= _LARGEST)
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
        # `due` decides: rounding may leave the token a hair short at the very moment that `due` names.
        self._room = max(0.0, filled - 1)
        return self.flush()

    def flush(self) -> Report | None:
        """The waiting report, also above the rate: the last one must not be lost."""
        report, self._waiting = self._waiting, None
        self.emitted += report is not None
        return report

    def stop(self) -> None:
        """The call is answered, or the task is terminal."""
        self._stopped = True
        self._waiting = None

    @property
    def due(self) -> float | None:
        """When the waiting report may be sent."""
        if self._waiting is None:
            return None
        return self._filled_at + max(0.0, 1 - self._room) / self._rate
