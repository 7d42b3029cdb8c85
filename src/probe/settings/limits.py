"""The limits: what clients may use of one server."""

from __future__ import annotations

from dataclasses import dataclass

from .description import check_bounds, setting
from .validation import check_order, for_large


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one client, and of all together. Reaching one is answered, and is never a crash, hang or leak."""

    max_body_bytes: int = setting(
        4 * 1024 * 1024,
        unit="bytes",
        low=1024,
        reason="the largest legal tool arguments are far below 1 KiB",
        begins="Limits of one message",
    )
    max_initialize_bytes: int = setting(
        64 * 1024,
        fixed=True,
        unit="bytes",
        low=1024,
        reason="a session remembers what its client declared; real ones send 1 KiB",
    )
    max_id_length: int = setting(
        256, fixed=True, unit="characters", low=36, reason="ids and progress tokens are kept and echoed; a UUID has 36"
    )
    max_header_bytes: int = setting(
        32 * 1024, fixed=True, unit="bytes", low=1024, reason="a whole header block is buffered before the app sees it"
    )
    max_headers: int = setting(
        100, fixed=True, unit="headers", low=10, reason="browsers and gateways together send about 40"
    )
    max_json_depth: int = setting(
        64,
        fixed=True,
        unit="levels",
        low=8,
        reason="the deepest legal message, a JSON Schema inside a result, has about 15",
    )
    max_batch: int = setting(
        50,
        fixed=True,
        unit="messages",
        low=1,
        reason="a batch (2025-03-26 only) counts against the in-flight limit all at once",
    )
    max_sessions: int = setting(
        1000,
        unit="sessions",
        low=1,
        reason="an idle session costs a few kB; beyond this initialize is answered 503",
        begins="Limits of sessions, requests, tasks and subscriptions",
    )
    max_in_flight: int = setting(
        100, unit="requests per session", low=1, reason="each one holds a nursery and a replay log"
    )
    max_tasks_per_session: int = setting(50, unit="tasks", low=1, reason="one client cannot use up the room of all")
    max_tasks: int = setting(1000, unit="tasks", low=1, reason="bounds task memory over all sessions")
    max_subscriptions: int = setting(
        50,
        fixed=True,
        unit="resources per session, resources and tasks per subscription",
        low=1,
        reason="each ticking one holds a trio task",
    )
    max_calls: int = setting(
        1000, unit="modern requests", low=1, reason="those that run at the same time; one more is answered 503"
    )
    max_listens: int = setting(
        500, unit="subscriptions", low=1, reason="each holds a connection or an HTTP/2 stream; one more is answered 503"
    )
    max_request_state: int = setting(
        1024 * 1024,
        fixed=True,
        unit="bytes",
        low=1024,
        reason="it comes back within a body of max_body_bytes, with answers beside",
        begins="Limits of memory, over all clients",
    )
    max_incoming_bytes: int = setting(
        256 * 1024 * 1024,
        unit="bytes",
        low=32 * 1024 * 1024,
        reason="bodies that are not complete, over all clients, and as much again of messages on WebSockets",
    )
    max_unsent_bytes: int = setting(
        256 * 1024 * 1024,
        unit="bytes",
        low=8 * 1024 * 1024,
        reason="answers and pages that no socket has taken yet, over all clients; beyond this an answer is 503 instead",
    )
    max_interactions: int = setting(
        1000,
        fixed=True,
        unit="pages",
        low=1,
        reason="pages of URL mode elicitation that can be confirmed; one more is refused",
    )
    max_listen_queue: int = setting(
        200,
        fixed=True,
        unit="messages per subscription",
        low=1,
        reason="a reader that is so far behind gets the final result instead of a stream with holes",
    )
    requests_per_second: float = setting(
        50.0,
        unit="requests per second per client address",
        low=0.1,
        reason="far above a client at a desk; each 64 KiB of a body or message are one more; none on loopback",
        begins="Limits of one client address",
    )
    request_burst: int = setting(
        300, unit="requests per client address", low=1, reason="so many at once; a page of the dashboard takes 10"
    )
    address_share: float = setting(
        0.25,
        unit="part of a limit",
        low=0.001,
        high=1,
        reason="one client address may hold so much of what all share, so three others still find room; 1: all of it",
    )
    max_connections: int = setting(
        2000,
        unit="TCP connections",
        low=1,
        reason="far more than a probe has; each is a file descriptor: lowered at the start where these are too few",
        begins="Limits of connections",
    )
    reserved_connections: int = setting(
        16,
        fixed=True,
        unit="TCP connections",
        low=1,
        reason="beyond max_connections, for /health, /ready and pages: a browser opens 6 for a dashboard",
    )
    reserved_files: int = setting(
        64,
        fixed=True,
        unit="file descriptors",
        low=32,
        reason="not for connections: the event loop has 3, audit_db 7, the rest is for telemetry and surprises",
    )
    max_websockets: int = setting(
        500,
        unit="WebSockets",
        low=1,
        reason="each may hold a message of max_body_bytes that is not complete; one more is answered 503",
    )
    max_forwarders: int = setting(
        64,
        unit="processes",
        low=1,
        reason="a gateway starts one for each of its sessions; one more gets 503 and tries again",
    )
    max_tool_hosts: int = setting(
        20,
        unit="tool hosts",
        low=1,
        reason="connected at a time, far more than a person runs; one more gets 503",
        begins="Limits of tool hosts",
    )
    max_host_tools: int = setting(
        100, fixed=True, unit="tools per tool host", low=1, reason="models lose their way in longer lists"
    )
    max_host_schema_bytes: int = setting(
        64 * 1024,
        fixed=True,
        unit="bytes per schema",
        low=1024,
        reason="each tools/list repeats it; real ones have 2 kB",
    )
    max_host_schema_depth: int = setting(
        32,
        fixed=True,
        unit="levels",
        low=4,
        reason="a result with it must stay below the max_json_depth of whoever reads it",
    )
    max_host_dispatches: int = setting(
        25, unit="dispatches per tool host", low=1, reason="also those that were cancelled and still run there"
    )
    host_queue_bytes: int = setting(
        8 * 1024 * 1024,
        unit="bytes per tool host",
        low=64 * 1024,
        reason="what waits for a host that reads slowly: two of the largest messages; beyond it calls fail at once",
    )
    max_streams_per_connection: int = setting(
        1000,
        fixed=True,
        unit="HTTP/2 streams",
        low=1,
        reason="each one is an application call in flight; one more is refused with REFUSED_STREAM",
        begins="Limits of streams",
    )
    max_standalone_streams: int = setting(
        4,
        fixed=True,
        unit="GET streams per session",
        low=1,
        reason="a client needs one, two while it reconnects; the oldest ends",
    )
    replay_messages: int = setting(
        2000, unit="messages per stream", low=8, reason="a tool's 100 progress steps many times over"
    )
    replay_bytes: int = setting(
        20 * 1024 * 1024, unit="bytes per stream", low=64 * 1024, reason="more than the largest result, 16.8 MB"
    )
    replay_bytes_per_session: int = setting(
        32 * 1024 * 1024,
        fixed=True,
        unit="bytes of finished streams per session",
        low=64 * 1024,
        reason="the oldest is forgotten first, resuming it is then answered 410; open ones have bounds of their own",
    )
    max_replay_bytes: int = setting(
        256 * 1024 * 1024,
        unit="bytes of the streams of all sessions over HTTP",
        low=64 * 1024,
        reason="the bounds of one session times all sessions would be 32 GiB; beyond it who holds most loses messages",
    )
    replay_streams: int = setting(
        200,
        fixed=True,
        unit="finished streams per session",
        low=1,
        reason="kept for Last-Event-ID; the oldest goes first",
    )
    max_pipe_bytes: int = setting(
        32 * 1024 * 1024,
        fixed=True,
        unit="bytes",
        low=64 * 1024,
        reason="what waits for the reader of one WebSocket or of standard output; beyond it the connection is closed",
    )
    max_draft_streams: int = setting(
        2000, unit="draft streams", low=1, reason="over all clients, also those that are away; one more call is refused"
    )
    max_draft_streams_per_client: int = setting(
        200,
        fixed=True,
        unit="draft streams",
        low=1,
        reason="one client cannot use up the room of all; finished ones make room",
    )
    draft_stream_bytes: int = setting(
        256 * 1024 * 1024,
        unit="bytes of all draft streams",
        low=64 * 1024,
        reason="what clients that are away may hold; finished streams make room, then a stream that grows is lost",
    )
    progress_per_second: float = setting(
        100.0,
        unit="notifications per second per call",
        low=1,
        reason="faster reports are coalesced, the latest wins; no built-in tool reports faster on average",
        begins="Limits of progress",
    )
    progress_burst: int = setting(
        100, unit="notifications", low=1, reason="the `progress` tool may report its 100 steps without a pause"
    )
    event_log_events: int = setting(
        20_000,
        unit="events",
        low=100,
        reason="the dashboard stays quick with 10,000; this is room to scroll back",
        begins="Limits of the event log and of call records",
    )
    event_log_bytes: int = setting(
        64 * 1024 * 1024, unit="bytes", low=1024 * 1024, reason="the count alone would allow gigabytes of large results"
    )
    call_records: int = setting(5000, unit="records", low=50, reason="the audit keeps the newest calls in memory")
    record_argument_bytes: int = setting(
        16 * 1024,
        fixed=True,
        unit="bytes per record",
        low=256,
        reason="legal arguments are far smaller; larger ones are cut short",
    )
    record_result_bytes: int = setting(
        16 * 1024,
        fixed=True,
        unit="bytes per record",
        low=256,
        reason="most results are far smaller; the log has the whole one",
    )
    max_feed_readers: int = setting(
        50,
        unit="readers",
        low=1,
        reason="dashboards that are open at once; one more is answered 503",
        begins="Limits of the dashboard's feed",
    )
    feed_events_per_second: float = setting(
        1000.0,
        fixed=True,
        unit="entries per second per reader, one for each KiB of a larger one",
        low=1,
        reason="far more than a person reads, and 20 readers hardly slow the protocol; who falls behind is told so",
    )
    feed_burst: int = setting(
        5000,
        fixed=True,
        unit="entries",
        low=1,
        reason="a reader may be so far behind, and so many come at once when it resumes",
    )
    audit_rows: int = setting(
        100_000,
        unit="rows in audit_db",
        low=50,
        reason="weeks of work with a client; the oldest go first",
        begins="Limits of the file of tool calls",
    )
    audit_bytes: int = setting(
        1024 * 1024 * 1024,
        unit="bytes in audit_db",
        low=1024 * 1024,
        reason="usual rows take 10 kB with their evidence, but a message may have megabytes; the oldest go first",
    )
    api_page_bytes: int = setting(
        4 * 1024 * 1024,
        fixed=True,
        unit="bytes",
        low=64 * 1024,
        reason="one API answer is bounded also when messages are large",
        begins="Limits of the API",
    )
    api_scan: int = setting(
        5000,
        fixed=True,
        unit="entries",
        low=100,
        reason="a page with filters looks at no more; `next` goes on where it stopped",
    )
    api_page: int = setting(500, unit="rows", low=1, reason="one API answer stays below a megabyte for usual events")

    def __post_init__(self) -> None:
        """Refuse values outside their bounds, and those that cannot work, with `SettingError`."""
        check_bounds(self)
        whole = for_large(self.max_incoming_bytes)
        check_order("max_body_bytes", self.max_body_bytes, "seven eighths of max_incoming_bytes", whole)
