"""The list of pages: path, parameters and answer of each; and how the query of a request is read.

Unknown parameters are refused: otherwise `?tol=echo` would look like `?tool=echo` without results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from quart import request

from ...judge.reports.as_json import JudgeReport, RuleList
from ...log.event_log import Entry
from ...log.query import EVENTS as KINDS
from ...log.query import NAMES as EVENT_FILTERS
from ...log.query import QueryError, switch, twice, unknown, whole_number
from ...views.search.call_filter import ERAS, OUTCOMES, RUNNING, TRANSPORTS
from ...views.search.call_filter import NAMES as CALL_FILTERS
from ...views.tables import TABLES, TableName
from ...wire.jsonrpc import Json, clip
from . import answers
from .responses import CSV, EVENT_STREAM, HTML, JSON, NDJSON, XML, ZIP


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a page, as the description of the API shows it."""

    name: str
    description: str
    schema: Json = field(default_factory=lambda: {"type": "string"})
    pattern: str | None = None

    @property
    def shown(self) -> str:
        return self.name if self.pattern is None else f"{self.name}.PATH"


@dataclass(frozen=True, slots=True)
class Query:
    """The page's own parameters, each at most once, and the `filters` beside them, in their order."""

    own: Mapping[str, str]
    filters: tuple[tuple[str, str], ...] = ()

    def switch(self, name: str) -> bool:
        """A parameter of 0 or 1, by default 0. Raises `QueryError`."""
        return switch(name, self.own.get(name))

    def number(self, name: str, default: int, low: int = 0) -> int:
        """Raises `QueryError`."""
        given = self.own.get(name)
        if given is None:
            return default
        number = whole_number(given)
        if number is None or number < low:
            raise QueryError(f"{name} must be a whole number from {low}, got {clip(given)!r}")
        return number


def read(own: Sequence[Parameter] = (), filters: Sequence[Parameter] = ()) -> Query:
    """The query of the present request. Raises `QueryError` for an unknown name and for an own one given twice.

    The filters check repeated names of their own.
    """
    names, beside = {item.name for item in own}, {item.name for item in filters if item.pattern is None}
    prefixes = tuple(f"{item.name}." for item in filters if item.pattern is not None)
    values: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for name, value in request.args.items(multi=True):
        if name in names:
            if name in values:
                raise twice(name)
            values[name] = value
        elif name in beside or name.startswith(prefixes):
            rest.append((name, value))
        else:
            raise unknown(name, [item.shown for item in (*own, *filters)])
    return Query(values, tuple(rest))


_NUMBER: Json = {"type": "integer", "minimum": 0}


@dataclass(frozen=True, slots=True)
class Route:
    """One page. `answer` is the type of its JSON; a page of another `media` type is streamed.

    It takes its `own` parameters, and `filters` of rows or entries. A `stable` page has an ETag. `refuses` are its
    statuses beside those of every page.
    """

    path: str
    gives: str
    answer: type | None = None
    media: str = JSON
    own: tuple[Parameter, ...] = ()
    filters: tuple[Parameter, ...] = ()
    stable: bool = False
    refuses: tuple[int, ...] = ()

    @property
    def rule(self) -> str:
        return self.path.replace("{", "<").replace("}", ">")


def _filters(names: Iterable[str], meanings: Mapping[str, str], schemas: Mapping[str, Json]) -> tuple[Parameter, ...]:
    # Subscripted: a filter without a meaning here fails at the start.
    return tuple(Parameter(name, meanings[name], schemas.get(name, {"type": "string"})) for name in names)


_EVENT_MEANINGS = MappingProxyType(
    {
        "session": "The label of a session or a modern client, such as `s7` or `m7`.",
        "label": "The name of a client, which `?client=NAME` or `MCP_PROBE_CLIENT` gave it.",
        "direction": "`in` to the server, from a client or a tool host; `out` from it.",
        "kind": "A kind, or what stands before a dot for all that begin so; several with commas.",
        "method": "The method of a message.",
        "call": "The id of a call.",
        "task": "The id of a task.",
        "stream": "The id of a stream, which counts within its session.",
        "exchange": "The number of an HTTP request with its response, or of a message on another transport.",
        "connection": (
            "The label of a connection, such as `w5` for a WebSocket, `i1` for standard streams, `r17` for those of a "
            "process that forwards its log here, `h3` for a tool host."
        ),
        "text": (
            "Anywhere in the entry, upper and lower case alike; letters beyond ASCII, and escapes, in its first 64 KiB."
        ),
    }
)
_EVENT_SCHEMAS: Mapping[str, Json] = MappingProxyType(
    {
        "direction": {"type": "string", "enum": ["in", "out"]},
        "kind": {"type": "string", "examples": [", ".join(kind.kind for kind in KINDS[:2])]},
        "exchange": _NUMBER,
    }
)
EVENT_FILTER = _filters(EVENT_FILTERS, _EVENT_MEANINGS, _EVENT_SCHEMAS)

