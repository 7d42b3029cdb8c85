"""Dispatches: tool calls with deadlines, here or at a tool host."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class DispatchSent(Struct, frozen=True):
    """A synchronous tool call was handed to its tool, with the deadlines that run from now on.

    The cause of this and of every other fact of a dispatch is the `call.started`. `host` and `dispatch` are the tool
    host that it was sent to and its id there, None for a tool of this server.
    """

    kind: ClassVar[str] = "dispatch.sent"
    tool: str
    idle_ms: int
    ceiling_ms: int
    host: str | None = None
    dispatch: str | None = None


class DispatchExtended(Struct, frozen=True):
    """Valid progress has moved the idle deadline; noted for the first report, then once a second at most.

    `reports` is how many there were. `deadline` is the one that passes next, `due_ms` when, counted from the start.
    """

    kind: ClassVar[str] = "dispatch.extended"
    reports: int
    deadline: str
    due_ms: int


class DispatchExpired(Struct, frozen=True):
    """A deadline has passed (`idle` or `ceiling`), and the call's scope with it."""

    kind: ClassVar[str] = "dispatch.expired"
    deadline: str
    elapsed_ms: int
    idle_ms: int
    ceiling_ms: int
    reports: int


class DispatchSettled(Struct, frozen=True):
    """A dispatch is over. Of its progress `reports` were valid, `invalid` were not.

    `coalesced` of the valid ones made room for newer ones. `sent` is how many went on to the client, 0 where that gave
    no token.
    """

    kind: ClassVar[str] = "dispatch.settled"
    outcome: str
    elapsed_ms: int
    reports: int
    sent: int
    coalesced: int
    invalid: int


class DispatchCancelled(Struct, frozen=True):
    """A tool host was told to stop a dispatch; `by` is what ended the call."""

    kind: ClassVar[str] = "dispatch.cancelled"
    host: str
    dispatch: str
    by: str
    reason: str | None


class DispatchLate(Struct, frozen=True):
    """A tool host said something of a dispatch that is over: the first of its kind, the rest are only counted.

    `what`: `progress`, `result` or `error`.
    """

    kind: ClassVar[str] = "dispatch.late"
    host: str
    dispatch: str
    what: str


class DispatchStopped(Struct, frozen=True):
    """The end of a cancelled dispatch, `after_ms` milliseconds after `tool.cancel`.

    `how`: `acknowledged` (the work has stopped), `answered` (it came to its end instead), `unanswered` (the host has
    said nothing in time, the place is given back), `never_sent` (it still waited here) or `host_gone`. `late` counts
    what was dropped meanwhile.
    """

    kind: ClassVar[str] = "dispatch.stopped"
    host: str
    dispatch: str
    how: str
    after_ms: float
    late: int
