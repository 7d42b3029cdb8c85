"""Finds the proxies before a probe by what arrived there.

Each question takes a `Visit` and gives findings: `ok`, `note` for a fact such as an added header, or `bad` if clients
do not work with it.
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

from .needs import TIMEOUT_S, ProbeAddress, WrongError, events, expect, get, modern_call, open_session

Mark: TypeAlias = Literal["ok", "note", "bad"]

# Ten steps of 200 ms: enough to see pieces, in 2 s.
_STEPS, _STEP_S = 10, 0.2
# Messages this late were held back: ten times the lateness of a machine and a network.
_HELD_S: Final = 0.5
_EVENT_STREAM: Final = "text/event-stream"
# A call of 12 s, left by its client.
_LEFT_STEPS: Final = 60
_SEEN_S: Final = 10.0
# The default limit of nginx is 1 MiB; a probe's is 4 MiB.
_LARGE: Final = 2 * 1024 * 1024
# Two of the server's keep-alive comments, by default.
HOLD_S: Final = 32.0

# The headers of a probe itself; any other was added on the way.
_OWN: Final = frozenset(
    {
        "cache-control",
        "connection",
        "content-length",
        "content-security-policy",
        "content-type",
        "cross-origin-resource-policy",
        "date",
        "keep-alive",
        "mcp-session-id",
        "referrer-policy",
        "transfer-encoding",
        "vary",
        "x-accel-buffering",
        "x-content-type-options",
    }
)
# Headers of one connection alone (RFC 9110, section 7.6.1), and the length of the body.
_HOP: Final = frozenset(
    ["connection", "content-length", "keep-alive", "te", "transfer-encoding", "upgrade", "accept-encoding"]
)


@dataclass(frozen=True, slots=True)
class PathFinding:
    """One fact about the way to the probe."""

    about: str
    mark: Mark
    text: str


@dataclass(slots=True)
class Visit:
    """A target with a `label` of its own, by which the probe's log and calls are searched."""

    target: ProbeAddress
    hold_s: float = HOLD_S
    label: str = field(default_factory=lambda: f"doctor-{secrets.token_hex(4)}")

    @property
    def path(self) -> str:
        return f"/mcp?client={self.label}"

    def ask(self, path: str, **query: Any) -> Any:
        return json.loads(get(self.target, f"{path}?{urlencode(query)}"))


def tls(visit: Visit) -> Iterator[PathFinding]:
    """Find the offered versions of TLS and HTTP."""
    host, port = str(visit.target.url.hostname), visit.target.url.port or 443
    if visit.target.tls is None:
        yield PathFinding("tls", "note", "no TLS: what is sent can be read and changed on the way")
        return
    context = visit.target.tls
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection((host, port), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as wrapped,
    ):
        protocol, ends = wrapped.selected_alpn_protocol() or "HTTP/1.1 without ALPN", wrapped.getpeercert()
        version = wrapped.version()
    days = (ssl.cert_time_to_seconds(str((ends or {})["notAfter"])) - time.time()) / 86_400
    soon: Mark = "note" if days < 14 else "ok"
    yield PathFinding("tls", soon, f"{version}, {protocol}; the certificate is valid for {days:.0f} more days")


def between(visit: Visit) -> Iterator[PathFinding]:
    """Find the proxies named in headers, such as Via."""
    with visit.target.response("GET", "/health") as response:
        added = {name: value for name, value in response.getheaders() if name.lower() not in _OWN}
    names = ", ".join(f"{name}: {value}" for name, value in added.items())
    yield PathFinding(
        "between", "note" if added else "ok", f"added to responses: {names}" if added else "nothing names itself"
    )


def stream(visit: Visit) -> Iterator[PathFinding]:
    """Find out whether each message of a stream comes in its time, and not compressed."""
    received = _received(visit)
    # A machine that is busy for a moment holds messages back as well, but not twice.
    if len(received.came) == _STEPS and _judged(received).mark == "bad":
        received = _received(visit)
    yield _judged(received)


