"""docs/limits.md, made from the settings: what each limit is, and what a client gets beyond it.

`python -m tests.limits.page` prints it as it is committed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from probe.settings import Described, Limits, Settings, described
from probe.wire.errors import Code, Refusal

_BUSY = Refusal.BUSY
_MANY = Refusal.TOO_MANY_REQUESTS
_LARGE = Refusal.BODY_TOO_LARGE
_INVALID = Refusal.INVALID_REQUEST


def _http(refusal: Refusal, words: str = "") -> str:
    modern = f" ({int(Code.OVERLOADED)} in 2026-07-28)" if refusal.code is Code.BUSY else ""
    return f"HTTP {refusal.status}, error {int(refusal.code)}{modern}{words}"


def _error(code: Code, words: str = "") -> str:
    return f"error {int(code)}{words}"


_EACH = {Code.BUSY: f"error {int(Code.BUSY)}; in 2026-07-28 HTTP {_BUSY.status} with {int(Code.OVERLOADED)}"}
_HEAD = "HTTP 431 without a body"
_KEPT = "nobody is refused: the oldest go"
_CUT = "nobody is refused: it is cut short"
_FULL = f"HTTP {_BUSY.status}, error {int(Code.BUSY)}"
_FULL_MODERN = f"HTTP {_BUSY.status}, error {int(Code.OVERLOADED)}"
_PROBLEM = f"HTTP {_BUSY.status} with a problem"
_REGISTRATION = "the registration is refused: error 11 of [tool hosts](tool-hosts.md)"
_BUSY_HOST = "a tool error `host_busy`, at once"
_PAGED = "nobody is refused: the page is shorter, `next` goes on"
_GONE = f"a reader that is so far behind is disconnected; resuming from there is {_http(Refusal.EVENTS_GONE)}"
_LOST = f"error {int(Code.STREAM_LOST)}, `server_full`, to the owner of the stream that is lost"

BEYOND: Mapping[str, str] = {
    "max_body_bytes": f"{_http(_LARGE)}; a WebSocket is closed with 1009, a line is {_error(Code.INVALID_REQUEST)}",
    "max_initialize_bytes": f"{_http(_LARGE)}; on a pipe the error alone",
    "max_id_length": f"{_http(_INVALID)}; a progress token is error {int(Code.INVALID_PARAMS)}",
    "max_header_bytes": f"{_HEAD}; four times as much ends an HTTP/2 connection",
    "max_headers": _HEAD,
    "max_json_depth": _http(Refusal.PARSE_ERROR),
    "max_batch": _http(_INVALID),
    "max_sessions": _FULL,
    "max_in_flight": f"{_http(_MANY)}; of the whole batch",
    "max_tasks_per_session": _error(Code.BUSY),
    "max_tasks": _EACH[Code.BUSY],
    "max_subscriptions": f"{_error(Code.BUSY)}; in 2026-07-28 the acknowledgement lists no more than these",
    "max_calls": _FULL_MODERN,
    "max_listens": _FULL_MODERN,
    "max_request_state": _error(Code.INVALID_PARAMS),
    # Its era is not known before the body is.
    "max_incoming_bytes": f"{_FULL}; a WebSocket is closed with 1013",
    "max_unsent_bytes": (
        f"{_http(_BUSY)}; a page is a problem; one in pieces is cut off where a large piece has no room; "
        "a WebSocket that leaves much unread is closed with 1008"
    ),
    "max_interactions": _EACH[Code.BUSY],
    "max_listen_queue": "the subscription ends with its result",
    "requests_per_second": f"{_http(_MANY)}; bodies and WebSockets are read more slowly",
    "request_burst": _http(_MANY),
    "address_share": f"{_http(_MANY)}; {_error(Code.BUSY)} where a legacy call is read; a connection is closed",
    "max_rooms": f"the first request for one more: at `/mcp` {_http(_BUSY)}, elsewhere a page or a problem",
    "rooms_per_hour": f"HTTP {_MANY.status} with a problem",
    "room_share": f"as the limit itself; one request too many is {_http(_MANY)}",
    "max_connections": (
        f"`reserved_connections` more are heard: health and pages are answered, the rest is {_http(_BUSY)}"
    ),
    "reserved_connections": "the oldest of them is closed without a word",
    "reserved_files": "nobody is refused by it: it is taken from what max_connections may be",
    "max_websockets": _http(_BUSY),
    "max_forwarders": _PROBLEM,
    "max_tool_hosts": _PROBLEM,
    "max_host_tools": _REGISTRATION,
    "max_host_schema_bytes": _REGISTRATION,
    "max_host_schema_depth": _REGISTRATION,
    "max_host_dispatches": _BUSY_HOST,
    "host_queue_bytes": _BUSY_HOST,
    "max_streams_per_connection": "REFUSED_STREAM, for which clients try again",
    "max_standalone_streams": "the oldest of them ends",
    "replay_messages": _GONE,
    "replay_bytes": _GONE,
    "replay_bytes_per_session": f"resuming is {_http(Refusal.EVENTS_GONE)}",
    "max_replay_bytes": f"who holds most loses messages: resuming is {_http(Refusal.EVENTS_GONE)}",
    "replay_streams": f"resuming is {_http(Refusal.EVENTS_GONE)}",
    "max_pipe_bytes": "a WebSocket is closed with 1008, standard output is not written any more",
    "max_draft_streams": _error(Code.BUSY),
    "max_draft_streams_per_client": _error(Code.BUSY),
    "draft_stream_bytes": _LOST,
    "progress_per_second": "nobody is refused: reports are coalesced",
    "progress_burst": "nobody is refused: reports are coalesced",
    "event_log_events": f"{_KEPT}; readers are told of the gap",
    "event_log_bytes": f"{_KEPT}; readers are told of the gap",
    "call_records": _KEPT,
    "record_argument_bytes": _CUT,
    "record_result_bytes": _CUT,
    "max_feed_readers": _PROBLEM,
    "feed_events_per_second": "a gap, of which the reader is told",
    "feed_burst": "a gap, of which the reader is told",
    "audit_rows": _KEPT,
    "audit_bytes": _KEPT,
    "api_page_bytes": _PAGED,
    "api_scan": _PAGED,
    "api_page": _PAGED,
    "room_idle_s": f"the room has ended: at `/mcp` {_http(Refusal.UNKNOWN_SESSION)}, elsewhere a page or a problem",
    "grace_s": "running work is cancelled and says so",
    "keep_alive_s": "nobody is refused: a comment is sent",
    "idle_connection_s": f"the connection is closed; a body is {_http(Refusal.REQUEST_TIMEOUT)}",
    "write_timeout_s": "the connection is closed, an HTTP/2 stream is reset",
    "ws_ping_s": "the connection is closed",
    "session_idle_s": f"{_http(Refusal.UNKNOWN_SESSION)}: the session has ended; a WebSocket is closed with 1001",
    "session_first_s": f"{_http(Refusal.UNKNOWN_SESSION)}: the session has ended",
    "stream_retention_s": f"resuming is {_http(Refusal.EVENTS_GONE)}",
    "stream_min_s": _error(Code.RESUMED_TOO_EARLY),
    "stream_max_s": _error(Code.STREAM_LOST, ", `abandoned`"),
    "idle_deadline_s": "a tool error that names the deadline",
    "ceiling_deadline_s": "a tool error that names the deadline",
    "toolhost_register_s": "the connection is closed",
    "toolhost_linger_s": "nobody is refused: the place is free again",
    "client_request_s": "the question is withdrawn, the tool says so",
    "client_ping_s": "the question is withdrawn, the tool says so",
    "task_ttl_ms": _error(Code.INVALID_PARAMS, ": the task is gone"),
    "task_ttl_max_ms": "nobody is refused: the task says how long it lives",
    "request_state_ttl_s": _error(Code.INVALID_PARAMS),
}
"""What a client gets beyond each limit, and when each time is over."""

_PAGE = """\
# Limits

