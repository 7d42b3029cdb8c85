"""The settings of one server, and the limits: what clients may use of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .description import (
    check_bounds,
    check_choice,
    check_hosts,
    check_order,
    check_origins,
    check_secret,
    check_url,
    described,
    for_large,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one client, and of all together. Reaching one is answered, and is never a crash, hang or leak."""

    max_body_bytes: int = 4 * 1024 * 1024
    max_initialize_bytes: int = 64 * 1024
    max_id_length: int = 256
    max_header_bytes: int = 32 * 1024
    max_headers: int = 100
    max_json_depth: int = 64
    max_batch: int = 50
    max_sessions: int = 1000
    max_in_flight: int = 100
    max_tasks_per_session: int = 50
    max_tasks: int = 1000
    max_subscriptions: int = 50
    max_calls: int = 1000
    max_listens: int = 500
    max_request_state: int = 1024 * 1024
    max_incoming_bytes: int = 256 * 1024 * 1024
    max_unsent_bytes: int = 256 * 1024 * 1024
    max_interactions: int = 1000
    max_listen_queue: int = 200
    requests_per_second: float = 50.0
    request_burst: int = 300
    address_share: float = 0.25
    max_rooms: int = 1000
    rooms_per_hour: float = 20.0
    room_share: float = 0.1
    max_connections: int = 2000
    reserved_connections: int = 16
    reserved_files: int = 64
    max_websockets: int = 500
    max_forwarders: int = 64
    max_tool_hosts: int = 20
    max_host_tools: int = 100
    max_host_schema_bytes: int = 64 * 1024
    max_host_schema_depth: int = 32
    max_host_dispatches: int = 25
    host_queue_bytes: int = 8 * 1024 * 1024
    max_streams_per_connection: int = 1000
    max_standalone_streams: int = 4
    replay_messages: int = 2000
    replay_bytes: int = 20 * 1024 * 1024
    replay_bytes_per_session: int = 32 * 1024 * 1024
    max_replay_bytes: int = 256 * 1024 * 1024
    replay_streams: int = 200
    max_pipe_bytes: int = 32 * 1024 * 1024
    max_draft_streams: int = 2000
    max_draft_streams_per_client: int = 200
    draft_stream_bytes: int = 256 * 1024 * 1024
    progress_per_second: float = 100.0
    progress_burst: int = 100
    event_log_events: int = 20_000
    event_log_bytes: int = 64 * 1024 * 1024
    call_records: int = 5000
    record_argument_bytes: int = 16 * 1024
    record_result_bytes: int = 16 * 1024
    max_feed_readers: int = 50
    feed_events_per_second: float = 1000.0
    feed_burst: int = 5000
    audit_rows: int = 100_000
    audit_bytes: int = 1024 * 1024 * 1024
    api_page_bytes: int = 4 * 1024 * 1024
    api_scan: int = 5000
    api_page: int = 500

    def __post_init__(self) -> None:
        check_bounds(self)
        whole = for_large(self.max_incoming_bytes)
        check_order("max_body_bytes", self.max_body_bytes, "seven eighths of max_incoming_bytes", whole)


ROOMS = ("off", "on", "only")
LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("off", "error", "warning", "info", "debug")
"""From the quietest on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server; `limits` bounds what clients may use."""

    host: str = "127.0.0.1"
    port: int = 8000
    certfile: str = ""
    keyfile: str = ""
    public_url: str = ""
    tools: str = "probe,streaming,features,dispatch,hosts"
    allowed_hosts: str = ""
    allowed_origins: str = ""
    trusted_proxies: str = ""
    rooms: str = "off"
    room_idle_s: float = 14_400.0
    grace_s: float = 10.0
    keep_alive_s: float = 15.0
    feed_tick_s: float = 0.25
    idle_connection_s: float = 60.0
    write_timeout_s: float = 20.0
    ws_ping_s: float = 20.0
    session_idle_s: float = 1800.0
    session_first_s: float = 300.0
    sse_retry_ms: int = 500
    stream_retention_s: float = 300.0
    stream_min_s: float = 5.0
    stream_max_s: float = 3600.0
    idle_deadline_s: float = 30.0
    ceiling_deadline_s: float = 300.0
    toolhost_secret: str = ""
    toolhost_register_s: float = 10.0
    toolhost_linger_s: float = 60.0
    forward_secret: str = ""
    client_request_s: float = 300.0
    client_ping_s: float = 10.0
    ping_interval_s: float = 0.0
    task_ttl_ms: int = 300_000
    task_ttl_max_ms: int = 3_600_000
    task_poll_ms: int = 500
    request_state_ttl_s: float = 900.0
    request_state_keys: str = ""
    page_size: int = 50
    audit_db: str = ""
    audit_flush_s: float = 1.0
    judge: bool = True
    metrics: bool = False
    telemetry: bool = False
    log_format: str = "console"
    log_level: str = "warning"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check_bounds(self)
        check_url("public_url", self.public_url)
        check_hosts("allowed_hosts", self.allowed_hosts)
        check_origins("allowed_origins", self.allowed_origins)
        check_order("stream_min_s", self.stream_min_s, "stream_max_s", self.stream_max_s)
        check_secret("toolhost_secret", self.toolhost_secret)
        check_secret("forward_secret", self.forward_secret)
        check_choice("rooms", self.rooms, ROOMS)
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
