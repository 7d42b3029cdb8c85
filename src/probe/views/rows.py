"""The rows of the live tables: the state of one task, session, stream or tool host, as the dashboard shows it.

A row has all members from the start. A call's row is its `CallRecord`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, structs

from ..log.redaction import encode_with

Era: TypeAlias = Literal["legacy", "modern"]
Transport: TypeAlias = Literal["http", "websocket", "stdio"]
Purpose: TypeAlias = Literal["response", "standalone", "subscription", "resumable"]
StreamStatus: TypeAlias = Literal["live", "completed", "lost"]
HostState: TypeAlias = Literal["connected", "registered", "closed"]
TaskStatus: TypeAlias = Literal["queued", "working", "input_required", "completed", "failed", "cancelled"]


class TableRow(Struct, frozen=True):
    """A row of a table."""

    def encoded(self) -> bytes:
        """The row in JSON; stored JSON stands last, as it is."""
        fields = structs.asdict(self)
        stored = [(name, fields.pop(name)) for name in self.__struct_fields__ if isinstance(fields[name], bytes)]
        return encode_with(fields, stored)


class TaskRow(TableRow, frozen=True):
    """A task. `status` is the protocol's, or `queued` before the work has begun.

    `progress` and `total` are from the last report, null before the first. Times are seconds since the epoch. `removed`
    is the reason why it was forgotten, such as `expired`; null while its client can still ask for it.
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


class SessionRow(TableRow, frozen=True):
    """A session of the legacy era, or the requests of one modern client.

    The row `unattributed` holds the counts without a known client: its `era` and `transport` are null,
    `requests` stays 0, and names and `capabilities` are empty. `label` is the name given to the client, as by
    `?client=NAME`. `subject` is its name in the judge's report: its label, else its pipe, such as `w5`, else `id`.

    `opened_at` and `last_at` are the times of its first and its latest message, in seconds since the epoch; `closed` is
    the reason of a session's end, and null for a modern client. `methods` and `tools` count requests by name, and
    `skills` counts reads of each `SKILL.md` by URI. `misuse` counts violations of the revision (`client.misuse`), and
    `refused` errors in answer to wrong requests (each is a `RefusalRow`). `capabilities` are from its newest
    declaration.
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


class StreamRow(TableRow, frozen=True):
    """A stream of messages. `id` is `SESSION/STREAM`, as a stream's own id counts within its session.

    `exchange` is the request it was opened for, null for a standalone one. `status` is `live` until its last message
    was made, then `completed`; or `lost`, with the reason in `lost`. `messages` were made for it, a socket took
    `delivered` of them, and the rest are `waiting`; a lost stream has none waiting. `connected` is true while it has a
    reader: the exchange `reader`, on a pipe with the label `connection`. `resumed` counts the readers after the first.
    `closed_by` is the reason why the last reader ended, and `left_at` the time; `ended_at` is the time when the stream
    itself ended. All three are null while a live stream is read.
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


class HostRow(TableRow, frozen=True):
    """One connection of a tool host, known by its label. `name` is null until it has registered.

    `opened_at` and `last_at` are the times of its beginning and of its newest entry, in seconds since the epoch;
    `closed` is the reason of its end, `code` the close code of its WebSocket, null without one. `replaced` is the older
    connection of the same process, if this one took over from it. `tools` are the names seen by MCP clients.

    `in_flight` counts dispatches that take a place: until they are settled, or, if cancelled, until the host has
    stopped. `dispatched` counts all; the settled ones count as `completed`, `failed`, `cancelled` or `expired` (a
    deadline passed). `late` counts its messages about dispatches that were over, `misuse` its noted violations of the
    protocol.
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


class RefusalRow(TableRow, frozen=True):
    """An error in answer to a wrong request of a client; `id` is the number of its entry in the log.

    `session` is null without a known client. `status` is the status of the HTTP response; null for an error on an open
    event stream, a WebSocket or standard streams. `method` is the refused request's, null where it could not be read.
    `code` and the beginning of `message` are from the JSON-RPC error.
    """

    id: str
    at: float
    session: str | None
    exchange: int | None
    method: str | None
    status: int | None
    code: int
    message: str


class CountsRow(TableRow, frozen=True):
    """The number of entries that the log keeps, from `first` to `last`, and the number in each group of kinds.

    An entry is in the group of its kind; an error, a refusal, a limit, a loss or a violation counts in `problems`, too.
    `deliveries` (`message.delivered`) are not among the `messages`. `received` and `sent` are messages and HTTP heads
    by their direction, without deliveries.

    `mistakes`, `asked`, `lost`, `limits` and `others` count exchanges with such a problem (`views/meaning.py`);
    an entry without an exchange counts as one exchange.
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
