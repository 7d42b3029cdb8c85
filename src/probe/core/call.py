"""One call from its start to its end: either its answer or its cancellation wins (product contract, section 3).

Two parties race for a call: its handler wants to answer, and a cancellation wants it stopped. The table decides.

    state       cancel        expire        settle
    RUNNING     CANCELLING    EXPIRING      ANSWERED
    CANCELLING  CANCELLING    CANCELLING    SILENT      the result of a cancelled handler is dropped
    EXPIRING    EXPIRING      EXPIRING      ANSWERED    the answer names the deadline, or the shutdown
    ANSWERED    ANSWERED      ANSWERED      -
    SILENT      SILENT        SILENT        -

The first cause wins; a later one changes nothing. A deadline counts from the moment when it passed, also if the event
loop notices it later: each input of a call is preceded by `cancel(DEADLINE, …)` where it has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto


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
        """Ask the work to stop. True for the first cause: the caller must cancel the scope now.

        `now` is the time of the decision; for a deadline, the time at which it passed.
        """
        before = self.state
        self._move(CallInput.EXPIRE if cause in _ANSWERED_CAUSES else CallInput.CANCEL)
        first = before is CallState.RUNNING
        if first:
            self.cause, self.reason, self.cancelled_at = cause, reason, now
        return first

    def settle(self, now: float) -> bool:
        """The work is over. True: the caller must send the answer. False: no answer is sent.

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
