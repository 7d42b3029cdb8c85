"""Requests to a deployed probe, and the needs of its clients as checks that pass or raise `WrongError`."""

from __future__ import annotations

import base64
import json
import os
import secrets
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from statistics import median
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

TIMEOUT_S: Final = 30.0
MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
JSON_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

_RETRY_S: Final = 1.0
_STEPS, _STEP_MS = 5, 1000
# Nagle's algorithm with a delayed acknowledgement adds 40 to 200 ms; the time of `/health` is subtracted.
_LATE_S: Final = 0.15
_CLOSED_S: Final = 3.0
_BODY_BYTES: Final = 3_000_000
PASSED = {
    "health": "it is alive",
    "ready": "it takes new work",
    "call": "a tool call is answered",
    "session": "a session is found again: its requests reach one process",
    "websocket": "the upgrade to a WebSocket passes",
    "dashboard": "the pages are there",
}
"""The meaning of a passed check, by its name."""


class WrongError(Exception):
    """The probe has another answer than expected, given in the message."""


class CertificatesError(Exception):
    """A file has no certificates that can be read; the message says it in one line."""


class ProbeAddress:
    """The address of a probe or of a room, without `/mcp`. Each request has a connection of its own.

    Raises `WrongError` for what is no address, and `CertificatesError`.
    """

    def __init__(self, url: str, cafile: str | None) -> None:
        self.url = urlsplit(url)
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise WrongError(f"{url!r} is not http://host or https://host")
        self.prefix = self.url.path.rstrip("/")
        self.cafile = cafile
        # A file that cannot be read is refused for each address.
        context = _context(cafile) if self.url.scheme == "https" or cafile is not None else None
        self.tls = context if self.url.scheme == "https" else None

    @contextmanager
    def response(
        self, method: str, path: str, headers: dict[str, str] | None = None, message: dict[str, Any] | None = None
    ) -> Iterator[HTTPResponse]:
        """The connection is closed after the block, also in the middle of a stream."""
        with closing(self.connection()) as connection:
            body = None if message is None else json.dumps({"jsonrpc": "2.0", **message})
            connection.request(method, self.prefix + path, body, headers or {})
            # The socket is the response's own where the connection ends with it, so both are closed.
            with connection.getresponse() as response:
                yield response

    def connection(self) -> HTTPConnection:
        """The caller closes it."""
        host = str(self.url.hostname)
        if self.url.scheme == "http":
            return HTTPConnection(host, self.url.port, timeout=TIMEOUT_S)
        return HTTPSConnection(host, self.url.port, timeout=TIMEOUT_S, context=self.tls)


def _context(cafile: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=cafile)
    except OSError as error:
        why = "it has no certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise CertificatesError(f"{cafile} cannot be used: {why}") from None


def expect(response: HTTPResponse, status: int) -> None:
    """Raise `WrongError` for another status, with the body unless it is a page for browsers."""
    if response.status != status:
        is_page = response.headers.get_content_type() == "text/html"
        body = "" if is_page else f": {response.read(300).decode('utf-8', 'replace')}"
        raise WrongError(f"HTTP {response.status} instead of {status}{body}")


def get(target: ProbeAddress, path: str) -> bytes:
    """The body of a page. Raises `WrongError` if it is not a 200."""
    with target.response("GET", path) as response:
        expect(response, 200)
        return response.read()


def modern_call(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and message of one call in the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "mcp-probe-doctor", "version": "1"},
        "progressToken": "doctor",
    }
    headers = {**JSON_HEADERS, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return headers, {"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}}


def open_session(target: ProbeAddress, path: str) -> dict[str, str]:
    """Begin a session of 2025-11-25; returns the headers of its requests. Raises `WrongError`."""
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "mcp-probe-doctor", "version": "1"}}
    with target.response("POST", path, JSON_HEADERS, {"id": 1, "method": "initialize", "params": hello}) as response:
        expect(response, 200)
        session = response.getheader("Mcp-Session-Id")
    if session is None:
        raise WrongError("initialize was answered without a session")
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    with target.response("POST", path, JSON_HEADERS | headers, {"method": "notifications/initialized"}) as response:
        expect(response, 202)
    return headers


