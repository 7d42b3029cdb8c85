"""The rows of the live tables: what is known of one task, session, stream or tool host, as the dashboard shows it.

A row is whole, and filled in while things happen; what a reader gets is its JSON at that moment. A call's row is its
`CallRecord`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...log.stored import encode_with

Era: TypeAlias = Literal["legacy", "modern"]
Transport: TypeAlias = Literal["http", "websocket", "stdio"]
Purpose: TypeAlias = Literal["response", "standalone", "subscription", "resumable"]
StreamStatus: TypeAlias = Literal["live", "completed", "lost"]
HostState: TypeAlias = Literal["connected", "registered", "closed"]
TaskStatus: TypeAlias = Literal["queued", "working", "input_required", "completed", "failed", "cancelled"]


@dataclass(slots=True)
class TaskRow:
    """A task. `status` is the protocol's, or `queued` before the work has begun.

    `progress` and `total` are those of the last report, null before the first. Times are seconds since the epoch.
    `removed` says why it was forgotten, null while its client can still ask for it.
    """

    id: str
    tool: str
    session: str | None
    call: str | None
    status: TaskStatus
    message: str | None
    progress: float | None
    total: float | None
    created_at: float
    updated_at: float
    ttl_ms: int
    removed: str | None

    def encoded(self) -> bytes:
        """The row in JSON."""
        return _encoded(self)


@dataclass(slots=True)
class SessionRow:
    """A session of the legacy era, or the requests of one modern client.

    The row `unattributed` holds the counts of what no client is known for: its `era` and `transport` are null,
    `requests` stays 0, and names and `capabilities` are empty. `label` is the name that a client was given. `subject`
    is the name that the judge has for it: its label, else the connection that carries all of its messages, else `id`.

    `opened_at` and `last_at` are the times of its first and its latest message, in seconds since the epoch; `closed`
    says why a session ended, and is null for a client. `methods` and `tools` count what it asked for, by name; `skills`
    counts how often it read each `SKILL.md`, by URI;
    `misuse` counts what the server noted as forbidden by the revision (`client.misuse`), `refused` the errors that the
    server answered because of what the client sent (each is a `RefusalRow`). `capabilities` are those that it declared
    last.
    """

    id: str
    era: Era | None
    transport: Transport | None
    revision: str
    client_name: str
    client_version: str
    label: str | None
    subject: str
    opened_at: float
    last_at: float
    closed: str | None
    requests: int
    methods: dict[str, int]
    tools: dict[str, int]
    skills: dict[str, int]
    misuse: int
    refused: int
    capabilities: bytes

    def encoded(self) -> bytes:
        """The row in JSON."""
        return _encoded(self)


@dataclass(slots=True)
class StreamRow:
    """A stream of messages. `id` is `SESSION/STREAM`, as a stream's own id counts within its session.

    `exchange` is the request it was opened for, null for a standalone one. `status` is `live` until nothing more will
    come, then `completed`; or `lost`, and `lost` says why. `messages` were made for it, `delivered` of them a socket
    took, the rest is `waiting`; of a lost stream nothing waits. `connected` tells whether somebody reads it now: the
    exchange `reader`, which is that of `connection` where one carries it. `resumed` counts the readers that came after
    the first. `closed_by` says why the one that read it last is over, and `left_at` since when; `ended_at` says when
    the stream itself was. All three are null while somebody reads a stream that goes on.
    """

    id: str
    session: str | None
    stream: str
    purpose: Purpose
    exchange: int | None
    opened_at: float
    status: StreamStatus
    lost: str | None
    messages: int
    delivered: int
    waiting: int
    connected: bool
    reader: int | None
    connection: str | None
    resumed: int
    ended_at: float | None
    closed_by: str | None
    left_at: float | None

    def encoded(self) -> bytes:
        """The row in JSON."""
        return _encoded(self)


@dataclass(slots=True)
class HostRow:
    """One connection of a tool host, known by its label. `name` is null until it has registered.

    `opened_at` and `last_at` are the times of its beginning and of the latest thing it is known for, in seconds since
    the epoch; `closed` says why it ended, `code` is the close code of its WebSocket, null where there was none.
    `replaced` is the older connection of the same process that it took over from. `tools` are the names by which MCP
    clients know them.

    `in_flight` are the dispatches that take a place there: until they are settled, or, when they were cancelled, until
    the host has stopped. Of all that were `dispatched` those that are settled count as `completed`, `failed`,
    `cancelled` or `expired` (a deadline passed). `late` is what it said of dispatches that were over, `misuse` how
    often it broke the rules, as far as that was noted.
    """

    id: str
    name: str | None
    version: str | None
    library: str | None
    client: str
    state: HostState
    opened_at: float
    last_at: float
    closed: str | None
    code: int | None
    replaced: str | None
    tools: list[str]
    in_flight: int
    dispatched: int
    completed: int
    failed: int
    cancelled: int
    expired: int
    late: int
    misuse: int

    def encoded(self) -> bytes:
        """The row in JSON."""
        return _encoded(self)


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """An error that the server answered because of what the client sent; `id` is the number of its entry in the log.

    `session` is null where no client is known. `status` is that of the HTTP response, null where the error came on an
    open event stream or on a connection that carries all messages. `method` is the refused request's, null where none
    could be read. `code` and the beginning of `message` are those of the JSON-RPC error.
    """

    id: str
    at: float
    session: str | None
    exchange: int | None
    method: str | None
    status: int | None
    code: int
    message: str

    def encoded(self) -> bytes:
        """The row in JSON."""
        return _encoded(self)


@dataclass(frozen=True, slots=True)
class CountsRow:
    """How many entries the log keeps, from `first` to `last`, and how many of them are of each group of kinds.

    An entry is in the group of its kind; it counts in `problems` as well where it tells of an error, a refusal, a
    limit, a loss or a violation. `deliveries` (`message.delivered`) are not among the `messages`. `received` and `sent`
    are messages and HTTP heads by their direction, without deliveries.

    `mistakes`, `asked`, `lost`, `limits` and `others` are exchanges that have such a problem
    (`views/tables/problems.py`); an entry without an exchange counts as one.
    """

    id: str
    first: int
    last: int
    entries: int
    received: int
    sent: int
    deliveries: int
    messages: int
    http: int
    calls: int
    tasks: int
    streams: int
    sessions: int
    hosts: int
    server: int
    problems: int
    mistakes: int
    asked: int
    lost: int
    limits: int
    others: int

    def encoded(self) -> bytes:
        """The row in JSON."""
        return _encoded(self)


Row: TypeAlias = TaskRow | SessionRow | StreamRow | HostRow | RefusalRow | CountsRow


def _encoded(row: Row) -> bytes:
    """All fields in JSON; stored JSON is put in as it is."""
    fields = {name: getattr(row, name) for name in row.__slots__}
    stored = [(name, value) for name, value in fields.items() if isinstance(value, bytes)]
    return encode_with({name: value for name, value in fields.items() if not isinstance(value, bytes)}, stored)