@dataclass(frozen=True, slots=True)
class _Received:
    """An event stream as it arrived. `came` are the seconds from the request to each message, if it can be read."""

    encoding: str | None
    kind: str
    came: list[float]


def _received(visit: Visit) -> _Received:
    headers, message = modern_call("progress", {"steps": _STEPS, "step_ms": int(_STEP_S * 1000)})
    began = time.monotonic()
    with visit.target.response("POST", visit.path, headers | {"Accept-Encoding": "gzip"}, message) as response:
        expect(response, 200)
        encoding, kind = response.getheader("Content-Encoding"), response.headers.get_content_type()
        messages = events(response) if not encoding and kind == _EVENT_STREAM else ()
        came = [time.monotonic() - began for each in messages if each.get("method") == "notifications/progress"]
    return _Received(encoding, kind, came)


def _lateness(came: list[float]) -> float:
    """Seconds between the message that was held back least and the one held back most."""
    # There is no common clock: each lateness is relative to the first message, and may be below 0.
    late = [at - came[0] - number * _STEP_S for number, at in enumerate(came)]
    return max(late) - min(late)


def _judged(received: _Received) -> PathFinding:
    came = received.came
    if received.encoding:
        text = f"the event stream is packed ({received.encoding}), which holds messages back"
        return PathFinding("stream", "bad", text)
    if received.kind != _EVENT_STREAM:
        return PathFinding("stream", "bad", f"the event stream comes as {received.kind}")
    if len(came) < _STEPS:
        return PathFinding("stream", "bad", f"of {_STEPS} messages {len(came)} came")
    if came[0] > _STEPS * _STEP_S:
        return PathFinding(
            "stream", "bad", f"all messages came at the end, after {came[0]:.1f} s: something buffers the stream"
        )
    off = _lateness(came)
    if off > _HELD_S:
        return PathFinding(
            "stream", "bad", f"messages came in pieces, up to {off:.1f} s late: something buffers the stream"
        )
    return PathFinding(
        "stream", "ok", f"{_STEPS} messages, each as it was sent (up to {off * 1000:.0f} ms apart from its time)"
    )


def arrived(visit: Visit) -> Iterator[PathFinding]:
    """Find out how a request arrives at the probe, from its event log."""
    headers, message = modern_call("simple_tool", {"delayMs": 0})
    with visit.target.response("POST", visit.path, headers, message) as response:
        expect(response, 200)
        response.read()
    page = visit.ask("/api/events", kind="http.request", text=visit.label, before=10**12, limit=1)
    if not page["events"]:
        yield PathFinding("request", "note", "the probe's log does not have the request: the query of its URL was lost")
        return
    (entry,) = page["events"]
    yield from _compared(headers, entry, visit.target)


def _compared(sent: Mapping[str, str], entry: Mapping[str, Any], target: ProbeAddress) -> Iterator[PathFinding]:
    there = {name.lower(): value for name, value in entry["headers"]}
    ours = {name.lower(): value for name, value in sent.items()} | {"host": target.url.netloc}
    lost = sorted(name for name in ours.keys() - there.keys() - _HOP)
    changed = sorted(name for name in ours.keys() & there.keys() if ours[name] != there[name])
    added = sorted(there.keys() - ours.keys() - _HOP)
    if lost:
        yield PathFinding("request", "bad", f"headers that do not arrive: {', '.join(lost)}")
    for name in changed:
        yield PathFinding("request", "note", f"{name} arrives as {there[name]!r} instead of {ours[name]!r}")
    if added:
        yield PathFinding(
            "request", "note", f"headers that are added: {', '.join(f'{name}: {there[name]}' for name in added)}"
        )
    seen = f"HTTP/{entry['http_version']} from {entry['client']}"
    yield PathFinding("request", "ok" if not lost else "note", f"arrives as {seen}")


