"""Every default of the server: its value, its unit and the reason for it. Nowhere else.

Each field of `Settings` and `Limits` that is not fixed is also a command line flag (`max_sessions` is
`--max-sessions`) and an environment variable (`MCP_PROBE_MAX_SESSIONS`); `mcp-probe settings` prints these, in groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, NamedTuple

from .checks import SettingError, check_choice, check_hosts, check_order, check_origins, check_secret, check_url

ENV_PREFIX = "MCP_PROBE_"
LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("off", "error", "warning", "info", "debug")
"""From the quietest on."""


def _setting(
    default: Any,
    *,
    unit: str,
    reason: str,
    low: float | None = None,
    high: float | None = None,
    public: bool = False,
    begins: str = "",
    help: str = "",
    fixed: bool = False,
) -> Any:
    """A field. `begins` is the heading of the group that starts here; `help` is for those that `--help` shows.

    A `fixed` one is set by no flag and no variable: nobody who runs a server needs another value, only its tests do.
    """
    meta = {"unit": unit, "reason": reason, "low": low, "high": high, "public": public, "begins": begins, "help": help}
    return field(default=default, metadata={**meta, "fixed": fixed})


def _check_bounds(instance: Any) -> None:
    for spec in described(type(instance)):
        value = getattr(instance, spec.name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        # Written so that NaN, which compares false with everything, is outside.
        above = spec.low is None or value >= spec.low
        below = value < math.inf if spec.high is None else value <= spec.high
        if not (above and below):
            bounds = f"at least {spec.low}" if spec.high is None else f"between {spec.low} and {spec.high}"
            raise SettingError(f"{spec.name} must be {bounds} ({spec.unit}), got {value}")


def for_large(most: int) -> int:
    """The part of a limit in bytes that large items may use; the rest is for small ones (`core/shares.py`)."""
    return most - most // 8


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one client, and of all together. Reaching one is answered, and is never a crash, hang or leak."""

    max_body_bytes: int = _setting(
        4 * 1024 * 1024,
        unit="bytes",
        low=1024,
        reason="the largest legal tool arguments are far below 1 KiB",
        begins="Limits of one message",
    )
    max_initialize_bytes: int = _setting(
        64 * 1024,
        fixed=True,
        unit="bytes",
        low=1024,
        reason="a session remembers what its client declared; real ones send 1 KiB",
    )
    max_id_length: int = _setting(
        256, fixed=True, unit="characters", low=36, reason="ids and progress tokens are kept and echoed; a UUID has 36"
    )
    max_header_bytes: int = _setting(
        32 * 1024, fixed=True, unit="bytes", low=1024, reason="a whole header block is buffered before the app sees it"
    )
    max_headers: int = _setting(
        100, fixed=True, unit="headers", low=10, reason="browsers and gateways together send about 40"
    )
    max_json_depth: int = _setting(
        64,
        fixed=True,
        unit="levels",
        low=8,
        reason="the deepest legal message, a JSON Schema inside a result, has about 15",
    )
    max_batch: int = _setting(
        50,
        fixed=True,
        unit="messages",
        low=1,
        reason="a batch (2025-03-26 only) counts against the in-flight limit all at once",
    )
    max_sessions: int = _setting(
        1000,
        unit="sessions",
        low=1,
        reason="an idle session costs a few kB; beyond this initialize is answered 503",
        begins="Limits of sessions, requests, tasks and subscriptions",
    )
    max_in_flight: int = _setting(
        100, unit="requests per session", low=1, reason="each one holds a nursery and a replay log"
    )
    max_tasks_per_session: int = _setting(50, unit="tasks", low=1, reason="one client cannot use up the room of all")
    max_tasks: int = _setting(1000, unit="tasks", low=1, reason="bounds task memory over all sessions")
    max_subscriptions: int = _setting(
        50,
        fixed=True,
        unit="resources per session, resources and tasks per subscription",
        low=1,
        reason="each ticking one holds a trio task",
    )
    max_calls: int = _setting(
        1000, unit="modern requests", low=1, reason="those that run at the same time; one more is answered 503"
    )
    max_listens: int = _setting(
        500, unit="subscriptions", low=1, reason="each holds a connection or an HTTP/2 stream; one more is answered 503"
    )
    max_request_state: int = _setting(
        1024 * 1024,
        fixed=True,
        unit="bytes",
        low=1024,
        reason="it comes back within a body of max_body_bytes, with answers beside",
        begins="Limits of memory, over all clients",
    )
    max_incoming_bytes: int = _setting(
        256 * 1024 * 1024,
        unit="bytes",
        low=32 * 1024 * 1024,
        reason="bodies that are not complete, over all clients, and as much again of messages on WebSockets",
    )
    max_unsent_bytes: int = _setting(
        256 * 1024 * 1024,
        unit="bytes",
        low=8 * 1024 * 1024,
        reason="JSON answers that no socket has taken yet, over all clients; beyond this an answer is 503 instead",
    )
    max_interactions: int = _setting(
        1000,
        fixed=True,
        unit="pages",
        low=1,
        reason="pages of URL mode elicitation that can be confirmed; one more is refused",
    )
    max_listen_queue: int = _setting(
        200,
        fixed=True,
        unit="messages per subscription",
        low=1,
        reason="a reader that is so far behind gets the final result instead of a stream with holes",
    )
    requests_per_second: float = _setting(
        50.0,
        unit="requests per second per client address",
        low=0.1,
        reason="far above a client at a desk; each 64 KiB of a body or message are one more; none on loopback",
        begins="Limits of one client address",
    )
    request_burst: int = _setting(
        300, unit="requests per client address", low=1, reason="so many at once; a page of the dashboard takes 10"
    )
    address_share: float = _setting(
        0.25,
        unit="part of a limit",
        low=0.001,
        high=1,
        reason="one client address may hold so much of what all share, so three others still find room; 1: all of it",
    )
    max_connections: int = _setting(
        2000,
        unit="TCP connections",
        low=1,
        reason="far more than a probe has; each is a file descriptor: lowered at the start where these are too few",
        begins="Limits of connections",
    )
    reserved_connections: int = _setting(
        16,
        fixed=True,
        unit="TCP connections",
        low=1,
        reason="beyond max_connections, for /health, /ready and pages: a browser opens 6 for a dashboard",
    )
    reserved_files: int = _setting(
        64,
        fixed=True,
        unit="file descriptors",
        low=32,
        reason="not for connections: the event loop has 3, audit_db 7, the rest is for telemetry and surprises",
    )
    max_websockets: int = _setting(
        500,
        unit="WebSockets",
        low=1,
        reason="each may hold a message of max_body_bytes that is not complete; one more is answered 503",
    )
    max_tool_hosts: int = _setting(
        20,
        unit="tool hosts",
        low=1,
        reason="connected at a time, far more than a person runs; one more gets 503",
        begins="Limits of tool hosts",
    )
    max_host_tools: int = _setting(
        100, fixed=True, unit="tools per tool host", low=1, reason="models lose their way in longer lists"
    )
    max_host_schema_bytes: int = _setting(
        64 * 1024,
        fixed=True,
        unit="bytes per schema",
        low=1024,
        reason="each tools/list repeats it; real ones have 2 kB",
    )
    max_host_schema_depth: int = _setting(
        32,
        fixed=True,
        unit="levels",
        low=4,
        reason="a result with it must stay below the max_json_depth of whoever reads it",
    )
    max_host_dispatches: int = _setting(
        25, unit="dispatches per tool host", low=1, reason="also those that were cancelled and still run there"
    )
    host_queue_bytes: int = _setting(
        8 * 1024 * 1024,
        unit="bytes per tool host",
        low=64 * 1024,
        reason="what waits for a host that reads slowly: two of the largest messages; beyond it calls fail at once",
    )
    max_streams_per_connection: int = _setting(
        1000,
        fixed=True,
        unit="HTTP/2 streams",
        low=1,
        reason="each one is an application call in flight; one more is refused with REFUSED_STREAM",
        begins="Limits of streams",
    )
    max_standalone_streams: int = _setting(
        4,
        fixed=True,
        unit="GET streams per session",
        low=1,
        reason="a client needs one, two while it reconnects; the oldest ends",
    )
    replay_messages: int = _setting(
        2000, unit="messages per stream", low=8, reason="a tool's 100 progress steps many times over"
    )
    replay_bytes: int = _setting(
        20 * 1024 * 1024, unit="bytes per stream", low=64 * 1024, reason="more than the largest result, 16.8 MB"
    )
    replay_bytes_per_session: int = _setting(
        32 * 1024 * 1024,
        fixed=True,
        unit="bytes of finished streams per session",
        low=64 * 1024,
        reason="the oldest is forgotten first, resuming it is then answered 410; open ones have bounds of their own",
    )
    max_replay_bytes: int = _setting(
        256 * 1024 * 1024,
        unit="bytes of the streams of all sessions over HTTP",
        low=64 * 1024,
        reason="the bounds of one session times all sessions would be 32 GiB; beyond it who holds most loses messages",
    )
    replay_streams: int = _setting(
        200,
        fixed=True,
        unit="finished streams per session",
        low=1,
        reason="kept for Last-Event-ID; the oldest goes first",
    )
    max_pipe_bytes: int = _setting(
        32 * 1024 * 1024,
        fixed=True,
        unit="bytes",
        low=64 * 1024,
        reason="what waits for the reader of one WebSocket or of standard output; beyond it the connection is closed",
    )
    max_draft_streams: int = _setting(
        2000, unit="draft streams", low=1, reason="over all clients, also those that are away; one more call is refused"
    )
    max_draft_streams_per_client: int = _setting(
        200,
        fixed=True,
        unit="draft streams",
        low=1,
        reason="one client cannot use up the room of all; finished ones make room",
    )
    draft_stream_bytes: int = _setting(
        256 * 1024 * 1024,
        unit="bytes of all draft streams",
        low=64 * 1024,
        reason="what clients that are away may hold; finished streams make room, then a stream that grows is lost",
    )
    progress_per_second: float = _setting(
        100.0,
        unit="notifications per second per call",
        low=1,
        reason="faster reports are coalesced, the latest wins; no built-in tool reports faster on average",
        begins="Limits of progress",
    )
    progress_burst: int = _setting(
        100, unit="notifications", low=1, reason="the `progress` tool may report its 100 steps without a pause"
    )
    event_log_events: int = _setting(
        20_000,
        unit="events",
        low=100,
        reason="the dashboard stays quick with 10,000; this is room to scroll back",
        begins="Limits of the event log and of call records",
    )
    event_log_bytes: int = _setting(
        64 * 1024 * 1024, unit="bytes", low=1024 * 1024, reason="the count alone would allow gigabytes of large results"
    )
    call_records: int = _setting(5000, unit="records", low=50, reason="the audit keeps the newest calls in memory")
    record_argument_bytes: int = _setting(
        16 * 1024,
        fixed=True,
        unit="bytes per record",
        low=256,
        reason="legal arguments are far smaller; larger ones are cut short",
    )
    record_result_bytes: int = _setting(
        16 * 1024,
        fixed=True,
        unit="bytes per record",
        low=256,
        reason="most results are far smaller; the log has the whole one",
    )
    max_feed_readers: int = _setting(
        50,
        unit="readers",
        low=1,
        reason="dashboards that are open at once; one more is answered 503",
        begins="Limits of the dashboard's feed",
    )
    feed_events_per_second: float = _setting(
        1000.0,
        fixed=True,
        unit="entries per second per reader, one for each KiB of a larger one",
        low=1,
        reason="far more than a person reads, and 20 readers hardly slow the protocol; who falls behind is told so",
    )
    feed_burst: int = _setting(
        5000,
        fixed=True,
        unit="entries",
        low=1,
        reason="a reader may be so far behind, and so many come at once when it resumes",
    )
    audit_rows: int = _setting(
        100_000,
        unit="rows in audit_db",
        low=50,
        reason="weeks of work with a client; the oldest go first",
        begins="Limits of the file of tool calls",
    )
    audit_bytes: int = _setting(
        1024 * 1024 * 1024,
        unit="bytes in audit_db",
        low=1024 * 1024,
        reason="usual rows take 10 kB with their evidence, but a message may have megabytes; the oldest go first",
    )
    api_page_bytes: int = _setting(
        4 * 1024 * 1024,
        fixed=True,
        unit="bytes",
        low=64 * 1024,
        reason="one API answer is bounded also when messages are large",
        begins="Limits of the API",
    )
    api_scan: int = _setting(
        5000,
        fixed=True,
        unit="entries",
        low=100,
        reason="a page with filters looks at no more; `next` goes on where it stopped",
    )
    api_page: int = _setting(500, unit="rows", low=1, reason="one API answer stays below a megabyte for usual events")

    def __post_init__(self) -> None:
        """Refuse values outside their bounds, and those that cannot work, with `SettingError`."""
        _check_bounds(self)
        whole = for_large(self.max_incoming_bytes)
        check_order("max_body_bytes", self.max_body_bytes, "seven eighths of max_incoming_bytes", whole)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server; `limits` bounds what clients may use."""

    host: str = _setting(
        "127.0.0.1",
        unit="address",
        public=True,
        reason="a local tool is not offered to the network unasked",
        begins="Where it listens, and what it serves",
        help="Address to listen on.",
    )
    port: int = _setting(
        8000,
        unit="TCP port",
        low=0,
        high=65535,
        reason="0 picks a free one and prints it",
        help="TCP port; 0 picks a free one.",
    )
    certfile: str = _setting(
        "",
        unit="path",
        reason="a PEM certificate chain turns TLS and ALPN (h2, http/1.1) on",
        help="PEM certificate chain: serves TLS, and HTTP/2.",
    )
    keyfile: str = _setting(
        "",
        unit="path",
        reason="the private key of certfile; empty when it is in the same file",
        help="Its private key, where that is another file.",
    )
    public_url: str = _setting(
        "",
        unit="scheme://host[:port][/path]",
        public=True,
        reason="where clients reach this server, for links to its pages; empty: as each request was addressed",
    )
    tools: str = _setting(
        "probe,streaming,features,dispatch,hosts",
        unit="toolsets or tools",
        public=True,
        reason="what a person wants to see in a client; ?tools= overrides",
        help="Toolsets and tools to serve, or all.",
    )
    allowed_hosts: str = _setting(
        "",
        unit="names or addresses without port, comma separated",
        public=True,
        reason="public Host names beside localhost and the bound address; others are refused (DNS rebinding)",
        begins="Who may call it",
        help="Public host names that clients may use.",
    )
    allowed_origins: str = _setting(
        "",
        unit="scheme://host[:port], comma separated",
        public=True,
        reason="web pages beside the server's own that may call it",
    )
    trusted_proxies: str = _setting(
        "",
        unit="addresses or networks, comma separated",
        reason="proxies whose X-Forwarded-For is believed; from anybody else it is only recorded",
    )
    grace_s: float = _setting(
        10.0,
        unit="seconds",
        low=0,
        high=600,
        reason="running work may finish after SIGTERM; then it is cancelled",
        begins="Connections in time",
    )
    keep_alive_s: float = _setting(
        15.0, unit="seconds", low=0.01, high=600, reason="SSE comment interval; also finds peers that are gone"
    )
    feed_tick_s: float = _setting(
        0.25,
        fixed=True,
        unit="seconds",
        low=0.01,
        high=10,
        reason="what is new goes to all dashboards at once; soon enough for the eye, and half the cost of 0.1",
    )
    idle_connection_s: float = _setting(
        60.0, unit="seconds", low=1, reason="a connection without a request is closed; also bounds a slow request head"
    )
    write_timeout_s: float = _setting(
        20.0, unit="seconds", low=0.1, reason="a peer that reads nothing for this long is disconnected"
    )
    ws_ping_s: float = _setting(
        20.0,
        unit="seconds",
        low=0.1,
        reason="a WebSocket peer silent for this long is pinged, and cut off as dead after twice that",
    )
    session_idle_s: float = _setting(
        1800.0,
        unit="seconds",
        low=1,
        reason="a session without request or open stream is ended",
        begins="Sessions and streams in time",
    )
    session_first_s: float = _setting(
        300.0,
        fixed=True,
        unit="seconds",
        low=1,
        reason="a session in which nothing follows initialize is ended: nobody uses it",
    )
    sse_retry_ms: int = _setting(
        500, unit="milliseconds", low=0, reason="how long a client waits before it resumes a stream"
    )
    stream_retention_s: float = _setting(
        300.0, unit="seconds", low=1, reason="how long a finished stream can still be resumed"
    )
    stream_min_s: float = _setting(
        5.0,
        unit="seconds",
        low=0,
        high=3600,
        reason="resumeInterval.min of draft streams, at most stream_max_s: sooner is an error",
    )
    stream_max_s: float = _setting(
        3600.0, unit="seconds", low=0.1, reason="resumeInterval.max: a draft stream is abandoned, its work cancelled"
    )
    idle_deadline_s: float = _setting(
        30.0,
        unit="seconds",
        low=0.1,
        reason="a call that reports nothing for this long is cancelled",
        begins="Deadlines of tool calls",
    )
    ceiling_deadline_s: float = _setting(
        300.0, unit="seconds", low=0.1, reason="no call lasts longer, whatever it reports, unless its tool says so"
    )
    toolhost_secret: str = _setting(
        "",
        unit="16 characters or more",
        reason="tool hosts must know it; empty: there is no /toolhost",
        begins="Tool hosts",
        help="Lets tool hosts connect that know it.",
    )
    toolhost_register_s: float = _setting(
        10.0,
        fixed=True,
        unit="seconds",
        low=0.1,
        reason="a tool host that is connected registers at once; else it is cut off",
    )
    toolhost_linger_s: float = _setting(
        60.0,
        fixed=True,
        unit="seconds",
        low=0.1,
        reason="a cancelled dispatch that its host never answers keeps its place so long",
    )
    client_request_s: float = _setting(
        300.0,
        unit="seconds",
        low=0.1,
        reason="a person answers elicitation and sampling; after this it is cancelled",
        begins="Requests to the client",
    )
    client_ping_s: float = _setting(
        10.0,
        fixed=True,
        unit="seconds",
        low=0.1,
        reason="ping and roots/list are answered by the client program, not by a person",
    )
    ping_interval_s: float = _setting(
        0.0, unit="seconds", low=0, reason="0: off. Otherwise each open GET stream is pinged this often"
    )
    task_ttl_ms: int = _setting(
        300_000,
        unit="milliseconds",
        low=1000,
        reason="the lifetime of a task that asks for none",
        begins="Tasks",
    )
    task_ttl_max_ms: int = _setting(3_600_000, unit="milliseconds", low=1000, reason="longer requests get this much")
    task_poll_ms: int = _setting(500, fixed=True, unit="milliseconds", low=1, reason="pollInterval offered to clients")
    request_state_ttl_s: float = _setting(
        900.0,
        unit="seconds",
        low=1,
        reason="a person answers within it; a requestState that comes later is refused",
        begins="Answers in several rounds, and lists in pages",
    )
    request_state_keys: str = _setting(
        "",
        unit="64 hex digits each, comma separated",
        reason="the first seals, all open, so that processes share them and keys rotate; empty: a random one",
    )
    page_size: int = _setting(
        50, unit="items", low=1, reason="the tools served by default fit one page; their resources show the second"
    )
    audit_db: str = _setting(
        "",
        unit="path",
        reason="a SQLite file keeps tool calls and their evidence across restarts; empty: in memory",
        begins="The file of tool calls",
        help="SQLite file that keeps tool calls over restarts.",
    )
    audit_flush_s: float = _setting(
        1.0, unit="seconds", low=0.01, high=60, reason="between writings of audit_db; a kill costs it and two writings"
    )
    judge: bool = _setting(
        False,
        unit="true or false",
        reason="verdicts on each client, on its page and under /api/judge",
        begins="Verdicts on clients",
        help="Judge each client that connects.",
    )
    metrics: bool = _setting(
        False,
        unit="true or false",
        reason="/metrics for Prometheus; whoever reaches the port can read it",
        begins="Metrics, traces and lines on standard error",
    )
    telemetry: bool = _setting(
        False,
        unit="true or false",
        reason="OpenTelemetry over OTLP/HTTP, set up by the OTEL_* variables; needs mcp-probe-server[telemetry]",
    )
    log_format: str = _setting(
        "console",
        unit=" or ".join(LOG_FORMATS),
        public=True,
        reason="lines on standard error: for people, or one JSON object each",
    )
    log_level: str = _setting(
        "warning",
        unit=" or ".join(LOG_LEVELS),
        public=True,
        reason="what is told beside start and stop: info has a line for each call; `off` follows nothing",
        help="off, error, warning, info or debug.",
    )
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse values outside their bounds, and those that cannot work, with `SettingError`."""
        _check_bounds(self)
        check_url("public_url", self.public_url)
        check_hosts("allowed_hosts", self.allowed_hosts)
        check_origins("allowed_origins", self.allowed_origins)
        check_order("stream_min_s", self.stream_min_s, "stream_max_s", self.stream_max_s)
        check_secret("toolhost_secret", self.toolhost_secret)
        check_choice("log_format", self.log_format, LOG_FORMATS)
        check_choice("log_level", self.log_level, LOG_LEVELS)


