"""A legacy session: what was negotiated and which request ids are taken.

    state         initialized    end
    NEGOTIATED    OPERATING      CLOSED
    OPERATING     OPERATING      CLOSED     a repeated `notifications/initialized` is harmless
    CLOSED        CLOSED         CLOSED

A session exists once `initialize` has been answered; before that there is nothing to allocate.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from ..wire.jsonrpc import RequestId


class State(Enum):
    """The states of a session."""

    NEGOTIATED = auto()
    OPERATING = auto()
    CLOSED = auto()


class Input(Enum):
    """The inputs of a session's machine."""

    INITIALIZED = auto()
    END = auto()


_TRANSITIONS: Mapping[tuple[State, Input], State] = {
    (State.NEGOTIATED, Input.INITIALIZED): State.OPERATING,
    (State.NEGOTIATED, Input.END): State.CLOSED,
    (State.OPERATING, Input.INITIALIZED): State.OPERATING,
    (State.OPERATING, Input.END): State.CLOSED,
    (State.CLOSED, Input.INITIALIZED): State.CLOSED,
    (State.CLOSED, Input.END): State.CLOSED,
}


class DuplicateIdError(ValueError):
    """A request uses the id of one that is still in flight.

    2025-11-25 basic: "The request ID MUST NOT have been previously used by the requestor within the same session."
    """


class TooManyInFlightError(ValueError):
    """The session has as many requests in flight as it may."""


class SessionMachine:
    """The pure part of a session: state, negotiated facts, ids in flight, and when it becomes idle for too long.

    That is `idle_s` seconds after the client was heard of, and `first_s` after `initialize` if nothing follows it.
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
        self.state = State.NEGOTIATED
        self.revision = revision
        self.capabilities = capabilities
        self.in_flight: set[RequestId] = set()
        self._max_in_flight = max_in_flight
        self._idle_s = idle_s
        # Until the client is heard of again.
        self._patience_s = min(first_s, idle_s)
        self._seen_at = now
        self._held = 0

    def receive(self, event: Input) -> None:
        """Move along the table."""
        self.state = _TRANSITIONS[self.state, event]

    @property
    def closed(self) -> bool:
        """Whether the session has ended: every further request gets 404."""
        return self.state is State.CLOSED

    def begin(self, id: RequestId) -> None:
        """A request starts. Raises what `check` raises; then nothing changed."""
        self.check(id)
        self.in_flight.add(id)

    def check(self, id: RequestId) -> None:
        """Whether a request could start now. Raises `DuplicateIdError` or `TooManyInFlightError`."""
        if id in self.in_flight:
            raise DuplicateIdError(f"request id {id!r} is already in flight in this session")
        if len(self.in_flight) >= self._max_in_flight:
            why = f"this session has {self._max_in_flight} requests in flight already (max_in_flight)"
            raise TooManyInFlightError(why)

    def finish(self, id: RequestId) -> None:
        """A request is over."""
        self.in_flight.remove(id)

    def touch(self, now: float) -> None:
        """The client was heard of."""
        self._seen_at = now
        self._patience_s = self._idle_s

    def hold(self) -> None:
        """A response stream is open: the session is not idle until `release`."""
        self._held += 1

    def release(self, now: float) -> None:
        """A response stream ended."""
        self._held -= 1
        self.touch(now)

    @property
    def deadline(self) -> float | None:
        """When the session has been idle for too long; None while something keeps it alive."""
        if self._held or self.in_flight:
            return None
        return self._seen_at + self._patience_s
