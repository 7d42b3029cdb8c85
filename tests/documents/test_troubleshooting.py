"""The messages in docs/troubleshooting.md are those that a client gets."""

from __future__ import annotations

import json
import re

from ..support.http import exchange
from ..support.legacy import HEADERS
from ..support.probe import Probe, running
from .markdown import ROOT

TEXT = (ROOT / "docs" / "troubleshooting.md").read_text()
ROWS = [(int(status), begins) for status, begins in re.findall(r"^\| (4\d\d) \| `([^`]+)` \|", TEXT, re.MULTILINE)]


async def answered(
    probe: Probe, method: str, target: str, headers: dict[str, str | None], body: bytes = b""
) -> tuple[int, str]:
    sent = {name: value for name, value in {**HEADERS, **headers}.items() if value is not None}
    async with exchange(probe.app, method, target, sent, body) as answer:
        return answer.status, json.loads(await answer.body())["error"]["message"]


async def test_each_message_of_the_page_is_one_that_clients_get() -> None:
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    async with running(max_body_bytes=1024) as probe:
        modern = probe.modern()
        message = modern.request("tools/call", {"name": "simple_tool", "arguments": {}})
        legacy = {"mcp-protocol-version": "2025-11-25"}
        got = [
            await answered(probe, "POST", "/mcp", {}, b"{"),
            await answered(probe, "POST", "/mcp", legacy, ping),
            await answered(
                probe, "POST", "/mcp", {**modern.headers(message), "mcp-name": "x"}, json.dumps(message).encode()
            ),
            await answered(probe, "POST", "/mcp", {"mcp-protocol-version": "1999-01-01", "mcp-session-id": "x"}, ping),
            await answered(probe, "POST", "/mcp?tools=nope", legacy, ping),
            await answered(probe, "POST", "/mcp", {"host": "other.example"}, ping),
            await answered(probe, "POST", "/mcp", {"origin": "https://page.example"}, ping),
            await answered(probe, "POST", "/mcp", {**legacy, "mcp-session-id": "none"}, ping),
            await answered(probe, "GET", "/mcp", {"accept": "text/event-stream"}),
            await answered(probe, "POST", "/mcp", {"accept": "text/html"}, ping),
            await answered(probe, "POST", "/mcp", {}, b'"' + b"x" * 2000 + b'"'),
            await answered(probe, "POST", "/mcp", {"content-type": "text/plain"}, ping),
        ]
    assert [status for status, _ in got] == [status for status, _ in ROWS]
    assert [
        message for (_, message), (_, begins) in zip(got, ROWS, strict=True) if not message.startswith(begins)
    ] == []