Made by `python -m tests.limits.page`; change `settings/` instead. Each limit and each time is a setting, but for
those that are *fixed*: `max_sessions` is the flag `--max-sessions` and the variable `MCP_PROBE_MAX_SESSIONS`. How
much of the shared ones is used is at `/api/server`; the event log has each refusal as `limit.reached`.
[errors.md](errors.md) has the errors.

A client that is refused with 429 or 503 over HTTP learns from `Retry-After` when to come again. On a WebSocket and on
standard streams the error stands alone.

## One client among many

A client is its address, and of an IPv6 address its /64. This machine has no limits by address.

- `requests_per_second` and `request_burst` are a token bucket for each client. Each HTTP request and each message on
  `/ws` takes one token, and each 64 KiB of it one more. `/health` and `/ready` are free, and so is what a tool host
  says that has shown its secret. Of 10,000 clients the one that was away longest is forgotten first.
- `address_share` is the part that one client may hold of each limit that all share: {shared}. The event log names it
  as in `address_share:max_sessions`. For `max_connections` it is a line in the log instead, and a trusted proxy has no
  share, as it brings everybody; for messages on WebSockets it is the reason of the close.
- Where all rooms together keep too much, the room with the most loses a stream. Its log names
  `all_rooms:max_replay_bytes` or `all_rooms:draft_stream_bytes`, with the bound of all. Of what is counted, such as
  sessions, all rooms together have four for each place of `max_rooms` (`all_rooms:max_sessions`), or `max_sessions`
  if that is more; one address has its share of these (`all_rooms:address_share:max_sessions`). Refusals by counts
  are in the log of the process, too.