SINCE = Parameter("since", "Entries after this one, oldest first; 0, the default, for all.", _NUMBER)
BEFORE = Parameter("before", "Entries before this one, newest first; any large number for the newest.", _NUMBER)
LIMIT = Parameter("limit", "At most so many; `api_page` bounds it.", {"type": "integer", "minimum": 1})
CURSOR = Parameter("cursor", "Where the page begins: `next` of the one before.")

INDEX = Route("/api", "what there is, with links", answers.Index)
OPENAPI = Route("/api/openapi.json", "this description", stable=True)
SERVER = Route("/api/server", "version, run, start, state, settings, limits with their use", answers.Server)
TOOLS = Route("/api/tools", "every tool: what it takes, gives, and a good client shows", answers.ToolList, stable=True)
SESSIONS = Route("/api/sessions", "sessions and modern clients", answers.SessionTable, own=(CURSOR,))
TASKS = Route("/api/tasks", "tasks", answers.TaskTable, own=(CURSOR,))
STREAMS = Route("/api/streams", "streams", answers.StreamTable, own=(CURSOR,))
HOSTS = Route("/api/hosts", "connections of tool hosts", answers.HostTable, own=(CURSOR,))
REFUSALS = Route("/api/refusals", "errors answered because of what a client sent", answers.RefusalTable, own=(CURSOR,))
COUNTS = Route("/api/counts", "how many entries of each group the log keeps", answers.CountsTable, own=(CURSOR,))
TABLE_PAGES: Mapping[TableName, Route] = MappingProxyType(
    {
        "sessions": SESSIONS,
        "tasks": TASKS,
        "streams": STREAMS,
        "hosts": HOSTS,
        "refusals": REFUSALS,
        "counts": COUNTS,
    }
)
VIEW = Parameter(
    "view",
    "1: each entry has its `view`, and the rows of its exchange are given too; 0, the default: neither.",
    {"type": "integer", "enum": [0, 1]},
)
EVENTS = Route(
    "/api/events",
    "entries of the event log, page by page",
    answers.EventPage,
    own=(SINCE, BEFORE, LIMIT, VIEW),
    filters=EVENT_FILTER,
)
EVENT = Route("/api/events/{seq}", "one entry", Entry, own=(VIEW,), stable=True)
EVENTS_NDJSON = Route(
    "/api/events.ndjson", "the event log, one JSON object a line", media=NDJSON, own=(SINCE,), filters=EVENT_FILTER
)

FILTER = Parameter("filter", 'A filter line: `client:m1 tool:progress -kind:dispatch status:>=400 "step 3"`.')
BY = Parameter("by", "The unit of a search: an `exchange`, the default, with all of its entries, or an `entry`.")
AT_ONCE = Parameter(
    "limit",
    "At most so many entries, `api_page` by default, `api_scan` and `api_page_bytes` at most; 0: only the counts.",
    _NUMBER,
)
SEARCH = Route(
    "/api/search",
    "how much of the log a filter line passes, and the newest of it",
    answers.SearchPage,
    own=(FILTER, BY, BEFORE, AT_ONCE, VIEW),
)

FILTER_LINE = Route(
    "/api/filter",
    "whether a filter line is understood, and what the word at a place in it may become",
    answers.FilterReading,
    own=(
        Parameter("line", "The filter line."),
        Parameter("at", "The place of the caret; the end of the line by default.", _NUMBER),
    ),
)

WAIT = Parameter("wait", "Answer once a rule has this verdict on a subject, `RULE:VERDICT`, or the time is over.")
FOR = Parameter("for", "With `wait`: how long at most, in seconds, 10 by default and 60 at most.", {"type": "number"})
HAVING = Parameter("verdict", "Give only rules with this verdict; several with commas. Counts are of all rules.")
_JUDGED = (WAIT, FOR, HAVING)
JUDGE = Route("/api/judge", "verdicts on every client, with `judge` on", JudgeReport, own=_JUDGED, refuses=(404,))
JUDGE_RULES = Route("/api/judge/rules", "the rules of the judge", RuleList, stable=True)
JUDGE_SUBJECT = Route("/api/judge/{name}", "verdicts on one client", JudgeReport, own=_JUDGED)
JUDGE_CARD = Route("/api/judge/{name}/card", "the same as a page to read and print", media=HTML)
JUDGE_JUNIT = Route("/api/judge/{name}/junit", "the same as JUnit XML", media=XML)

