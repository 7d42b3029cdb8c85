"""The messages in docs/troubleshooting.md are those that a client gets, and that the program prints."""

from __future__ import annotations

import json
import re
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe.cli.program import main

from ..support.http import exchange
from ..support.legacy import HEADERS
from ..support.probe import Probe, running
from .markdown import ROOT

TEXT = (ROOT / "docs" / "troubleshooting.md").read_text()
ROWS = [(int(status), begins) for status, begins in re.findall(r"^\| (4\d\d) \| `([^`]+)` \|", TEXT, re.MULTILINE)]
SAID = re.findall(r"^\| `([^`]+)`[^|]* \|", TEXT.partition("## Your client gets")[0], re.MULTILINE)
SECRET = "any-words-of-16-characters"
LOG = '{"kind":"log","version":1}\n'
# What makes the program say it, in a folder with the files below; 28100 stands for a port that is taken.
COMMANDS = {
    "cannot listen on 127.0.0.1:8000: the port is in use": "serve --port 28100",
    "unknown tools: progres (did you mean progress?)": "serve --port 0 --tools progres",
    "MCP_PROBE_MAX_SESIONS is no setting; did you mean MCP_PROBE_MAX_SESSIONS?": "serve --port 28100",
    "No such option '--max-sesions'": "serve --max-sesions 1",
    "--toolhost-secret must be at least 16 visible ASCII characters": "serve --toolhost-secret short",
    "cannot read certificate cert.pem or its key: No such file or directory": "serve --certfile cert.pem",
    "cannot use certificate junk.pem: not a PEM certificate and key": "serve --certfile junk.pem",
    "keyfile is set but certfile is not": "serve --keyfile key.pem",
    "the audit file junk.db is no SQLite file; the audit leaves it alone": "serve --port 0 --audit-db junk.db",
    "my_client.py cannot be started: No such file or directory": "judge -- my_client.py",
    "no request of a client came": "judge -- true",
    "there is no rule 'ping.answred'; did you mean ping.answered": "judge --require ping.answred -- true",
    "line 1: no JSON, so it is no event log, or one that is cut off": "open junk.db",
    'a log begins with {"kind":"log"': "judge --log empty.ndjson",
    "version 1 of the format": "open old.ndjson",
    "it is a zip, but no session file": "open other.zip",
    "it is cut off": "open cut.mcpprobe",
    "no server answers at http://127.0.0.1:8000: Connection refused": "tail http://127.0.0.1:1",
    "no export comes from http://127.0.0.1:8000: Connection refused": "export http://127.0.0.1:1",
}
# These need a program that is not here, the rights of another user, or two servers; the tests of the rooms have some.
ELSEWHERE = {
    "this port needs more privileges",
    "the private key in locked.pem is encrypted",
    "the audit file calls.db is written by another server",
    "the dashboard cannot be built: …",
    "The dashboard was not built into this copy",
    "the client asked for no list",
    "this program reads version 1",
    "has no feed: HTTP 404",
    "Remote end closed connection without response",
    "certificate verify failed: self-signed certificate",
    "invalid peer certificate: UnknownIssuer",
    "npm ci was ended after 10 minutes",
    "the log is not forwarded: … status 401",
    "the log is not forwarded: … status 404",
    "the log cannot be forwarded to … now",
    "the secret is missing or not this server's (toolhost_secret)",
    "tool hosts are off",
}


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


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that is taken, in a folder with files that no command takes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCP_PROBE_MAX_SESIONS", "1")
    for name, text in (("junk.pem", "junk"), ("junk.db", "junk"), ("empty.ndjson", ""), ("old.ndjson", LOG)):
        Path(name).write_text(text)
    with zipfile.ZipFile("other.zip", "w") as other:
        other.writestr("a", "b")
    Path("cut.mcpprobe").write_bytes(Path("other.zip").read_bytes()[:40])
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def test_each_message_that_the_program_prints_is_here_or_said_to_be_elsewhere() -> None:
    assert set(SAID) == COMMANDS.keys() | ELSEWHERE


@pytest.mark.parametrize("message", COMMANDS)
def test_the_program_prints_what_the_page_says(message: str, taken: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(COMMANDS[message].replace("28100", str(taken)).split()) == 2
    said = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", capfd.readouterr().err)
    assert message in said