class Described(NamedTuple):
    """One setting as `mcp-probe settings`, the flags and the documentation show it.

    `group` is the heading that it stands under; `help` is its line in `--help`, empty for one that is not shown there.
    The value of a `public` one may be shown to whoever can reach the server. A text is not unless it says so: it may be
    a key, or a path of this machine. A `fixed` one has neither flag nor variable.
    """

    name: str
    type: type
    default: Any
    unit: str
    reason: str
    low: float | None
    high: float | None
    public: bool
    group: str
    help: str
    fixed: bool

    @property
    def flag(self) -> str:
        """The command line spelling: `max_sessions` is `--max-sessions`."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment spelling: `max_sessions` is `MCP_PROBE_MAX_SESSIONS`."""
        return ENV_PREFIX + self.name.upper()


def _described(spec: Field[Any], group: str) -> Described:
    meta = spec.metadata
    default = None if spec.default is MISSING else spec.default
    public = meta["public"] or not isinstance(default, str)
    bounds = meta["low"], meta["high"]
    shown = meta["unit"], meta["reason"], *bounds, public, group, meta["help"], meta["fixed"]
    return Described(spec.name, type(default), default, *shown)


def described(owner: type) -> Iterator[Described]:
    """The settings of one class, in order, without nested groups."""
    group = ""
    for spec in fields(owner):
        if spec.metadata:
            group = spec.metadata["begins"] or group
            yield _described(spec, group)


def build(values: Mapping[str, Any]) -> Settings:
    """Settings from flat names, as flags and variables give them.

    Raises `SettingError` for a value outside its bounds or that cannot work, and `TypeError` for an unknown name.
    """
    limit_names = {spec.name for spec in described(Limits)}
    limits = Limits(**{name: value for name, value in values.items() if name in limit_names})
    own = {name: value for name, value in values.items() if name not in limit_names}
    return Settings(limits=limits, **own)
