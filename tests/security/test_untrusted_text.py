"""What a client sends is text wherever it is shown: never markup, never a header, never a line of a log."""

from __future__ import annotations

import io
import json
import logging
import zipfile
from html.parser import HTMLParser
from typing import Any

import pytest
import trio

from ..support.api import LOCAL
from ..support.hosts import SECRET, connected
from ..support.http import exchange
from ..support.probe import Probe, running
from ..support.rows import row
from .endpoints import PAGES

MARK = "zqx"
"""Stands in each hostile text, and nowhere else."""
MARKUP = f"<img src=x onerror=alert('{MARK}')>\"'&</script><!--"
LINES = f"{MARK}\r\nSet-Cookie: {MARK}=1\r\n\r\n\x1b[31m\u2028\u0085\x00\x7f"
HOSTILE = (MARKUP, LINES)
HEADERLIKE = MARKUP
"""A header holds no control characters: the listener refuses those."""


async def tell(probe: Probe, text: str) -> None:
    """Send a text in each place where a client can put one; what comes of it is for others to say."""
    legacy, modern = await probe.client(), probe.modern()
    about = {"name": text, "title": text, "version": text, "websiteUrl": text}
    hello = {"protocolVersion": text, "capabilities": {"experimental": {text: {text: text}}}, "clientInfo": about}
    said = {"io.modelcontextprotocol/clientInfo": about, "progressToken": text, f"x/{MARK}": text}
    values: list[Any] = [
        legacy.request("initialize", hello, id=text),
        legacy.request("tools/call", {"name": text, "arguments": {text: text}, "_meta": {"progressToken": text}}),
        legacy.request("tools/call", {"name": "simple_tool", "arguments": {text: text}}, id=text),
        legacy.request("logging/setLevel", {"level": text}),
        legacy.request("completion/complete", {"ref": {"type": "ref/prompt", "name": text}, "argument": {}}),
        legacy.request("resources/read", {"uri": text}),
        legacy.request("tasks/get", {"taskId": text}),
        legacy.request(text, {text: text}),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": text, "reason": text}},
        {"jsonrpc": "2.0", "id": text, "error": {"code": 1, "message": text}},
        {"jsonrpc": text},
        text,
    ]
    for value in values:
        await post(probe, legacy.headers, value)
    for method, params in (("tools/call", {"name": text}), ("tools/call", {"name": "chatty"}), (text, {text: text})):
        message = modern.request(method, params, meta=said, id=text)
        heads = {**modern.headers(modern.request("tools/call", {"name": "chatty"})), "mcp-name": HEADERLIKE}
        await post(probe, heads, message)
    await post(probe, {**legacy.headers, "last-event-id": HEADERLIKE, "user-agent": HEADERLIKE}, "not JSON " + text)


async def post(probe: Probe, headers: dict[str, str], value: Any) -> None:
    """One POST; its answer is JSON or an event stream, and no header of it has the text."""
    async with exchange(probe.app, "POST", "/mcp?tools=all", headers, json.dumps(value).encode()) as answer:
        check_head(answer.status, answer.headers)
        async for part in answer.parts():
            if answer.headers.get("content-type") == "text/event-stream":
                check_events(part)


def check_head(status: int, headers: dict[str, str]) -> None:
    # 503: the pages are not built where these tests run.
    assert status < 500 or status == 503
    assert headers["x-content-type-options"] == "nosniff"
    for name, value in headers.items():
        assert MARK not in name + value, (name, value)
        assert value.isprintable(), (name, value)


def check_events(body: bytes) -> None:
    """No text ends its line and begins another field."""
    for line in body.decode().split("\n"):
        assert line == "" or line.partition(":")[0] in ("id", "event", "data", "retry", ""), line
        assert MARK not in line or line.startswith("data: "), line


def check_session_file(packed: bytes) -> None:
    """Its members have names of ours, and each line of them is JSON."""
    with zipfile.ZipFile(io.BytesIO(packed)) as members:
        assert set(members.namelist()) <= {"log.ndjson", "audit.json", "report.json", "manifest.json"}
        for name in members.namelist():
            for line in members.read(name).decode().strip().split("\n"):
                json.loads(line)


