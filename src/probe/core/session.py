"""A legacy session: its state, what was negotiated, and the request ids that were used.

    state         initialized    end
    NEGOTIATED    OPERATING      CLOSED
    OPERATING     OPERATING      CLOSED     a repeated `notifications/initialized` is harmless
    CLOSED        CLOSED         CLOSED

A session exists once `initialize` has been answered.

2025-11-25 basic, and the same in 2025-03-26 and 2025-06-18: "The request ID MUST NOT have been previously used by the
requestor within the same session." `UsedIds` remembers numbers in a row as one run, so the ids of a client that counts
are known to the end of the session. It never reports a use that did not happen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from ..wire.jsonrpc import RequestId


class SessionState(Enum):
    """The states of a session."""

    NEGOTIATED = auto()
    OPERATING = auto()
    CLOSED = auto()


class SessionInput(Enum):
    """The inputs of a session's machine."""

    INITIALIZED = auto()
    END = auto()


_TRANSITIONS: Mapping[tuple[SessionState, SessionInput], SessionState] = {
    (SessionState.NEGOTIATED, SessionInput.INITIALIZED): SessionState.OPERATING,
    (SessionState.NEGOTIATED, SessionInput.END): SessionState.CLOSED,
    (SessionState.OPERATING, SessionInput.INITIALIZED): SessionState.OPERATING,
    (SessionState.OPERATING, SessionInput.END): SessionState.CLOSED,
    (SessionState.CLOSED, SessionInput.INITIALIZED): SessionState.CLOSED,
    (SessionState.CLOSED, SessionInput.END): SessionState.CLOSED,
}


class DuplicateIdError(ValueError):
    """A request uses the id of another one in flight."""


class TooManyInFlightError(ValueError):
    """The session has `max_in_flight` requests in flight."""


class SessionMachine:
    """The machine of a session: its state, negotiated facts, ids in flight, and its idle deadline.

    The deadline is `idle_s` seconds after the last sign of the client, and `first_s` seconds after an `initialize` that
    no message follows.
    """

    def __init__(
        self,
        revision: str,
        capabilities: Mapping[str, Any],
        *,
        max_in_flight: int,
        idle_s: float,
        first_s: float,
        now: float,
    ) -> None:
        self.state = SessionState.NEGOTIATED
        self.revision = revision
        self.capabilities = capabilities
        self.in_flight: set[RequestId] = set()
        self._max_in_flight = max_in_flight
        self._idle_s = idle_s
        # `idle_s` from the second message on.
        self._patience_s = min(first_s, idle_s)
        self._seen_at = now
        self._held = 0

    def receive(self, event: SessionInput) -> None:
        self.state = _TRANSITIONS[self.state, event]

    @property
    def closed(self) -> bool:
        return self.state is SessionState.CLOSED

    def begin(self, id: RequestId) -> None:
        """A request starts. Raises as `check` does; then nothing changed."""
        self.check(id)
        self.in_flight.add(id)

    def check(self, id: RequestId) -> None:
        """Raise `DuplicateIdError` or `TooManyInFlightError` where a request with this id may not start."""
        if id in self.in_flight:
            raise DuplicateIdError(f"request id {id!r} is already in flight in this session")
        if len(self.in_flight) >= self._max_in_flight:
            why = f"this session has {self._max_in_flight} requests in flight already (max_in_flight)"
            raise TooManyInFlightError(why)

    def finish(self, id: RequestId) -> None:
        self.in_flight.remove(id)

    def touch(self, now: float) -> None:
        self._seen_at = now
        self._patience_s = self._idle_s

    def hold(self) -> None:
        """A response stream is open: the session is not idle until `release`."""
        self._held += 1

    def release(self, now: float) -> None:
        self._held -= 1
        self.touch(now)

    @property
    def deadline(self) -> float | None:
        """None while a request or a stream keeps the session alive."""
        if self._held or self.in_flight:
            return None
        return self._seen_at + self._patience_s


class UsedIds:
    """The ids that one session has used: at most `most` strings and `most` runs of numbers."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Runs in order, with gaps between them: the first number of each, and the number behind its last.
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._strings: dict[str, None] = {}

    def use(self, id: RequestId) -> bool:
        """Remember an id. True if it was used before."""
        return self._use_string(id) if isinstance(id, str) else self._use_number(id)

    def _use_string(self, id: str) -> bool:
        if id in self._strings:
            return True
        self._strings[id] = None
        if len(self._strings) > self._most:
            del self._strings[next(iter(self._strings))]
        return False

    def _use_number(self, id: int) -> bool:
        if self._ends and self._ends[-1] == id:
            self._ends[-1] += 1
            return False
        at = bisect_right(self._firsts, id)
        if at and id < self._ends[at - 1]:
            return True
        extends = at > 0 and self._ends[at - 1] == id
        meets = at < len(self._firsts) and self._firsts[at] == id + 1
        first = self._firsts[at - 1] if extends else id
        end = self._ends[at] if meets else id + 1
        replaced = slice(at - extends, at + meets)
        self._firsts[replaced], self._ends[replaced] = [first], [end]
        if len(self._firsts) > self._most:
            del self._firsts[0], self._ends[0]
        return False
