"""`mcp-probe export` and `mcp-probe open` as processes, beside a real server."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

from probe.cli.program import main

from ...support.modern import Modern
from ...support.process import PATIENCE_S, followed, serving


def call(url: str) -> None:
    message = Modern(None, "").request("tools/call", {"name": "simple_tool", "arguments": {}})
    headers = Modern.headers(message) | {"host": "127.0.0.1", "authorization": "Bearer secret-words"}
    with urlopen(Request(url, json.dumps(message).encode(), headers), timeout=PATIENCE_S) as answer:
        answer.read()


def asked(url: str) -> Any:
    with urlopen(url, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def files(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


async def test_a_session_is_exported_and_opened_again_without_its_server(tmp_path: Path) -> None:
    path = tmp_path / "mine.mcpprobe"
    async with serving("--judge", "true") as server:
        for name in ("mine", "theirs"):
            call(f"{server.url}?client={name}")
        # As people have it: the address of the dashboard.
        export = [sys.executable, "-m", "probe", "export", server.url.replace("/mcp", "/dashboard")]
        async with followed([*export, "--client", "mine", "-o", str(path)], {}) as exporting:
            assert await exporting.ended() == 0
            told = r"mine\.mcpprobe: \d+ entries, 1 call, .* UTC; hidden: authorization \(1\)"
            assert re.search(told, exporting.lines[0])
        for form, beginning in (("har", b'{"log":'), ("html", b"<!doctype html>")):
            other = tmp_path.parent / f"mine.{form}"
            async with followed([*export, "-o", str(other)], {}) as exporting:
                assert await exporting.ended() == 0
            assert other.read_bytes().startswith(beginning)
        calls = asked(server.url.replace("/mcp", "/api/calls?label=mine"))
    with zipfile.ZipFile(path) as file:
        assert not any(b"secret-words" in file.read(name) for name in file.namelist())
    assert files(tmp_path) == ["mine.mcpprobe"]
    async with followed([sys.executable, "-m", "probe", "open", str(path)], {}) as shown:
        origin = (await shown.said("Dashboard: ")).split()[1].removesuffix("/dashboard")
        assert origin.startswith("http://127.0.0.1:")
        assert asked(f"{origin}/api/calls") == calls
        assert asked(f"{origin}/api/server")["file"]["name"] == "mine.mcpprobe"
        assert [subject["label"] for subject in asked(f"{origin}/api/judge")["subjects"]] == ["mine"]
        shown.signal(signal.SIGINT)
        assert await shown.ended() == 0
    assert len(shown.lines) == 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"PK\x03\x04 cut", "it is cut off"),
        (b"{}\n", "a log begins with"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_opened_is_one_line(
    body: bytes | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.mcpprobe"
    if body is not None:
        path.write_bytes(body)
    assert main(["open", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {path}: ")
    assert (why in err, err.count("\n")) == (True, 1)


CONTAINS = {"entries": 1, "calls": 0, "first_at": 1.5, "last_at": 1.5, "hidden": {}, "gaps": []}
OVERVIEW = json.dumps({"contains": CONTAINS}).encode()


class Answers(BaseHTTPRequestHandler):
    """Something else than a probe, which begins well and breaks off."""

    def do_GET(self) -> None:
        """Answer an export of 100 bytes with ten."""
        body = OVERVIEW if self.path.startswith("/api/export?") else b"0123456789"
        self.send_response(404 if "nobody" in self.path else 200)
        self.send_header("content-length", str(len(body) if b"{" in body else 100))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_an_export_that_breaks_off_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.mcpprobe"
    with HTTPServer(("127.0.0.1", 0), Answers) as other:
        thread = Thread(target=other.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{other.server_port}"
            assert main(["export", url, "-o", str(path)]) == 2
            assert main(["export", url, "--client", "nobody", "-o", str(path)]) == 2
        finally:
            other.shutdown()
            thread.join()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: no export comes from {url}: ")
    assert second == f"error: {url} answers with status 404"
    assert files(tmp_path) == []


@contextmanager
def answering(size: int, **contains: Any) -> Iterator[str]:
    """A server that gives an overview with these members and an export of so many bytes; its address."""
    overview = json.dumps({"contains": CONTAINS | contains}).encode()

    class Whole(Answers):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(overview if self.path.startswith("/api/export?") else bytes(size))

    with HTTPServer(("127.0.0.1", 0), Whole) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_name_that_a_client_chose_does_nothing_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.mcpprobe"
    with answering(10, hidden={"?\x1b[31mX\n": 1}) as url:
        assert main(["export", url, "-o", str(path)]) == 0
    said = capsys.readouterr().out
    assert (said.endswith("hidden: ?\\x1b[31mX\\x0a (1)\n"), "\x1b" in said) == (True, False)
    for wrong in ({"last_at": 1e300}, {"first_at": -1.0}, {"hidden": {"x": "\x1b"}}):
        with answering(10, **wrong) as url:
            assert main(["export", url, "-o", str(path)]) == 2
        assert capsys.readouterr().err == f"error: {url} gives no overview of an export\n"


def test_a_disk_without_room_is_named_as_the_fault_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.mcpprobe"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with answering(300_000) as url:
        # Python ignores the signal that comes with it.
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            assert main(["export", url, "-o", str(path)]) == 2
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err == f"error: {path}: File too large\n"
    assert files(tmp_path) == []


def test_what_cannot_be_exported_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for arguments, why in (
        ([url, "-o", str(tmp_path / "x.mcpprobe")], "refused"),
        (["ftp://x"], "is not http://HOST"),
        ([url, "-o", "x.zip"], "FILE must end with .mcpprobe"),
        ([url, "--client", "a", "--call", "b"], "exclude each other"),
    ):
        assert main(["export", *arguments]) == 2
        err = capsys.readouterr().err
        assert (why in err, err.count("\n")) == (True, 1), err