def events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of an event stream, as they arrive."""
    for line in response:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def check_health(target: ProbeAddress) -> None:
    """It is alive."""
    if json.loads(get(target, "/health")) != {"status": "alive"}:
        raise WrongError("/health says something else")


def check_ready(target: ProbeAddress) -> None:
    """It takes new work."""
    if json.loads(get(target, "/ready")) != {"status": "ready"}:
        raise WrongError("/ready says something else")


def check_call(target: ProbeAddress) -> None:
    """A call is answered, so Host and headers arrive as they were sent."""
    _answered(target, *modern_call("simple_tool", {"delayMs": 0}))


def _answered(target: ProbeAddress, headers: dict[str, str], message: dict[str, Any]) -> None:
    with target.response("POST", "/mcp", headers, message) as response:
        expect(response, 200)
        result = json.loads(response.read()).get("result", {})
    if result.get("structuredContent") != {"message": "Completed after 0ms"}:
        raise WrongError(f"simple_tool said {result}")


def check_stream(target: ProbeAddress) -> None:
    """Each message of a stream arrives in its time, without buffers on the way."""
    began = time.monotonic()
    get(target, "/health")
    way = time.monotonic() - began
    headers, message = modern_call("progress", {"steps": _STEPS, "step_ms": _STEP_MS})
    began = time.monotonic()
    with target.response("POST", "/mcp", headers, message) as response:
        expect(response, 200)
        came = [(time.monotonic() - began, event) for event in events(response)]
    steps = [took for took, event in came if event.get("method") == "notifications/progress"]
    if not steps:
        raise WrongError(f"instead of progress came {[event for _, event in came]}")
    if steps[0] >= _STEPS * _STEP_MS / 1000:
        over = f"the first message came after {steps[0]:.1f} s, when the call was over"
        raise WrongError(f"{over}: something buffers the stream")
    # The last one leaves together with the result, without a wait of its own.
    late = median(took - step * _STEP_MS / 1000 - way for step, took in enumerate(steps[:-1], 1))
    if late > _LATE_S:
        raise WrongError(f"messages are {late * 1000:.0f} ms late: something waits before it sends (TCP_NODELAY)")


def check_closing(target: ProbeAddress) -> None:
    """A closed connection ends its call, also while the call is quiet."""
    mark = 1 + secrets.randbelow(999_999_999)
    silence = {"silentMs": 10_000, "idleMs": 60_000, "keepAlive": False, "mark": mark}
    headers, message = modern_call("silent_call", silence)
    connection = target.connection()
    try:
        connection.request("POST", f"{target.prefix}/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
        time.sleep(_RETRY_S)
    finally:
        connection.close()
    until = time.monotonic() + _CLOSED_S
    calls: list[dict[str, Any]] = []
    while time.monotonic() < until and not (calls and calls[0]["outcome"]):
        time.sleep(_RETRY_S / 4)
        calls = json.loads(get(target, f"/api/calls?arguments.mark={mark}"))["calls"]
    if not calls:
        raise WrongError("the call did not arrive, or /api shows another probe")
    if calls[0]["outcome"] != "disconnected":
        raise WrongError("the call runs on although its client has gone: nothing on the way passes that on")


def check_body(target: ProbeAddress) -> None:
    """A large request passes; the probe takes 4 MiB."""
    headers, message = modern_call("simple_tool", {"delayMs": 0})
    message["params"]["_meta"]["doctor/padding"] = "x" * _BODY_BYTES
    _answered(target, headers, message)


def check_session(target: ProbeAddress) -> None:
    """A session begins, is found again, and ends: requests of one client reach the same process."""
    headers = JSON_HEADERS | open_session(target, "/mcp")
    with target.response("POST", "/mcp", headers, {"id": 2, "method": "ping"}) as response:
        expect(response, 200)
    with target.response("DELETE", "/mcp", headers) as response:
        if response.status not in (200, 204):
            raise WrongError(f"the end of a session was answered {response.status}")


def check_websocket(target: ProbeAddress) -> None:
    """The upgrade to a WebSocket passes."""
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": "mcp",
    }
    with target.response("GET", "/ws", headers) as response:
        expect(response, 101)


def check_dashboard(target: ProbeAddress) -> None:
    """The pages are in the package."""
    if b'<div id="root">' not in get(target, "/dashboard"):
        raise WrongError("/dashboard is not the dashboard")


Check: TypeAlias = Callable[[ProbeAddress], None]

CHECKS: tuple[Check, ...] = (
    check_health,
    check_ready,
    check_call,
    check_stream,
    check_closing,
    check_body,
    check_session,
    check_websocket,
    check_dashboard,
)

_OF_PATH: Final = (check_stream, check_closing, check_body)
BRIEF: tuple[Check, ...] = tuple(check for check in CHECKS if check not in _OF_PATH)
"""`path` looks more closely at the others: streams, closed connections and large requests."""


def in_a_room(target: ProbeAddress) -> ProbeAddress:
    """The address of a new room, where the server makes rooms; else `target`. Raises `WrongError` if it refuses one."""
    with target.response("POST", "/api/rooms") as response:
        if response.status == 404:
            return target
        expect(response, 201)
        path = urlsplit(json.loads(response.read())["room"]).path
    # By the name that was asked: the server's own may not lead here yet.
    return ProbeAddress(target.url._replace(path=path).geturl(), target.cafile)


def wait_ready(target: ProbeAddress, seconds: float) -> None:
    """Return once `/ready` is, or after `seconds`: the checks then show the reason."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            check_ready(target)
        except (WrongError, OSError, HTTPException, ValueError):
            time.sleep(_RETRY_S)
        else:
            return


def outcomes(target: ProbeAddress, checks: tuple[Check, ...] = CHECKS) -> Iterator[tuple[str, str | None, float]]:
    """Run checks one after the other: the name, the error or None, and the seconds."""
    for check in checks:
        began = time.monotonic()
        try:
            check(target)
            wrong = None
        except (WrongError, OSError, HTTPException, ValueError) as error:
            wrong = str(error) or type(error).__name__
        yield check.__name__.removeprefix("check_"), wrong, time.monotonic() - began
