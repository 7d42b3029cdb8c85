"""`mcp-probe tail` and `serve --watch` as processes, beside a real server that is started anew."""

from __future__ import annotations

import json
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.request import Request, urlopen

import pytest

from probe.cli.program import main
from probe.telemetry.terminal.feed_reader import FeedError, follow

from ...support.modern import PREFIX, Modern
from ...support.process import followed, serving


def call(url: str, name: str = "simple_tool", client: str = "test-client") -> None:
    info = {PREFIX + "clientInfo": {"name": client, "version": "1"}}
    message = Modern(None, "").request("tools/call", {"name": name, "arguments": {}}, meta=info)
    body = json.dumps(message).encode()
    with urlopen(Request(url, body, Modern.headers(message) | {"host": "127.0.0.1"}), timeout=30) as answer:
        answer.read()


async def test_it_shows_what_happens_and_goes_on_with_the_next_server() -> None:
    async with serving("--watch") as server:
        origin = server.url.removesuffix("/mcp")
        async with followed([sys.executable, "-m", "probe", "tail", origin], {}) as tail:
            call(server.url)
            assert await tail.said("m1 test-client", "tools/call simple_tool", "ok, ")
            assert await server.program.said("m1 test-client", "tools/call simple_tool", "ok, ")
            server.program.process.terminate()
            assert await server.program.ended() == 0
            await tail.said("trying again")
            async with serving(port=server.port) as again:
                await tail.said("missing", "entries of an earlier run")
                call(again.url, "chatty")
                assert await tail.said("tools/call chatty", "ok, ")


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
async def test_a_name_that_standard_output_cannot_write_ends_neither_server_nor_tail(encoding: str) -> None:
    async with serving("--watch", PYTHONIOENCODING=encoding) as server:
        command = [sys.executable, "-m", "probe", "tail", server.url]
        async with followed(command, {"PYTHONIOENCODING": encoding}) as tail:
            call(server.url, client="日本")
            for program in (tail, server.program):
                assert await program.said(r"m1 \u65e5\u672c", "tools/call simple_tool", "ok, ")


async def test_a_filter_looks_through_the_whole_log_and_not_only_at_its_end() -> None:
    async with serving() as server:
        call(server.url, "chatty")
        for _ in range(20):
            call(server.url)
        command = [sys.executable, "-m", "probe", "tail", "--filter", "tool:chatty", server.url]
        async with followed(command, {}) as tail:
            assert await tail.said("tools/call chatty", "ok, ")


def test_where_no_server_is_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert main(["tail", f"http://127.0.0.1:{port}"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: no server answers at http://127.0.0.1:{port}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "http://x:y"])
def test_what_is_no_address_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail", url]) == 2
    assert f"{url!r} is not http://HOST" in capsys.readouterr().err


class Answers(BaseHTTPRequestHandler):
    """Another server than a probe."""

    status, said = 404, b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_another_server_is_no_feed() -> None:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        with pytest.raises(FeedError, match=r"has no feed: HTTP 404"):
            next(follow(f"http://127.0.0.1:{server.server_port}", 1, print))
        answering.join(30)


@pytest.mark.parametrize(
    ("status", "said", "why"),
    [
        (503, b"busy\x1b[2J\x07 or so", r"busy\x1b[2J\x07 or so"),
        (200, b"data: {\n\n", "an event of the feed is no JSON"),
        (200, b'data: {"seq": \xff}\n\n', "an event of the feed is no JSON"),
    ],
)
def test_what_another_server_says_is_one_line_and_no_traceback(
    status: int, said: bytes, why: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answers, "status", status)
    monkeypatch.setattr(Answers, "said", said)
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        assert main(["tail", f"http://127.0.0.1:{server.server_port}"]) == 2
        answering.join(30)
    err = capsys.readouterr().err
    assert why in err
    assert (err.count("\n"), "\x1b" in err) == (1, False)
