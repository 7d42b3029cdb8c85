"""The answers of the pages, as types. Rows and entries are inserted as encoded JSON: some types only describe them.

Times are seconds since the epoch. A `run` is one life of a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...engine.audit.file import AuditStatus
from ...engine.catalogue.tool import TaskSupport
from ...log.event_log import Entry, Gap
from ...views.records import CallRecord
from ...views.rows import CountsRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow
from ...views.search.words import Completion
from ..exports.extract import Overview
from ..feed.feed_pieces import FeedReader


@dataclass(frozen=True, slots=True)
class Link:
    """A page of the API: its path and its contents."""

    path: str
    gives: str


@dataclass(frozen=True, slots=True)
class Index:
    """The paths of the API. `{…}` in a path stands for an id."""

    name: str
    version: str
    run: str
    pages: list[Link]


@dataclass(frozen=True, slots=True)
class EventPage:
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


@dataclass(frozen=True, slots=True)
class SearchPage:
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


@dataclass(frozen=True, slots=True)
class FilterReading:
    """The reading of a filter line: its `error`, null for a valid line, and the completions of its word."""

    error: str | None
    completions: list[Completion]


@dataclass(frozen=True, slots=True)
class SessionTable:
    """Sessions and modern clients as of the entry `seq`, the newest last.

    `next` is the cursor of the page with the older ones, null without any.
    """

    run: str
    seq: int
    next: str | None
    sessions: list[SessionRow]


@dataclass(frozen=True, slots=True)
class TaskTable:
    """Tasks as of the entry `seq`, the newest last.

    `next` is the cursor of the page with the older ones, null without any.
    """

    run: str
    seq: int
    next: str | None
    tasks: list[TaskRow]


@dataclass(frozen=True, slots=True)
class StreamTable:
    """Streams as of the entry `seq`, the newest last.

    `next` is the cursor of the page with the older ones, null without any.
    """

    run: str
    seq: int
    next: str | None
    streams: list[StreamRow]


@dataclass(frozen=True, slots=True)
class HostTable:
    """Connections of tool hosts as of the entry `seq`, the newest last.

    `next` is the cursor of the page with the older ones, null without any.
    """

    run: str
    seq: int
    next: str | None
    hosts: list[HostRow]


@dataclass(frozen=True, slots=True)
class RefusalTable:
    """The newest errors in answer to wrong requests of clients, as of the entry `seq`, the newest last.

    `next` is the cursor of the page with the older ones, null without any.
    """

    run: str
    seq: int
    next: str | None
    refusals: list[RefusalRow]


@dataclass(frozen=True, slots=True)
class CountsTable:
    """Counts of the kept entries, in one row, as of the entry `seq`; `next` is always null."""

    run: str
    seq: int
    next: str | None
    counts: list[CountsRow]


@dataclass(frozen=True, slots=True)
class CallPage:
    """Tool calls, newest first. `next` is the cursor of the next page, null at the end."""

    calls: list[CallRecord]
    next: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The entries that belong to a call; not `complete` if the log no longer keeps some of them.

    With `view=1` the answer has the rows of the `exchanges` of these entries, too, made from these entries alone.
    """

    complete: bool
    events: list[Entry]


@dataclass(frozen=True, slots=True)
class CallDetail:
    """One tool call with its evidence."""

    call: CallRecord
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class ExportOverview:
    """The contents of an export if it were made now.

    `client` and `call` are the query's; both are null for the whole log. `judged`: a report is in it.
    """

    run: str
    client: str | None
    call: str | None
    judged: bool
    contains: Overview


@dataclass(frozen=True, slots=True)
class ToolsetInfo:
    """A group of tools; `default` ones are served where a client's URL chooses none."""

    name: str
    default: bool
    tools: list[str]


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """A setting that is no limit. Secrets and paths of this machine are left out."""

    name: str
    value: str | float | bool
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class LimitInfo:
    """A limit; `used` is the part in use now, null unless all clients share the limit."""

    name: str
    value: float
    unit: str
    reason: str
    used: float | None


@dataclass(frozen=True, slots=True)
class LogInfo:
    """The event log: the oldest and the newest kept entry, their number, and their size.

    `missed` entries left the log before the tables and the evidence of calls had taken them.
    """

    first: int
    last: int
    entries: int
    bytes: int
    missed: int


@dataclass(frozen=True, slots=True)
class ToolHostsInfo:
    """Tool hosts: whether the server has a secret for them, and the number of present connections."""

    enabled: bool
    connected: int


@dataclass(frozen=True, slots=True)
class FileInfo:
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


@dataclass(frozen=True, slots=True)
class Server:
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


@dataclass(frozen=True, slots=True)
class ToolInfo:
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


@dataclass(frozen=True, slots=True)
class ToolList:
    """Every tool of this server, in the order of `tools/list`."""

    tools: list[ToolInfo]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is refused (RFC 9457).

    After an unknown parameter or value, `known` are the known ones.
    """

    type: str
    title: str
    status: int
    detail: str
