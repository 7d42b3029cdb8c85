"""Tool hosts and their connections; dispatches: tool calls with deadlines, here or at a tool host."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ...wire.jsonrpc import RequestId, Rpc


class HostConnected(Struct, frozen=True, gc=False):
    """A tool host is connected with the right secret, and has not registered yet. Cause: the `http.request`.

    `client` and `peer` are those of the request.
    """

    kind: ClassVar[str] = "host.connected"
    client: str
    peer: str | None = None


class HostRegistered(Struct, frozen=True, gc=False):
    """A tool host has registered with a name and tools.

    `replaced` is its older connection, now replaced by this one.
    """

    kind: ClassVar[str] = "host.registered"
    host: str
    version: str | None
    library: str | None
    tools: tuple[str, ...]
    replaced: str | None


class HostUpdated(Struct, frozen=True, gc=False):
    """A tool host offers these tools from now on."""

    kind: ClassVar[str] = "host.updated"
    host: str
    tools: tuple[str, ...]


class HostMessage(Struct, frozen=True, gc=False):
    """One message between this server and a tool host; `tool.progress` is counted instead, and `ping` left out.

    `direction` is `received` or `sent` (passed to the connection's writer). Cause of an answer: the message it answers;
    of another message about a call, its `call.started`; else the `host.connected`.
    """

    kind: ClassVar[str] = "host.message"
    direction: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


class HostMisuse(Struct, frozen=True, gc=False):
    """A tool host broke the rules of docs/tool-hosts.md, as `detail` describes.

    Only the first per connection are recorded.
    """

    kind: ClassVar[str] = "host.misuse"
    what: str
    detail: str


class HostClosed(Struct, frozen=True, gc=False):
    """A tool host's connection is over. `by` is `client` if the host closed first, else why the server ended it.

    `host` is None if it never registered. `failed` calls failed with it; `late` messages were dropped in all.
    """

    kind: ClassVar[str] = "host.closed"
    host: str | None
    code: int | None
    by: str
    failed: int
    late: int


class DispatchSent(Struct, frozen=True, gc=False):
    """A synchronous tool call was passed to its tool. Its deadlines run from now on.

    The cause of this and of every other fact of a dispatch is the `call.started`. `host` is the tool host it was sent
    to, `dispatch` its id there; both are None for a tool of this server.
    """

    kind: ClassVar[str] = "dispatch.sent"
    tool: str
    idle_ms: int
    ceiling_ms: int
    host: str | None = None
    dispatch: str | None = None


class DispatchExtended(Struct, frozen=True, gc=False):
    """Valid progress has moved the idle deadline. Recorded for the first report, then once a second at most.

    `reports` is the number of reports so far. `deadline` is the next to pass, at `due_ms` milliseconds after the start.
    """

    kind: ClassVar[str] = "dispatch.extended"
    reports: int
    deadline: str
    due_ms: int


class DispatchExpired(Struct, frozen=True, gc=False):
    """A deadline has passed (`idle` or `ceiling`), and the call's scope is cancelled."""

    kind: ClassVar[str] = "dispatch.expired"
    deadline: str
    elapsed_ms: int
    idle_ms: int
    ceiling_ms: int
    reports: int


class DispatchSettled(Struct, frozen=True, gc=False):
    """A dispatch is over. Of its progress `reports` were valid, `invalid` were not.

    `coalesced` of the valid ones were replaced by newer ones. `sent` went on to the client, 0 if it gave no token.
    """

    kind: ClassVar[str] = "dispatch.settled"
    outcome: str
    elapsed_ms: int
    reports: int
    sent: int
    coalesced: int
    invalid: int


class DispatchCancelled(Struct, frozen=True, gc=False):
    """The server asked a tool host to stop a dispatch (`tool.cancel`). `by` is what ended the call."""

    kind: ClassVar[str] = "dispatch.cancelled"
    host: str
    dispatch: str
    by: str
    reason: str | None


class DispatchLate(Struct, frozen=True, gc=False):
    """A tool host sent a message for a dispatch that is over. The first of each kind is recorded, the rest counted.

    `what`: `progress`, `result` or `error`.
    """

    kind: ClassVar[str] = "dispatch.late"
    host: str
    dispatch: str
    what: str


class DispatchStopped(Struct, frozen=True, gc=False):
    """The end of a cancelled dispatch, `after_ms` milliseconds after `tool.cancel`.

    `how`: `acknowledged` (the work has stopped), `answered` (a result or an error came instead), `unanswered` (no
    answer in time, the place is free again), `never_sent` (it still waited here) or `host_gone`. `late` counts the
    messages dropped meanwhile.
    """

    kind: ClassVar[str] = "dispatch.stopped"
    host: str
    dispatch: str
    how: str
    after_ms: float
    late: int
