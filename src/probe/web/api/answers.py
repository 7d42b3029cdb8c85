"""The answers of the pages, as types. Rows and entries are inserted as encoded JSON: some types only describe them.

Times are seconds since the epoch. A `run` is one life of a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from ...engine.audit.file import AuditStatus
from ...engine.catalogue.tool import TaskSupport
from ...log.event_log import Entry, Gap
from ...views.entry_view import ExchangeRow
from ...views.records import CallRecord
from ...views.rows import CountsRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow
from ...views.search.call_filter import Outcome
from ...views.search.words import Completion
from ..exports.extract import Overview
from ..feed.feed_pieces import FeedReader


class Link(Struct, frozen=True):
    """A page of the API: its path and its contents."""

    path: str
    gives: str


class Index(Struct, frozen=True):
    """The paths of the API. `{…}` in a path stands for an id."""

    name: str
    version: str
    run: str
    pages: list[Link]


class EventPage(Struct, frozen=True):
    """Entries: oldest first with `since`, newest first with `before`.

    `gap` are lost entries of this page. `next` is the beginning of the next page: give it as `since` or `before` again.
    With `before` it is null at the beginning of the log; with `since` it is never null, as new entries may come. A page
    may be short, even empty, when a filter passes little. `last` is the newest entry. With `view=1` the answer has the
    rows of the `exchanges` of these entries, too.
    """

    run: str
    gap: Gap | None
    events: list[Entry]
    next: int | None
    last: int
    exchanges: list[ExchangeRow] | UnsetType = UNSET


class SearchPage(Struct, frozen=True):
    """The result of a filter line: `matched` of the `total` exchanges or entries that the log keeps, up to `last`.

    `events` are the entries of the newest passing exchanges, with all entries of each in order, or the newest passing
    entries; newest first. `left_out` of the entries of an exchange had no room in the answer. Give `next` as `before`
    for the older ones; it is null without any. With `view=1` the answer has the rows of the `exchanges` of these
    entries, too.
    """

    run: str
    matched: int
    total: int
    last: int
    next: int | None
    left_out: int
    events: list[Entry]
    exchanges: list[ExchangeRow] | UnsetType = UNSET


class FilterReading(Struct, frozen=True):
    """The reading of a filter line: its `error`, null for a valid line, and the completions of its word."""

    error: str | None
    completions: list[Completion]


class _Table(Struct, frozen=True):
    run: str
    seq: int
    next: str | None


class SessionTable(_Table, frozen=True):
    """Sessions and modern clients as of the entry `seq`, the newest last; `next` is the cursor of the older ones."""

    sessions: list[SessionRow]


class TaskTable(_Table, frozen=True):
    """Tasks as of the entry `seq`, the newest last; `next` is the cursor of the older ones."""

    tasks: list[TaskRow]


class StreamTable(_Table, frozen=True):
    """Streams as of the entry `seq`, the newest last; `next` is the cursor of the older ones."""

    streams: list[StreamRow]


class HostTable(_Table, frozen=True):
    """Connections of tool hosts as of the entry `seq`, the newest last; `next` is the cursor of the older ones."""

    hosts: list[HostRow]


class RefusalTable(_Table, frozen=True):
    """The newest errors in answer to wrong requests of clients, as of the entry `seq`, the newest last.

    `next` is the cursor of the older ones.
    """

    refusals: list[RefusalRow]


class CountsTable(_Table, frozen=True):
    """Counts of the kept entries, in one row, as of the entry `seq`; `next` is always null."""

    counts: list[CountsRow]


class AuditedCall(CallRecord, kw_only=True):
    """A tool call, as the audit records it. It grows while the call runs: `outcome` is null until the end.

    The outcome `lost` was found at the next start of the server. `done` is true only if the work came to its own end.
    `label` is the name given to the client (`?client=NAME`). `started_at` is seconds since the epoch, durations are in
    ms. `seq` is the entry `call.started`. `answered`: a response to the call was sent (for a task: its handle).
    `answer_delivered`: a socket took all of it. `emitted` and `delivered` count the other messages to the client.
    `result` is that of the answer or of `tasks/result`; for a JSON-RPC error it is `{"error": …}`.
    """

    id: str
    outcome: Outcome | None = None
    cancelled_how: str | None
    progress_token_type: Literal["string", "integer"] | None


class CallPage(Struct, frozen=True):
    """Tool calls, newest first. `next` is the cursor of the next page, null at the end."""

    calls: list[AuditedCall]
    next: str | None


class Evidence(Struct, frozen=True):
    """The entries that belong to a call; not `complete` if the log no longer keeps some of them.

    With `view=1` the answer has the rows of the `exchanges` of these entries, too, made from these entries alone.
    """

    complete: bool
    events: list[Entry]
    exchanges: list[ExchangeRow] | UnsetType = UNSET


class CallDetail(Struct, frozen=True):
    """One tool call with its evidence."""

    call: AuditedCall
    evidence: Evidence


class ExportOverview(Struct, frozen=True):
    """The contents of an export if it were made now; `client` and `call` are the query's. `judged`: with a report."""

    run: str
    client: str | None
    call: str | None
    judged: bool
    contains: Overview