def large(visit: Visit) -> Iterator[PathFinding]:
    """Find out whether a body of 2 MiB passes, half of the probe's limit."""
    headers, message = modern_call("simple_tool", {"delayMs": 0})
    message["params"]["_meta"]["example.org/padding"] = "x" * _LARGE
    with visit.target.response("POST", visit.path, headers, message) as response:
        status = response.status
        response.read()
    if status == 200:
        yield PathFinding("body", "ok", "a body of 2 MiB passes")
    else:
        yield PathFinding(
            "body", "bad", f"a body of 2 MiB is answered HTTP {status}, which a probe itself takes up to 4 MiB"
        )


def leaving(visit: Visit) -> Iterator[PathFinding]:
    """Find out whether a closed connection reaches the probe, as 2026-07-28 cancels."""
    headers, message = modern_call("progress", {"steps": _LEFT_STEPS, "step_ms": 200})
    began = time.monotonic()
    with visit.target.response("POST", visit.path, headers, message) as response:
        expect(response, 200)
        next(events(response), None)
    gone = time.monotonic() - began
    until = time.monotonic() + _SEEN_S
    while time.monotonic() < until:
        calls = visit.ask("/api/calls", label=visit.label, tool="progress", limit=1)["calls"]
        if calls and calls[0]["outcome"] == "disconnected":
            after = max(0.0, calls[0]["duration_ms"] / 1000 - gone)
            mark: Mark = "ok" if after < 1 else "note"
            yield PathFinding(
                "leaving", mark, f"the probe learns within {after:.1f} s that a client has gone, and stops its call"
            )
            return
        time.sleep(0.2)
    yield PathFinding(
        "leaving", "bad", f"{_SEEN_S:.0f} s after the client had gone its call still ran: the close is not passed on"
    )


def holding(visit: Visit) -> Iterator[PathFinding]:
    """Find out whether an idle stream stays open, with keep-alive comments."""
    session = open_session(visit.target, visit.path)
    yield _held(visit, session)
    with visit.target.response("DELETE", visit.path, session) as response:
        response.read()


def _held(visit: Visit, session: dict[str, str]) -> PathFinding:
    connection = visit.target.connection()
    # A proxy that buffers sends no head either. A slow one has `hold_s` for it.
    connection.timeout = visit.hold_s
    began = time.monotonic()
    comments: int | None = None
    try:
        connection.request("GET", visit.target.prefix + visit.path, headers=session | {"Accept": "text/event-stream"})
        response = connection.getresponse()
        expect(response, 200)
        comments = 0
        while (left := began + visit.hold_s - time.monotonic()) > 0:
            # The socket is the response's own by now where the connection will close.
            response.fp.raw._sock.settimeout(left)  # type: ignore[attr-defined]  # noqa: SLF001 - http.client has no other way to wait less
            line = response.readline()
            comments += line.startswith(b":")
            if not line:
                return PathFinding(
                    "holding", "bad", f"an idle event stream was ended after {time.monotonic() - began:.0f} s"
                )
    except TimeoutError:
        pass
    finally:
        connection.close()
    if comments is None:
        text = f"an event stream did not begin within {visit.hold_s:.0f} s: something buffers it"
        return PathFinding("holding", "bad", text)
    text = f"an idle event stream stays open for {visit.hold_s:.0f} s, with {comments} keep-alive comments"
    return PathFinding("holding", "ok" if comments else "note", text)


Question: TypeAlias = Callable[[Visit], Iterator[PathFinding]]
QUESTIONS: tuple[Question, ...] = (tls, between, arrived, stream, leaving, large, holding)


def findings(visit: Visit) -> Iterator[PathFinding]:
    """Ask one question after the other; an error is a `bad` finding."""
    for question in QUESTIONS:
        try:
            yield from question(visit)
        except (WrongError, OSError, HTTPException, ValueError, LookupError) as error:
            yield PathFinding(question.__name__, "bad", f"cannot be asked: {str(error) or type(error).__name__}")
