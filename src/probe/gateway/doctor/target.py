"""Requests to a probe, each on a connection of its own."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

TIMEOUT_S: Final = 30.0
MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
JSON_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class WrongError(Exception):
    """The probe has another answer than expected, given in the message."""


class ProbeAddress:
    """The address of the probe. Each request has a connection of its own."""

    def __init__(self, url: str, cafile: str | None) -> None:
        self.url = urlsplit(url)
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise WrongError(f"{url!r} is not http://host or https://host")
        self.tls = ssl.create_default_context(cafile=cafile) if self.url.scheme == "https" else None

    @contextmanager
    def response(
        self, method: str, path: str, headers: dict[str, str] | None = None, message: dict[str, Any] | None = None
    ) -> Iterator[HTTPResponse]:
        """Send one request; the connection is closed after the block, also in the middle of a stream."""
        with closing(self.connection()) as connection:
            body = None if message is None else json.dumps({"jsonrpc": "2.0", **message})
            connection.request(method, path, body, headers or {})
            # The socket is the response's own where the connection ends with it, so both are closed.
            with connection.getresponse() as response:
                yield response

    def connection(self) -> HTTPConnection:
        """A connection for one request; the caller closes it."""
        host = str(self.url.hostname)
        if self.tls is None:
            return HTTPConnection(host, self.url.port, timeout=TIMEOUT_S)
        return HTTPSConnection(host, self.url.port, timeout=TIMEOUT_S, context=self.tls)


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
