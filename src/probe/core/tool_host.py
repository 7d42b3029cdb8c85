"""One connection of a tool host, and its dispatches: which messages are allowed in which state.

    connection    register      update        dispatch      close
    CONNECTED     REGISTERED    -             -             CLOSED
    REGISTERED    -             REGISTERED    REGISTERED    CLOSED
    CLOSED        -             -             -             CLOSED

    dispatch      progress      answer        cancel        withdraw    linger        close
    RUNNING       RUNNING       ANSWERED      CANCELLED     STOPPED     -             LOST
    CANCELLED     CANCELLED*    STOPPED*      CANCELLED     -           UNANSWERED    STOPPED
    ANSWERED      ANSWERED*     ANSWERED*     ANSWERED      -           -             ANSWERED
    LOST          -             -             LOST          -           -             LOST
    STOPPED       STOPPED*      STOPPED*      STOPPED       -           -             STOPPED
    UNANSWERED    UNANSWERED*   UNANSWERED*   UNANSWERED    -           -             UNANSWERED

A message marked * is too late and is dropped; an answer in CANCELLED still shows that the work has stopped. A dispatch
takes one of `max_dispatches` places while it is RUNNING or CANCELLED, since its work may still run. A cancelled
dispatch without an answer gives its place back after `linger_s`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from enum import Enum, auto
from typing import Generic, TypeVar

# Ended dispatches that are still known, so that a late message is recorded with its call.
_REMEMBERED = 200


class HostState(Enum):
    """The states of a connection."""

    CONNECTED = auto()
    REGISTERED = auto()
    CLOSED = auto()


class HostInput(Enum):
    """The inputs of a connection's machine."""

    REGISTER = auto()
    UPDATE = auto()
    DISPATCH = auto()
    CLOSE = auto()


class DispatchState(Enum):
    """The states of a dispatch."""

    RUNNING = auto()
    CANCELLED = auto()
    ANSWERED = auto()
    LOST = auto()
    STOPPED = auto()
    UNANSWERED = auto()


class DispatchInput(Enum):
    """The inputs of a dispatch's machine."""

    PROGRESS = auto()
    ANSWER = auto()
    CANCEL = auto()
    WITHDRAW = auto()
    LINGER = auto()
    CLOSE = auto()


class HostViolationError(Exception):
    """A message is not allowed in this state, or the host of a call is not connected; the text names it."""


class TooManyDispatchesError(Exception):
    """All places of the host are taken; `cancelled` of them by work that was cancelled and has not stopped."""

    def __init__(self, most: int, cancelled: int) -> None:
        super().__init__(f"{most} dispatches are in flight")
        self.most = most
        self.cancelled = cancelled


_CONNECTION: Mapping[tuple[HostState, HostInput], HostState] = {
    (HostState.CONNECTED, HostInput.REGISTER): HostState.REGISTERED,
    (HostState.CONNECTED, HostInput.CLOSE): HostState.CLOSED,
    (HostState.REGISTERED, HostInput.UPDATE): HostState.REGISTERED,
    (HostState.REGISTERED, HostInput.DISPATCH): HostState.REGISTERED,
    (HostState.REGISTERED, HostInput.CLOSE): HostState.CLOSED,
    (HostState.CLOSED, HostInput.CLOSE): HostState.CLOSED,
}

_OVER = (DispatchState.ANSWERED, DispatchState.STOPPED, DispatchState.UNANSWERED)

_DISPATCH: Mapping[tuple[DispatchState, DispatchInput], DispatchState] = {
    (DispatchState.RUNNING, DispatchInput.PROGRESS): DispatchState.RUNNING,
    (DispatchState.RUNNING, DispatchInput.ANSWER): DispatchState.ANSWERED,
    (DispatchState.RUNNING, DispatchInput.CANCEL): DispatchState.CANCELLED,
    (DispatchState.RUNNING, DispatchInput.WITHDRAW): DispatchState.STOPPED,
    (DispatchState.RUNNING, DispatchInput.CLOSE): DispatchState.LOST,
    (DispatchState.CANCELLED, DispatchInput.PROGRESS): DispatchState.CANCELLED,
    (DispatchState.CANCELLED, DispatchInput.ANSWER): DispatchState.STOPPED,
    (DispatchState.CANCELLED, DispatchInput.CANCEL): DispatchState.CANCELLED,
    (DispatchState.CANCELLED, DispatchInput.LINGER): DispatchState.UNANSWERED,
    (DispatchState.CANCELLED, DispatchInput.CLOSE): DispatchState.STOPPED,
    (DispatchState.LOST, DispatchInput.CANCEL): DispatchState.LOST,
    (DispatchState.LOST, DispatchInput.CLOSE): DispatchState.LOST,
    **{(state, DispatchInput.PROGRESS): state for state in _OVER},
    **{(state, DispatchInput.ANSWER): state for state in _OVER},
    **{(state, DispatchInput.CANCEL): state for state in _OVER},
    **{(state, DispatchInput.CLOSE): state for state in _OVER},
}


CallT = TypeVar("CallT")


