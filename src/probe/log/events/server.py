"""The server as a whole: its states, its limits, its audit file; forwarded logs; kinds of newer versions."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class LimitReached(Struct, frozen=True, gc=False):
    """A limit of `settings.Limits` refused something. Cause: the request that was refused, where there is one."""

    kind: ClassVar[str] = "limit.reached"
    limit: str
    value: float


class AuditState(Struct, frozen=True, gc=False):
    """The audit file can be written again (`ok`), or no longer (`failing`).

    `lost` rows are missing from it for good.
    """

    kind: ClassVar[str] = "audit.state"
    state: str
    why: str | None
    lost: int


class ServerState(Struct, frozen=True, gc=False):
    """The server as a whole: `ready`, `draining`, `stopped`."""

    kind: ClassVar[str] = "server.state"
    state: str


class ForwardingBegun(Struct, frozen=True, gc=False):
    """Another process sends its log here (`mcp-probe stdio --forward`). Entries of its log have this connection.

    `run`, `program` (its version) and `pid` are the process's, `address` is its address. `taken` is the last number of
    its log that this server had before, 0 at first. Cause: the `http.request`.
    """

    kind: ClassVar[str] = "forwarding.begun"
    run: str
    program: str
    pid: int
    address: str
    taken: int


class ForwardingMissed(Struct, frozen=True, gc=False):
    """Entries of the other process are missing here: its log had evicted them, or they were too large."""

    kind: ClassVar[str] = "forwarding.missed"
    entries: int


class ForwardingEnded(Struct, frozen=True, gc=False):
    """The forwarding from another process is over. Cause: the `forwarding.begun`.

    `by` is `process` if all of its log was sent, `connection` if the connection was lost and it may come again, else
    why this server ended it. `taken` is the last number of its log received here. Before this entry its connection and
    its session are recorded as closed, unless its own log did so. They are recorded as opened if it comes again.
    """

    kind: ClassVar[str] = "forwarding.ended"
    by: str
    taken: int


class UnknownEvent(Struct, frozen=True, gc=False):
    """An event of a saved log from a newer version. It is kept and shown; no table and no rule reads it.

    `own` is a JSON object of the members beside the place and the context.
    """

    kind: str
    own: bytes