class ToolsetInfo(Struct, frozen=True):
    """A group of tools; `default` ones are served where a client's URL chooses none."""

    name: str
    default: bool
    tools: list[str]


class SettingInfo(Struct, frozen=True):
    """A setting that is no limit. Secrets and paths of this machine are left out."""

    name: str
    value: str | float | bool
    unit: str
    reason: str


class LimitInfo(Struct, frozen=True):
    """A limit; `used` is the part in use now, null unless all clients share the limit."""

    name: str
    value: float
    unit: str
    reason: str
    used: float | None


class LogInfo(Struct, frozen=True):
    """The event log: the oldest and the newest kept entry, their number, and their size.

    `missed` entries left the log before the tables and the evidence of calls had taken them.
    """

    first: int
    last: int
    entries: int
    bytes: int
    missed: int


class ToolHostsInfo(Struct, frozen=True):
    """Tool hosts: whether the server has a secret for them, and the number of present connections."""

    enabled: bool
    connected: int


class FileInfo(Struct, frozen=True):
    """The file shown by `mcp-probe open`: its name, and the time of saving, null if unknown.

    The file is about the `client` or the `call`; both are null for a whole log. `filtered` is true if entries were left
    out on purpose, `cut_off` if its end is missing; `gaps` are lost entries. `program` is the version of the server
    that wrote the log.
    """

    name: str
    saved_at: float | None
    program: str
    client: str | None
    call: str | None
    filtered: bool
    cut_off: bool
    gaps: list[Gap]


class Server(Struct, frozen=True):
    """The server itself: version, settings, and the used part of its limits.

    Clients connect to `mcp`; it is null for a server on standard input and output, and for one that shows a `file`.
    `file` is null for all other servers. With a file, the run and the start are those of the server that wrote it.
    `takes_files` is true if a page in this client's browser may send a file to be shown.
    """

    name: str
    version: str
    run: str
    started_at: float
    uptime_s: float
    state: Literal["ready", "draining"]
    mcp: str | None
    revisions: list[str]
    toolsets: list[ToolsetInfo]
    settings: list[SettingInfo]
    limits: list[LimitInfo]
    log: LogInfo
    feed: list[FeedReader]
    audit: AuditStatus
    tool_hosts: ToolHostsInfo
    file: FileInfo | None
    takes_files: bool


class ToolInfo(Struct, frozen=True):
    """A tool: its subject, the behaviour that a good client `shows`, its arguments and its result.

    A call is refused without the client capabilities in `requires`. `since` and `until` are the first and the last
    revision with the feature. `docs` is its place in the documentation, from the root of the project.
    """

    name: str
    title: str
    toolset: str
    description: str
    exercises: str
    shows: str
    task_support: TaskSupport
    requires: list[str]
    since: str
    until: str
    annotations: Mapping[str, Any] | None
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    docs: str


class ToolList(Struct, frozen=True):
    """Every tool of this server, in the order of `tools/list`."""

    tools: list[ToolInfo]


class Problem(Struct, frozen=True):
    """Why a request is refused (RFC 9457).

    After an unknown parameter or value, `known` are the known ones.
    """

    type: str
    title: str
    status: int
    detail: str
    known: list[str] | UnsetType = UNSET