class Dispatch(Generic[CallT]):
    """One `tool.dispatch`, for the `call` of its owner.

    `late` counts late messages by their kind, `cancelled_at` is the time of `tool.cancel` on the caller's clock.
    """

    def __init__(self, id: str, call: CallT) -> None:
        self.id = id
        self.call = call
        self.state = DispatchState.RUNNING
        self.cancelled_at: float | None = None
        self.late: dict[str, int] = {}

    @property
    def in_flight(self) -> bool:
        return self.state in (DispatchState.RUNNING, DispatchState.CANCELLED)

    def receive(self, event: DispatchInput) -> bool:
        """Change the state. True if the call still waited for the dispatch."""
        before = self.state
        try:
            self.state = _DISPATCH[before, event]
        except KeyError:
            raise HostViolationError(f"a dispatch cannot {event.name} in state {before.name}") from None
        return before is DispatchState.RUNNING

    def note_late(self, what: str) -> bool:
        """Count a late message. True for the first of its kind."""
        self.late[what] = self.late.get(what, 0) + 1
        return self.late[what] == 1


class ToolHost(Generic[CallT]):
    """The machine of one connection. At most `max_dispatches` are in flight, a cancelled one for `linger_s` seconds."""

    def __init__(self, *, max_dispatches: int, linger_s: float) -> None:
        self.state = HostState.CONNECTED
        self._most = max_dispatches
        self._linger_s = linger_s
        self._count = 0
        self._in_flight: dict[str, Dispatch[CallT]] = {}
        self._over: OrderedDict[str, Dispatch[CallT]] = OrderedDict()

    @property
    def in_flight(self) -> tuple[Dispatch[CallT], ...]:
        return tuple(self._in_flight.values())

    def register(self) -> None:
        """Raises `HostViolationError` if the host has registered before."""
        self._move(HostInput.REGISTER)

    def update(self) -> None:
        """The host has other tools. Raises `HostViolationError` before it has registered."""
        self._move(HostInput.UPDATE)

    def dispatch(self, call: CallT) -> Dispatch[CallT]:
        """Raises `HostViolationError` where there is no host, and `TooManyDispatchesError`."""
        self._move(HostInput.DISPATCH)
        if len(self._in_flight) >= self._most:
            cancelled = sum(item.state is DispatchState.CANCELLED for item in self._in_flight.values())
            raise TooManyDispatchesError(self._most, cancelled)
        self._count += 1
        dispatch = Dispatch(f"d{self._count}", call)
        self._in_flight[dispatch.id] = dispatch
        return dispatch

    def find(self, id: object) -> Dispatch[CallT] | None:
        """The dispatch of this id, in flight or among the 200 that ended last."""
        return None if not isinstance(id, str) else self._in_flight.get(id) or self._over.get(id)

    def had(self, id: object) -> bool:
        number = id[1:] if isinstance(id, str) and id[:1] == "d" and len(id) <= 12 else ""
        return number.isascii() and number.isdecimal() and number[0] != "0" and int(number) <= self._count

    def progress(self, dispatch: Dispatch[CallT]) -> bool:
        """A report arrived. True if it is in time."""
        return self._receive(dispatch, DispatchInput.PROGRESS)

    def answer(self, dispatch: Dispatch[CallT]) -> bool:
        """The host answered. True if this is the answer of the call."""
        return self._receive(dispatch, DispatchInput.ANSWER)

    def withdraw(self, dispatch: Dispatch[CallT]) -> None:
        self._receive(dispatch, DispatchInput.WITHDRAW)

    def cancel(self, dispatch: Dispatch[CallT], now: float) -> bool:
        """The call has ended otherwise. True if `tool.cancel` must be sent."""
        must_send = self._receive(dispatch, DispatchInput.CANCEL)
        if must_send:
            dispatch.cancelled_at = now
        return must_send

    @property
    def deadline(self) -> float | None:
        """When the oldest cancelled dispatch gives its place back; None if none is cancelled."""
        times = [item.cancelled_at for item in self._in_flight.values() if item.cancelled_at is not None]
        return min(times) + self._linger_s if times else None

    def expire(self, now: float) -> list[Dispatch[CallT]]:
        waiting = [item for item in self._in_flight.values() if item.cancelled_at is not None]
        # The sum of `deadline`, so that no rounding makes its time too early.
        due = [item for item in waiting if (item.cancelled_at or 0.0) + self._linger_s <= now]
        for dispatch in due:
            self._receive(dispatch, DispatchInput.LINGER)
        return due

    def close(self) -> list[Dispatch[CallT]]:
        """The connection is over. Returns the dispatches that were in flight, with their new states."""
        self._move(HostInput.CLOSE)
        open_ones = list(self._in_flight.values())
        for dispatch in open_ones:
            self._receive(dispatch, DispatchInput.CLOSE)
        return open_ones

    def _receive(self, dispatch: Dispatch[CallT], event: DispatchInput) -> bool:
        in_time = dispatch.receive(event)
        if not dispatch.in_flight and self._in_flight.pop(dispatch.id, None) is not None:
            self._over[dispatch.id] = dispatch
            if len(self._over) > _REMEMBERED:
                self._over.popitem(last=False)
        return in_time

    def _move(self, event: HostInput) -> None:
        try:
            self.state = _CONNECTION[self.state, event]
        except KeyError:
            raise HostViolationError(f"not allowed while {self.state.name.lower()}") from None