_CALL_MEANINGS = MappingProxyType(
    {
        "tool": "The name of a tool.",
        "toolset": "The name of a toolset.",
        "outcome": "How it ended, or `running`; several with commas.",
        "session": "The label of a session or a modern client.",
        "client": "The name of the client.",
        "label": "The label that the client was given.",
        "era": "The era of the protocol.",
        "revision": "The protocol revision.",
        "transport": "How the call came.",
        "task": "The id of the task it became.",
        "run": "The run of the server.",
        "from": "Started at this time or later: RFC 3339, or seconds since the epoch.",
        "until": "Started before this time, likewise.",
        "text": "Anywhere in the row, upper and lower case alike.",
    }
)
_CALL_SCHEMAS: Mapping[str, Json] = MappingProxyType(
    {
        "outcome": {"type": "string", "enum": [*OUTCOMES, RUNNING]},
        "era": {"type": "string", "enum": list(ERAS)},
        "transport": {"type": "string", "enum": list(TRANSPORTS)},
    }
)
_INSIDE = (
    Parameter("arguments", "A value inside the arguments: `arguments.steps=5`.", pattern="^arguments[.]"),
    Parameter("result", "A value inside the result: `result.structuredContent.done=false`.", pattern="^result[.]"),
)
CALL_FILTER = (*_filters(CALL_FILTERS, _CALL_MEANINGS, _CALL_SCHEMAS), *_INSIDE)

CALLS = Route(
    "/api/calls",
    "tool calls, newest first",
    answers.CallPage,
    own=(LIMIT, CURSOR),
    filters=CALL_FILTER,
)
CALL = Route("/api/calls/{id}", "one tool call with its evidence", answers.CallDetail, own=(VIEW,), stable=True)
CALLS_NDJSON = Route("/api/calls.ndjson", "tool calls, one JSON object a line", media=NDJSON, filters=CALL_FILTER)
CALLS_CSV = Route("/api/calls.csv", "tool calls as a table", media=CSV, filters=CALL_FILTER)

_PART = (
    Parameter("client", "Only what is about this client: the label of a session, or the name that it was given."),
    Parameter("call", "Only what is about this call, by its id."),
)
EXPORT = Route("/api/export", "what an export would have in it", answers.ExportOverview, own=_PART, refuses=(404,))
EXPORT_FILE = Route(
    "/api/export.mcpprobe",
    "log, calls and verdicts as one file, for `mcp-probe open`",
    media=ZIP,
    own=_PART,
    refuses=(404,),
)
EXPORT_HAR = Route("/api/export.har", "its HTTP requests and responses as HAR 1.2 (JSON)", own=_PART, refuses=(404,))
EXPORT_HTML = Route("/api/export.html", "the same as a page for a bug report", media=HTML, own=_PART, refuses=(404,))

FEED = Route(
    "/dashboard/events",
    "the feed: entries and changed rows as they come",
    media=EVENT_STREAM,
    own=(
        Parameter("since", "Go on behind this id, `RUN-SEQ`; the header Last-Event-ID does the same."),
        Parameter("tail", "Without an id: begin with so many of the newest entries.", _NUMBER),
        Parameter("tables", f"Send rows of these that change: {', '.join(TABLES)}; several with commas."),
        FILTER,
        VIEW,
        Parameter("passes", "A filter line: with `view=1`, entries and exchanges say whether they pass it."),
    ),
    filters=EVENT_FILTER,
    refuses=(406,),
)

API = (
    INDEX,
    OPENAPI,
    SERVER,
    TOOLS,
    SESSIONS,
    TASKS,
    STREAMS,
    HOSTS,
    REFUSALS,
    COUNTS,
    EVENTS,
    EVENT,
    EVENTS_NDJSON,
    SEARCH,
    FILTER_LINE,
    CALLS,
    CALL,
    CALLS_NDJSON,
    CALLS_CSV,
    JUDGE,
    JUDGE_RULES,
    JUDGE_SUBJECT,
    JUDGE_CARD,
    JUDGE_JUNIT,
    EXPORT,
    EXPORT_FILE,
    EXPORT_HAR,
    EXPORT_HTML,
)
"""Every page under `/api`."""