- Of `max_incoming_bytes` and `max_unsent_bytes` the last eighth is for bodies, messages and answers of up to 64 KiB
  (by `Content-Length`, where there is one): who fills them with large ones under many addresses does not keep out
  those who send and read little. Unread messages on a WebSocket may use all of it, and a WebSocket with little unread
  is not closed.
- A page, such as `/api/events`, takes as much of `max_unsent_bytes` as the largest piece of its answer, and 64 KiB at
  least, from its request to its end. Events, searches, reports and exports are sent in pieces, most of them of up to
  32 KiB.

Behind a proxy every client has the proxy's address, unless `trusted_proxies` names it. Then the client is who the proxy
says in `X-Forwarded-For`: the header is read from the right, as long as a trusted address said it, so what a client
writes there itself counts for nothing. A proxy must append to the header, or replace it. One that passes on
what it was sent lets everybody choose an address. Name proxies only, not a network in which clients are too: whoever is
trusted is believed. A client of whom a trusted proxy says nothing that is an address is `unknown`; all of these share
one bucket. A loopback address names the machine of the proxy that says so: the header is read on, as another proxy may
run there, and a client there has no limits by address, as without a proxy. So a program that passes connections on to a
proxy on its own machine, and does not say for whom, takes these limits from everybody. `Forwarded` (RFC 7239) is not
read. A proxy on this machine that is not named makes all its clients this machine, without any limit by address; one
elsewhere makes them all one client. The event log has both: `client` is who the client is believed to be, and `peer`
the proxy that says so.

Beyond that no table by address helps: who has a /48 has 65,536 addresses that count. Then the limits of all hold.

## When all connections are taken

Beside `max_connections` there are `reserved_connections`, so that an operator and a platform can ask what is wrong. A
request on one of them is answered if it is for `/health`, `/ready`, the dashboard, the API or another page; MCP and
tool hosts get 503. The connection is served like any other as soon as there are no more than `max_connections` in all.
The oldest one is closed for the next one that comes: so whoever opens connections and says nothing does not keep out
whoever has a question. Such a connection counts for its address's share, too.

Each connection holds a file descriptor, and a process often has 1,024. At its start the server raises its soft limit as
far as the settings need it and the hard limit (`ulimit -Hn`) allows: to `max_connections`, twice `reserved_connections`
(one that is closed may take a moment to end), `reserved_files` and what is open already, which is 2,100 by default.
Where that is not allowed, `max_connections` is what is left, half of it may be WebSockets, and one warning says so.
Dashboards, tool hosts and what `stdio --dashboard` serves are connections like any other.

If descriptors run out all the same, as where the whole system is short of them, the log says so once a minute. The
server tries again ten times a second, and connections wait in the kernel meanwhile.

## What clients may use

{limits}

## How long anything takes

{times}

## Memory under a flood

Each of these floods makes the server hold something, up to the bound beside it. Of the bounds that all share,
one address has its part.

