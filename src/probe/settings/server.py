"""The settings of one server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .description import check_bounds, described, setting
from .limits import Limits
from .validation import check_choice, check_hosts, check_order, check_origins, check_secret, check_url

LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("off", "error", "warning", "info", "debug")
"""From the quietest on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server; `limits` bounds what clients may use."""

    host: str = setting(
        "127.0.0.1",
        unit="address",
        public=True,
        reason="a local tool is not offered to the network unasked",
        begins="Where it listens, and what it serves",
        help="Address to listen on.",
    )
    port: int = setting(
        8000,
        unit="TCP port",
        low=0,
        high=65535,
        reason="0 picks a free one and prints it",
        help="TCP port; 0 picks a free one.",
    )
    certfile: str = setting(
        "",
        unit="path",
        reason="a PEM certificate chain turns TLS and ALPN (h2, http/1.1) on",
        help="PEM certificate chain: serves TLS, and HTTP/2.",
    )
    keyfile: str = setting(
        "",
        unit="path",
        reason="the private key of certfile; empty when it is in the same file",
        help="Its private key, where that is another file.",
    )
    public_url: str = setting(
        "",
        unit="scheme://host[:port][/path]",
        public=True,
        reason="where clients reach this server, for links to its pages; empty: as each request was addressed",
    )
    tools: str = setting(
        "probe,streaming,features,dispatch,hosts",
        unit="toolsets or tools",
        public=True,
        reason="what a person wants to see in a client; ?tools= overrides",
        help="Toolsets and tools to serve, or all.",
    )
    allowed_hosts: str = setting(
        "",
        unit="names or addresses without port, comma separated",
        public=True,
        reason="public Host names beside localhost and the bound address; others are refused (DNS rebinding)",
        begins="Who may call it",
        help="Public host names that clients may use.",
    )
    allowed_origins: str = setting(
        "",
        unit="scheme://host[:port], comma separated",
        public=True,
        reason="web pages beside the server's own that may call it",
    )
    trusted_proxies: str = setting(
        "",
        unit="addresses or networks, comma separated",
        reason="proxies whose X-Forwarded-For is believed; from anybody else it is only recorded",
    )
    grace_s: float = setting(
        10.0,
        unit="seconds",
        low=0,
        high=600,
        reason="running work may finish after SIGTERM; then it is cancelled",
        begins="Connections in time",
    )
    keep_alive_s: float = setting(
        15.0, unit="seconds", low=0.01, high=600, reason="SSE comment interval; also finds peers that are gone"
    )
    feed_tick_s: float = setting(
        0.25,
        fixed=True,
        unit="seconds",
        low=0.01,
        high=10,
        reason="what is new goes to all dashboards at once; soon enough for the eye, and half the cost of 0.1",
    )
    idle_connection_s: float = setting(
        60.0, unit="seconds", low=1, reason="a connection without a request is closed; also bounds a slow request head"
    )
    write_timeout_s: float = setting(
        20.0, unit="seconds", low=0.1, reason="a peer that reads nothing for this long is disconnected"
    )
    ws_ping_s: float = setting(
        20.0,
        unit="seconds",
        low=0.1,
        reason="a WebSocket peer silent for this long is pinged, and cut off as dead after twice that",
    )
    session_idle_s: float = setting(
        1800.0,
        unit="seconds",
        low=1,
        reason="a session without request or open stream is ended",
        begins="Sessions and streams in time",
    )
    session_first_s: float = setting(
        300.0,
        fixed=True,
        unit="seconds",
        low=1,
        reason="a session in which nothing follows initialize is ended: nobody uses it",
    )
    sse_retry_ms: int = setting(
        500, unit="milliseconds", low=0, reason="how long a client waits before it resumes a stream"
    )
    stream_retention_s: float = setting(
        300.0, unit="seconds", low=1, reason="how long a finished stream can still be resumed"
    )
    stream_min_s: float = setting(
        5.0,
        unit="seconds",
        low=0,
        high=3600,
        reason="resumeInterval.min of draft streams, at most stream_max_s: sooner is an error",
    )
    stream_max_s: float = setting(
        3600.0, unit="seconds", low=0.1, reason="resumeInterval.max: a draft stream is abandoned, its work cancelled"
    )
    idle_deadline_s: float = setting(
        30.0,
        unit="seconds",
        low=0.1,
        reason="a call that reports nothing for this long is cancelled",
        begins="Deadlines of tool calls",
    )
    ceiling_deadline_s: float = setting(
        300.0, unit="seconds", low=0.1, reason="no call lasts longer, whatever it reports, unless its tool says so"
    )
    toolhost_secret: str = setting(
        "",
        unit="16 characters or more",
        reason="tool hosts must know it; empty: there is no /toolhost",
        begins="Tool hosts",
        help="Lets tool hosts connect that know it.",
    )
    toolhost_register_s: float = setting(
        10.0,
        fixed=True,
        unit="seconds",
        low=0.1,
        reason="a tool host that is connected registers at once; else it is cut off",
    )
    toolhost_linger_s: float = setting(
        60.0,
        fixed=True,
        unit="seconds",
        low=0.1,
        reason="a cancelled dispatch that its host never answers keeps its place so long",
    )
    forward_secret: str = setting(
        "",
        unit="16 characters or more",
        reason="a process that forwards its log sends it, the server must have the same; empty: there is no /forward",
        begins="Logs of other processes",
        help="Lets processes forward logs that know it.",
    )
    client_request_s: float = setting(
        300.0,
        unit="seconds",
        low=0.1,
        reason="a person answers elicitation and sampling; after this it is cancelled",
        begins="Requests to the client",
    )
    client_ping_s: float = setting(
        10.0,
        fixed=True,
        unit="seconds",
        low=0.1,
        reason="ping and roots/list are answered by the client program, not by a person",
    )
    ping_interval_s: float = setting(
        0.0, unit="seconds", low=0, reason="0: off. Otherwise each open GET stream is pinged this often"
    )
    task_ttl_ms: int = setting(
        300_000,
        unit="milliseconds",
        low=1000,
        reason="the lifetime of a task that asks for none",
        begins="Tasks",
    )
    task_ttl_max_ms: int = setting(3_600_000, unit="milliseconds", low=1000, reason="longer requests get this much")
    task_poll_ms: int = setting(500, fixed=True, unit="milliseconds", low=1, reason="pollInterval offered to clients")
    request_state_ttl_s: float = setting(
        900.0,
        unit="seconds",
        low=1,
        reason="a person answers within it; a requestState that comes later is refused",
        begins="Answers in several rounds, and lists in pages",
    )
    request_state_keys: str = setting(
        "",
        unit="64 hex digits each, comma separated",
        reason="the first seals, all open, so that processes share them and keys rotate; empty: a random one",
    )
    page_size: int = setting(
        50, unit="items", low=1, reason="the tools served by default fit one page; their resources show the second"
    )
    audit_db: str = setting(
        "",
        unit="path",
        reason="a SQLite file keeps tool calls and their evidence across restarts; empty: in memory",
        begins="The file of tool calls",
        help="SQLite file that keeps tool calls over restarts.",
    )
    audit_flush_s: float = setting(
        1.0, unit="seconds", low=0.01, high=60, reason="between writings of audit_db; a kill costs it and two writings"
    )
    judge: bool = setting(
        False,
        unit="true or false",
        reason="verdicts on each client, on its page and under /api/judge",
        begins="Verdicts on clients",
        help="Judge each client that connects.",
    )
    metrics: bool = setting(
        False,
        unit="true or false",
        reason="/metrics for Prometheus; whoever reaches the port can read it",
        begins="Metrics, traces and lines on standard error",
    )
    telemetry: bool = setting(
        False,
        unit="true or false",
        reason="OpenTelemetry over OTLP/HTTP, set up by the OTEL_* variables; needs mcp-probe-server[telemetry]",
    )
    log_format: str = setting(
        "console",
        unit=" or ".join(LOG_FORMATS),
        public=True,
        reason="lines on standard error: for people, or one JSON object each",
    )
    log_level: str = setting(
        "warning",
        unit=" or ".join(LOG_LEVELS),
        public=True,
        reason="what is told beside start and stop: info has a line for each call; `off` follows nothing",
        help="off, error, warning, info or debug.",
    )
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse values outside their bounds, and those that cannot work, with `SettingError`."""
        check_bounds(self)
        check_url("public_url", self.public_url)
        check_hosts("allowed_hosts", self.allowed_hosts)
        check_origins("allowed_origins", self.allowed_origins)
        check_order("stream_min_s", self.stream_min_s, "stream_max_s", self.stream_max_s)
        check_secret("toolhost_secret", self.toolhost_secret)
        check_secret("forward_secret", self.forward_secret)
        check_choice("log_format", self.log_format, LOG_FORMATS)
        check_choice("log_level", self.log_level, LOG_LEVELS)


def build(values: Mapping[str, Any]) -> Settings:
    """Settings from flat names, as flags and variables give them.

    Raises `SettingError` for a value outside its bounds or that cannot work, and `TypeError` for an unknown name.
    """
    limit_names = {spec.name for spec in described(Limits)}
    limits = Limits(**{name: value for name, value in values.items() if name in limit_names})
    own = {name: value for name, value in values.items() if name not in limit_names}
    return Settings(limits=limits, **own)
