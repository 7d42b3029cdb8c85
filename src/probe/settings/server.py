"""The settings of one server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .description import check_bounds, described
from .limits import Limits
from .validation import check_choice, check_hosts, check_order, check_origins, check_secret, check_url

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