{floods}
"""

SHARED = (
    "max_rooms",
    "max_connections",
    "max_websockets",
    "max_sessions",
    "max_calls",
    "max_listens",
    "max_tasks",
    "max_draft_streams",
    "max_interactions",
    "max_feed_readers",
    "max_incoming_bytes",
    "max_unsent_bytes",
)
"""The limits of which one address has its share."""

_FLOODS: Mapping[str, str] = {
    "connections that say nothing, or half a TLS handshake": "`max_connections`, for `idle_connection_s` each; "
    "`reserved_connections` beyond that",
    "request heads that come slowly, or are huge": "`max_header_bytes`, `max_headers`, for `idle_connection_s`",
    "what is sent ahead of being read": "256 KiB of each HTTP/1.1 connection, 64 KiB of one of HTTP/2",
    "bodies that come slowly": "`max_incoming_bytes`, for `idle_connection_s`; what one client sends, by its rate",
    "huge bodies, deep JSON": "`max_body_bytes`, `max_json_depth`",
    "requests that all come at once": "one begins in each pass of the scheduler; the others are bytes until then",
    "HTTP/2 streams that are opened and reset": "`max_streams_per_connection` counts calls, not open streams",
    "HTTP/2 pings and settings that want answers": "64 KiB of answers; then the connection is not read from",
    "HTTP/2 heads without end": "four times `max_header_bytes`, or 64 frames",
    "WebSocket pings": "64 KiB of answers; then the newest ping alone is kept and answered",
    "WebSocket fragments": "`max_body_bytes` each, `max_incoming_bytes` together, for `idle_connection_s`",
    "sessions that are opened and left": "`max_sessions`; after `session_first_s` those that nobody used are gone",
    "what clients say about themselves": "`max_initialize_bytes`; of it only names and 4 KiB are kept",
    "session ids that do not exist": "nothing is made for them",
    "requests in flight, and cancellations": "`max_in_flight`, `max_calls`; a cancellation of nothing makes nothing",
    "subscriptions": "`max_subscriptions` and `max_listens`",
    "subscriptions that are never read": "`max_listen_queue`, half of `replay_bytes`, then `write_timeout_s`",
    "tasks with the longest ttl": "`max_tasks_per_session`, `max_tasks`; each counts until its ttl, `task_ttl_max_ms`",
    "questions to a client": "`max_in_flight`, as each is part of a call or task; `client_request_s`",
    "pages of URL mode elicitation": "`max_interactions`; each until its call is over, for `request_state_ttl_s`",
    "rounds of requests": "nothing is kept between them; what comes back is `max_request_state` at most",
    "streams that can be resumed": "`replay_messages` and `replay_bytes` each, `replay_bytes_per_session`, "
    "`replay_streams`, and over all sessions `max_replay_bytes`, of which whoever holds most gives first",
    "draft streams that nobody comes back for": "`max_draft_streams`, `max_draft_streams_per_client`, "
    "`draft_stream_bytes`, for `stream_max_s`; of all of them whoever holds most gives first",
    "answers that are not read": "`max_unsent_bytes`, `max_pipe_bytes`, for `write_timeout_s`",
    "dashboards that are not read": "`max_feed_readers`, `max_unsent_bytes`; a reader holds 64 KiB and its place",
    "messages that are worth remembering": "`event_log_events`, `event_log_bytes`, `call_records`, "
    "`record_argument_bytes`, `record_result_bytes`; with a file `audit_rows` and `audit_bytes`",
    "rooms": "`max_rooms`, `rooms_per_hour`, `room_idle_s`; all that one of them holds: `room_share`; bytes that all "
    "of them hold together: `max_incoming_bytes`, `max_unsent_bytes`, `event_log_bytes`, `max_replay_bytes`, "
    "`draft_stream_bytes`",
    "processes that forward their logs, which have a secret": "`max_forwarders`, `max_body_bytes`, and the "
    "bounds of the event log",
    "tool hosts, which have the secret": "`max_tool_hosts`, `max_host_tools`, `max_host_schema_bytes`, "
    "`max_host_dispatches`, `host_queue_bytes`",
}


def page() -> str:
    """The whole page."""
    times = [spec for spec in described(Settings) if spec.name in BEYOND]
    return _PAGE.format(
        shared=", ".join(f"`{name}`" for name in SHARED),
        limits=_table(described(Limits)),
        times=_table(times),
        floods="\n".join(["| flood | bound |", "|---|---|", *_rows(_FLOODS.items())]),
    )


def _table(specs: Iterable[Described]) -> str:
    head = ["| setting | default | unit | reason | beyond it |", "|---|---|---|---|---|"]
    cells = ((_name(spec), _shown(spec), spec.unit, spec.reason, BEYOND[spec.name]) for spec in specs)
    return "\n".join([*head, *_rows(cells)])


def _name(spec: Described) -> str:
    # A link to a limit names it: `limits.md#max_sessions`.
    return f'<a id="{spec.name}"></a>`{spec.name}`{" *fixed*" if spec.fixed else ""}'


def _rows(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    return (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def _shown(spec: Described) -> str:
    return f"{spec.default:,}" if spec.type is int else f"{spec.default:g}"


if __name__ == "__main__":
    sys.stdout.write(page())
