"""The answers of the pages, as types. Rows and entries stand in answers as they were encoded: some are only described.

Times are seconds since the epoch. A `run` is one life of a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...engine.audit.status import AuditStatus
from ...engine.catalogue.tool import TaskSupport
from ...log.event_log import Entry, Gap
from ...views.records import CallRecord
from ...views.search.completing import Completion
from ...views.tables.rows import CountsRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow
from ..exports.overview import Overview
from ..feed.feed_answers import FeedReader


@dataclass(frozen=True, slots=True)
class Link:
    """A page of the API: a path under which it stands, and what it gives."""

    path: str
    gives: str


@dataclass(frozen=True, slots=True)
class Index:
    """The paths that there are. `{…}` in a path stands for an id."""

    name: str
    version: str
    run: str
    pages: list[Link]


@dataclass(frozen=True, slots=True)
class EventPage:
    """Entries: oldest first with `since`, newest first with `before`.

    `gap` are entries that belong here and are lost. `next` is where the next page begins: give it as `since` or
    `before` again. With `before` it is null once the beginning of the log is reached; with `since` there is always
    more to come. A page may be short, even empty, when a filter passes little. `last` is the newest entry. With
    `view=1` there are the rows of the `exchanges` of these entries, too.
    """

    run: str
    gap: Gap | None
    events: list[Entry]
    next: int | None
    last: int


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The result of a filter line: `matched` of the `total` exchanges or entries that the log keeps, up to `last`.

    `events` are the entries of the newest exchanges that pass, all of each in its order, or the newest entries that
    pass; newest first. `left_out` of the entries of an exchange had no room in the answer. `next`, given as `before`
    again, leads to the older ones, null where there are none. With `view=1` there are the rows of the `exchanges` of
    these entries, too.
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
    """How a filter line is read: the `error` in it, null where it is understood, and what its word may become."""

    error: str | None
    completions: list[Completion]


@dataclass(frozen=True, slots=True)
class SessionTable:
    """Sessions and modern clients that are known as of the entry `seq`, the newest last.

    `next` is the cursor of the page with those before, null where there are none.
    """

    run: str
    seq: int
    next: str | None
    sessions: list[SessionRow]


@dataclass(frozen=True, slots=True)
class TaskTable:
    """Tasks that are known as of the entry `seq`, the newest last.

    `next` is the cursor of the page with those before, null where there are none.
    """

    run: str
    seq: int
    next: str | None
    tasks: list[TaskRow]


@dataclass(frozen=True, slots=True)
class StreamTable:
    """Streams that are known as of the entry `seq`, the newest last.

    `next` is the cursor of the page with those before, null where there are none.
    """

    run: str
    seq: int
    next: str | None
    streams: list[StreamRow]


@dataclass(frozen=True, slots=True)
class HostTable:
    """Connections of tool hosts that are known as of the entry `seq`, the newest last.

    `next` is the cursor of the page with those before, null where there are none.
    """

    run: str
    seq: int
    next: str | None
    hosts: list[HostRow]


@dataclass(frozen=True, slots=True)
class RefusalTable:
    """The newest errors that the server answered because of what a client sent, as of the entry `seq`, the newest last.

    `next` is the cursor of the page with those before, null where there are none.
    """

    run: str
    seq: int
    next: str | None
    refusals: list[RefusalRow]


@dataclass(frozen=True, slots=True)
class CountsTable:
    """Counts of the entries that the log keeps, in one row, as of the entry `seq`; `next` is always null."""

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
    """The entries that belong to a call; not `complete` where some were pushed out of the log.

    With `view=1` there are the rows of the `exchanges` of these entries, too: as far as these entries tell.
    """

    complete: bool
    events: list[Entry]


@dataclass(frozen=True, slots=True)
class CallDetail:
    """One tool call with what it rests on."""

    call: CallRecord
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class ExportOverview:
    """The contents of an export if it were made now.

    `client` and `call` are what was asked for; both are null where nothing is left out. `judged`: a report is in it.
    """

    run: str
    client: str | None
    call: str | None
    judged: bool
    contains: Overview


@dataclass(frozen=True, slots=True)
class ToolsetInfo:
    """A group of tools; `default` ones are served where a client's URL does not choose."""

    name: str
    default: bool
    tools: list[str]


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """A setting that is no limit. Secrets and paths of this machine are not among them."""

    name: str
    value: str | float | bool
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class LimitInfo:
    """A limit; `used` is how much of it is taken now, where it bounds something that all clients share."""

    name: str
    value: float
    unit: str
    reason: str
    used: float | None


@dataclass(frozen=True, slots=True)
class LogInfo:
    """The event log: the oldest and the newest entry that are kept, how many, and their size.

    `missed` entries were pushed out before the tables and the evidence of calls had them.
    """

    first: int
    last: int
    entries: int
    bytes: int
    missed: int


@dataclass(frozen=True, slots=True)
class ToolHostsInfo:
    """Tool hosts: whether the server has a secret that lets them in, and how many are connected now."""

    enabled: bool
    connected: int


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The file that `mcp-probe open` shows: its name, and when it was saved, null where it does not say.

    `client` and `call` are what it was saved of; both are null where it is of all. `filtered` says that entries were
    left out on purpose, `cut_off` that its end is missing, and `gaps` are entries that are lost. `program` is the
    version of the server that wrote the log.
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
    """The server itself: what it is, how it is set, and how much of its limits is used.

    `mcp` is where clients connect, null where the server speaks MCP on its standard input and output, and where it
    shows a `file`, which is null for all others. Of a file the run and the start are those of the server that wrote it.
    `takes_files` tells whether a page in the browser of whoever asks may send a file to be shown.
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
    """A tool: what it exercises, what a good client `shows`, and what it takes and gives.

    `requires` are client capabilities without which a call is refused; `since` and `until` the first and the last
    revision that define what the tool does. `docs` is its place in the documentation, from the root of the project.
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
    """Every tool that this server has, in the order in which clients see them."""

    tools: list[ToolInfo]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is refused (RFC 9457).

    `known` are the parameters that there are, or the values of one, where an unknown one was given.
    """

    type: str
    title: str
    status: int
    detail: str
