"""Asks a deployed probe whether it does what clients need, through everything that stands before it.

    python infra/smoke.py https://mcp.example.org [--wait SECONDS] [--cafile FILE]

Prints a line per check and ends with 0 if all have passed, else with 1. Needs Python 3.11 and nothing else. It looks at
what proxies get wrong: streams that are held back until they end, WebSockets, names that are not passed on.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 30.0
_RETRY_S = 1.0
_MODERN = "2026-07-28"
_LEGACY = "2025-11-25"
_STEPS, _STEP_MS = 5, 1000
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class WrongError(Exception):
    """The probe is not as it should be; the message says how."""


class Target:
    """Where the probe is. Each request has a connection of its own."""

    def __init__(self, url: str, cafile: str | None) -> None:
        self.url = urlsplit(url)
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise WrongError(f"{url!r} is not http://host or https://host")
        self._tls = ssl.create_default_context(cafile=cafile) if self.url.scheme == "https" else None

    @contextmanager
    def response(
        self, method: str, path: str, headers: dict[str, str] | None = None, message: dict[str, Any] | None = None
    ) -> Iterator[HTTPResponse]:
        """Send one request; closes the connection afterwards, also in the middle of a stream."""
        connection = self.connection()
        try:
            body = None if message is None else json.dumps({"jsonrpc": "2.0", **message})
            connection.request(method, path, body, headers or {})
            yield connection.getresponse()
        finally:
            connection.close()

    def connection(self) -> HTTPConnection:
        """A connection for one request, which the caller closes."""
        host = str(self.url.hostname)
        if self._tls is None:
            return HTTPConnection(host, self.url.port, timeout=_TIMEOUT_S)
        return HTTPSConnection(host, self.url.port, timeout=_TIMEOUT_S, context=self._tls)


def expect(response: HTTPResponse, status: int) -> None:
    """Raise `WrongError` if this is another status."""
    if response.status != status:
        raise WrongError(f"HTTP {response.status} instead of {status}: {response.read(300).decode('utf-8', 'replace')}")


def get(target: Target, path: str) -> bytes:
    """The body of a page. Raises `WrongError` if it is not a 200."""
    with target.response("GET", path) as response:
        expect(response, 200)
        return response.read()


def modern_call(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and message of one call in the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": _MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "smoke", "version": "1"},
        "progressToken": "smoke",
    }
    headers = {**_JSON, "MCP-Protocol-Version": _MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return headers, {"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}}


def events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of an event stream, as they arrive."""
    for line in response:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def check_health(target: Target) -> None:
    """It is alive."""
    if json.loads(get(target, "/health")) != {"status": "alive"}:
        raise WrongError("/health says something else")


def check_ready(target: Target) -> None:
    """It takes new work."""
    if json.loads(get(target, "/ready")) != {"status": "ready"}:
        raise WrongError("/ready says something else")


def check_call(target: Target) -> None:
    """A call is answered, so Host and headers arrive as they were sent."""
    headers, message = modern_call("simple_tool", {"delayMs": 0})
    with target.response("POST", "/mcp", headers, message) as response:
        expect(response, 200)
        result = json.loads(response.read()).get("result", {})
    if result.get("structuredContent") != {"message": "Completed after 0ms"}:
        raise WrongError(f"simple_tool said {result}")


def check_stream(target: Target) -> None:
    """The first message of a stream arrives while the call still runs: nothing on the way holds it back."""
    headers, message = modern_call("progress", {"steps": _STEPS, "step_ms": _STEP_MS})
    began = time.monotonic()
    with target.response("POST", "/mcp", headers, message) as response:
        expect(response, 200)
        first = next(events(response), None)
    took = time.monotonic() - began
    if first is None or first.get("method") != "notifications/progress":
        raise WrongError(f"instead of progress came {first}")
    if took >= _STEPS * _STEP_MS / 1000:
        over = f"the first message came after {took:.1f} s, when the call was over"
        raise WrongError(f"{over}: something buffers the stream")


def check_session(target: Target) -> None:
    """A session begins, is found again, and ends: requests of one client reach the same process."""
    hello = {"protocolVersion": _LEGACY, "capabilities": {}, "clientInfo": {"name": "smoke", "version": "1"}}
    with target.response("POST", "/mcp", _JSON, {"id": 1, "method": "initialize", "params": hello}) as response:
        expect(response, 200)
        session = response.getheader("Mcp-Session-Id")
    if session is None:
        raise WrongError("initialize was answered without a session")
    headers = {**_JSON, "Mcp-Session-Id": session, "MCP-Protocol-Version": _LEGACY}
    with target.response("POST", "/mcp", headers, {"method": "notifications/initialized"}) as response:
        expect(response, 202)
    with target.response("POST", "/mcp", headers, {"id": 2, "method": "ping"}) as response:
        expect(response, 200)
    with target.response("DELETE", "/mcp", headers) as response:
        if response.status not in (200, 204):
            raise WrongError(f"the end of a session was answered {response.status}")


def check_websocket(target: Target) -> None:
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


def check_dashboard(target: Target) -> None:
    """The pages are in the package."""
    if b'<div id="root">' not in get(target, "/dashboard"):
        raise WrongError("/dashboard is not the dashboard")


CHECKS: tuple[Callable[[Target], None], ...] = (
    check_health,
    check_ready,
    check_call,
    check_stream,
    check_session,
    check_websocket,
    check_dashboard,
)


def wait_ready(target: Target, seconds: float) -> None:
    """Return when `/ready` says so, or after that time: the checks then say what is wrong."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            check_ready(target)
        except (WrongError, OSError, HTTPException, ValueError):
            time.sleep(_RETRY_S)
        else:
            return


def passes(check: Callable[[Target], None], target: Target) -> bool:
    """Run one check and print what came of it."""
    name = check.__name__.removeprefix("check_")
    began = time.monotonic()
    try:
        check(target)
    except (WrongError, OSError, HTTPException, ValueError) as error:
        print(f"FAILED {name}: {str(error) or type(error).__name__}", flush=True)
        return False
    print(f"ok     {name} ({(time.monotonic() - began) * 1000:.0f} ms)", flush=True)
    return True


def main(arguments: list[str]) -> int:
    """Check one probe; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check a deployed MCP Probe.")
    parser.add_argument("url", help="scheme and host, such as https://mcp.example.org")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds until it has to be ready")
    parser.add_argument("--cafile", help="a certificate authority beside those of this machine")
    given = parser.parse_args(arguments)
    target = Target(given.url, given.cafile)
    wait_ready(target, given.wait)
    passed = [passes(check, target) for check in CHECKS]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
