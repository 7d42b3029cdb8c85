"""The limits: what clients may use of one server."""

from __future__ import annotations

from dataclasses import dataclass

from .description import check_bounds
from .validation import check_order, for_large


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