class Texts(HTMLParser):
    """Reads a page that shows what clients sent: it stands between tags, and nowhere else."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.style = tag == "style"
        assert tag not in ("script", "img", "iframe", "object"), tag
        assert MARK not in f"{tag} {attrs}", attrs

    def handle_data(self, data: str) -> None:
        assert MARK not in data or not self.style

    def handle_comment(self, data: str) -> None:
        assert MARK not in data, data


@pytest.mark.parametrize("hostile", HOSTILE, ids=["markup", "lines"])
async def test_no_page_has_a_clients_text_as_markup_or_in_a_header(hostile: str) -> None:
    async with running() as probe:
        await tell(probe, hostile)
        for path in PAGES:
            with row(path=path):
                await check_page(probe, path)


async def check_page(probe: Probe, path: str) -> None:
    async with exchange(probe.app, "GET", path, LOCAL) as answer:
        check_head(answer.status, answer.headers)
        kind = answer.headers["content-type"].split(";")[0]
        if kind == "text/event-stream":
            with trio.move_on_after(5):
                check_events(await anext(answer.parts()))
            return
        packed = await answer.body()
    if kind == "application/zip":
        check_session_file(packed)
        return
    body = packed.decode()
    if path == "/api/export.html":
        Texts().feed(body)
        return
    assert kind in ("application/json", "application/x-ndjson", "application/problem+json", "text/csv") or (
        MARK not in body
    )
    lines = body.strip().split("\n") if kind == "application/x-ndjson" else [body] if kind.endswith("json") else []
    for line in lines:
        json.loads(line)


async def test_the_text_is_there_to_be_shown_at_all(probe: Probe) -> None:
    """Else nothing of the above says anything."""
    await tell(probe, MARKUP)
    for path in ("/api/events.ndjson", "/api/calls.ndjson", "/api/sessions"):
        async with exchange(probe.app, "GET", path, LOCAL) as answer:
            assert MARK.encode() in await answer.body(), path


@pytest.mark.parametrize("path", ["/{}", "/interaction/{}", "/dashboard/{}", "/dashboard/assets/{}", "/api/events/{}"])
async def test_a_path_is_not_repeated_in_a_page_that_a_browser_reads_as_markup(path: str, probe: Probe) -> None:
    async with exchange(probe.app, "GET", path.format(MARKUP.replace("/", "")), LOCAL) as answer:
        check_head(answer.status, answer.headers)
        body = await answer.body()
        assert answer.headers["content-type"].startswith("application/") or MARK.encode() not in body


@pytest.mark.parametrize("name", ["host", "origin", "mcp-protocol-version", "accept", "content-type"])
@pytest.mark.parametrize("path", ["/mcp", "/api/server", "/dashboard"])
async def test_a_refused_header_is_repeated_as_json_or_not_at_all(path: str, name: str, probe: Probe) -> None:
    headers = [(key, value) for key, value in LOCAL.items() if key != name]
    async with exchange(probe.app, "POST", path, [*headers, (name, HEADERLIKE)], b"{}") as answer:
        check_head(answer.status, answer.headers)
        body = await answer.body()
        if MARK.encode() in body:
            assert answer.headers["content-type"] in ("application/json", "application/problem+json")
            json.loads(body)


async def test_a_selection_is_repeated_as_json(probe: Probe) -> None:
    client = await probe.client()
    target, body = "/mcp?tools=%3Cimg%20src%3Dx%20onerror%3Dzqx%3E", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    async with exchange(probe.app, "POST", target, client.headers, body) as answer:
        check_head(answer.status, answer.headers)
        assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
        assert MARK in (await answer.json())["error"]["message"]


@pytest.mark.parametrize("hostile", HOSTILE, ids=["markup", "lines"])
async def test_no_text_of_a_client_or_a_tool_host_reaches_the_log_of_the_process(
    hostile: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A line of the log that a stranger wrote could be any line, and could steer a terminal."""
    with caplog.at_level(logging.DEBUG):
        async with running(toolhost_secret=SECRET) as probe:
            await tell(probe, hostile)
            async with connected(probe.app) as host:
                await host.say_text(hostile)
                await host.say({"jsonrpc": "2.0", "id": 1, "method": hostile, "params": {hostile: hostile}})
                await host.hear()
                await host.say({"jsonrpc": "2.0", "id": 2, "method": "host.register", "params": {"name": hostile}})
                await host.hear()
    for record in caplog.records:
        if record.name.startswith("probe"):
            assert MARK not in record.getMessage(), record.getMessage()
