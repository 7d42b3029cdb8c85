"""`mcp-probe stdio` as clients start it: a process behind three pipes."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio

from ..support.lines import MODERN, PATIENCE_S, STDIO, Stdio, speaking
from ..support.rows import row

REQUEST = {"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": {"_meta": MODERN}}
LINE = json.dumps(REQUEST).encode() + b"\n"
# its answer is one that no pipe holds
LARGE = {"name": "long_output", "arguments": {"blocks": 50, "chars": 65536}}
HELLO = "MCP Probe speaks on standard input and output (toolsets: probe,streaming,features,dispatch,hosts)"
# to a person who started it by hand
FOR_PEOPLE = "A client starts this command and speaks to it here; Ctrl-C ends it. For the dashboard: mcp-probe serve"


def run(*arguments: str, **streams: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*STDIO, *arguments], timeout=PATIENCE_S, check=False, stderr=subprocess.PIPE, **streams)


def answered(line: bytes) -> bool:
    message = json.loads(line)
    return message["id"] == 7 and "supportedVersions" in message["result"]


# -- what it says


@pytest.mark.proves("2025-11-25/transports/36", "2026-07-28/stdio/8")
async def test_one_line_on_standard_error_says_what_it_is_and_serves() -> None:
    async with speaking("--tools", "chatty") as probe:
        assert await probe.said() == "MCP Probe speaks on standard input and output (toolsets: chatty)"
        listed = await probe.ask("tools/list")
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["chatty"]
        await probe.stdin.aclose()
        assert await probe.ended() == ([], "")


async def test_a_line_that_is_no_message_is_answered_and_the_connection_goes_on() -> None:
    async with speaking("--max-body-bytes", "1024") as probe:
        for text, code in ((b"\xff\xfe\n", -32700), (b"{\n", -32700), (b"x" * 100_000 + b"\n", -32600)):
            await probe.write(text)
            message = await probe.read()
            assert message["error"]["code"] == code, message
        await probe.write(b"\r\n\n" + LINE[:20])
        await probe.write(LINE[20:-1] + b"\r\n")
        assert "supportedVersions" in (await probe.read())["result"]


NOISY = """
import os, subprocess, sys
from probe.cli import parts, program as cli
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, structured

async def run(context):
    print("printed")
    sys.stdout.flush()
    os.write(1, b"written\\n")
    # without arguments of its own it inherits standard input and output
    child = subprocess.run(["sh", "-c", "cat; echo said"], timeout=30)
    return structured({"read": sys.stdin.read(), "child": child.returncode})

tool = Tool(name="noisy", title="Noisy", exercises="", shows="", description="", run=run)
parts.TOOLSETS = (Toolset("noisy", (tool,)),)
sys.exit(cli.main(["stdio", "--tools", "noisy"]))
"""


@pytest.mark.proves("2025-11-25/transports/3", "2026-07-28/stdio/2")
async def test_what_a_tool_prints_goes_to_standard_error_and_it_finds_no_input() -> None:
    async with speaking(command=[sys.executable, "-c", NOISY]) as probe:
        result = await probe.tool("noisy")
        assert result["structuredContent"] == {"read": "", "child": 0}
        assert await probe.said() == HELLO.replace("probe,streaming,features,dispatch,hosts", "noisy")
        assert [await probe.said() for _ in range(3)] == ["printed", "written", "said"]
        await probe.stdin.aclose()
        assert await probe.ended() == ([], "")


# -- how it ends


async def test_answers_that_are_made_are_written_before_it_ends() -> None:
    async with speaking() as probe:
        for id in range(50):
            await probe.write(json.dumps(REQUEST | {"id": id}).encode() + b"\n")
        await probe.stdin.aclose()
        messages, _ = await probe.ended()
        assert [message["id"] for message in messages] == [*range(50)]


@pytest.mark.proves("2026-07-28/stdio/6")
async def test_a_client_that_ends_while_it_reads_nothing_does_not_keep_it() -> None:
    async with speaking() as probe:
        await probe.send("tools/call", LARGE)
        assert await probe.said() == HELLO
        await probe.stdin.aclose()
        assert await probe.process.wait() == 0


async def test_a_client_that_closes_its_end_of_the_output_has_gone() -> None:
    async with speaking() as probe:
        await probe.start_steps(100, 10)
        await probe.stdout.aclose()
        assert await probe.process.wait() == 0


async def test_nobody_needs_to_read_what_it_says() -> None:
    async with speaking() as probe:
        await probe.start_steps(3, 100)
        await probe.close_stderr()
        probe.process.send_signal(signal.SIGTERM)
        assert [(await probe.read()).get("method") for _ in range(3)] == ["notifications/progress"] * 2 + [None]
        assert await probe.process.wait() == 0


@pytest.mark.proves("2025-11-25/lifecycle/5", "2026-07-28/stdio/13")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("hangup")
async def test_a_signal_ends_it(number: signal.Signals) -> None:
    async with speaking() as probe:
        assert await probe.said() == HELLO
        probe.process.send_signal(number)
        assert (await probe.said()).startswith("stopping: running work may finish within 10 s")
        assert await probe.ended() == ([], "")


async def test_a_second_signal_waits_for_no_work() -> None:
    async with speaking("--grace-s", "600") as probe:
        id = await probe.start_steps(100, 500)
        assert await probe.said() == HELLO
        probe.process.send_signal(signal.SIGTERM)
        assert (await probe.said()).startswith("stopping")
        probe.process.send_signal(signal.SIGTERM)
        messages, _ = await probe.ended()
        assert messages[-1]["id"] == id
        assert "shutting down" in messages[-1]["error"]["message"]


async def test_after_a_signal_a_client_that_reads_nothing_does_not_keep_it() -> None:
    async with speaking() as probe:
        await probe.send("tools/call", LARGE)
        assert await probe.said() == HELLO
        probe.process.send_signal(signal.SIGTERM)
        assert await probe.process.wait() == 0


# -- what the streams may be


def test_files_on_disk(tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    # the last line of a file need not end
    source.write_bytes(LINE * 3 + LINE.strip())
    with source.open() as stdin, sink.open("w") as stdout:
        done = run(stdin=stdin, stdout=stdout)
    assert (done.returncode, done.stderr.decode()) == (0, HELLO + "\n")
    assert [answered(line) for line in sink.read_bytes().splitlines()] == [True] * 4


@pytest.mark.proves("2026-07-28/stdio/6")
def test_nothing_at_all() -> None:
    done = run(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert (done.returncode, done.stderr.decode()) == (0, HELLO + "\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_stream_that_is_closed_from_the_start_is_one_line(closed: str) -> None:
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *STDIO]
    done = subprocess.run(command, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    assert (done.returncode, done.stderr) == (2, b"error: standard input and standard output must be open\n")
    assert done.stdout == b""


def test_without_standard_error_nothing_else_is_taken_for_it() -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", NOISY]
    call = {"method": "tools/call", "params": {"name": "noisy", "arguments": {}, "_meta": MODERN}}
    ours, theirs = socket.socketpair()
    with ours:
        # one socket that could be written to under any number
        with theirs:
            process = subprocess.Popen(command, stdin=theirs, stdout=theirs)
        try:
            ours.settimeout(PATIENCE_S)
            ours.sendall(json.dumps(REQUEST | call).encode() + b"\n")
            with ours.makefile("rb") as lines:
                message = json.loads(lines.readline())
                assert message["result"]["structuredContent"] == {"read": "", "child": 0}
                ours.shutdown(socket.SHUT_WR)
                assert lines.read() == b""
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()


def test_one_socket_for_both_which_blocks_again_afterwards() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(PATIENCE_S)
        os.set_blocking(theirs.fileno(), True)
        with subprocess.Popen(STDIO, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
            try:
                ours.sendall(LINE)
                with ours.makefile("rb") as lines:
                    assert answered(lines.readline())
                assert not os.get_blocking(theirs.fileno()), "or this test shows nothing"
                ours.shutdown(socket.SHUT_WR)
                assert process.wait(PATIENCE_S) == 0
            finally:
                process.kill()
        assert os.get_blocking(theirs.fileno())


def test_on_a_terminal_the_others_who_use_it_go_on_blocking() -> None:
    with terminal() as (keyboard, shell):
        process = subprocess.Popen(STDIO, stdin=shell, stdout=shell, stderr=shell, start_new_session=True)
        try:
            os.write(keyboard, LINE)
            with os.fdopen(os.dup(keyboard), "rb") as screen:
                seen = [screen.readline().strip() for _ in range(3)]
                # where the line goes that says what it is, depends on how fast it starts: the terminal echoes nothing
                told = {answered(line) if line.startswith(b"{") else line.decode() for line in seen}
                assert told == {True, HELLO, FOR_PEOPLE}
            assert os.get_blocking(shell)
            # what Ctrl-D makes of an empty line
            os.write(keyboard, b"\x04")
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    keyboard, shell = pty.openpty()
    try:
        modes = termios.tcgetattr(shell)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(shell, termios.TCSANOW, modes)
        yield keyboard, shell
    finally:
        os.close(keyboard)
        os.close(shell)


# -- the pages beside it


@asynccontextmanager
async def watched(*arguments: str) -> AsyncIterator[tuple[Stdio, int]]:
    """A process with pages: the client, and their port."""
    async with speaking("--dashboard", "0", *arguments) as probe:
        said = await probe.said()
        before, _, url = said.partition("; dashboard: http://127.0.0.1:")
        assert before == HELLO
        assert url.endswith("/dashboard")
        yield probe, int(url.removesuffix("/dashboard"))


async def fetch(port: int, path: str, headers: str = "") -> tuple[int, bytes]:
    """GET: status and body."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{headers}\r\n"
        await stream.send_all(request.encode())
        head, _, body = b"".join([piece async for piece in stream]).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def test_the_pages_show_the_client_on_the_standard_streams() -> None:
    async with watched() as (probe, port):
        assert await fetch(port, "/health") == (200, b'{"status":"alive"}')
        assert (await fetch(port, "/ready"))[0] == 200
        await probe.tool("chatty")
        status, body = await fetch(port, "/api/server")
        shown = {setting["name"]: setting["value"] for setting in json.loads(body)["settings"]}
        assert (status, shown["port"], shown["tools"]) == (200, 0, "probe,streaming,features,dispatch,hosts")
        assert json.loads(body)["mcp"] is None
        status, body = await fetch(port, "/api/calls")
        assert (status, [call["tool"] for call in json.loads(body)["calls"]]) == (200, ["chatty"])
        await probe.stdin.aclose()
        await probe.ended()


UPGRADE = (
    "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: mcp\r\n"
)


async def test_the_protocol_is_not_served_beside_it_and_pages_are_as_careful_about_names_as_those_of_serve() -> None:
    async with watched() as (_, port):
        for path, headers in (("/mcp", ""), ("/ws", ""), ("/ws", UPGRADE)):
            with row(path=path, headers=headers):
                status, body = await fetch(port, path, headers)
                problem = json.loads(body)
                assert (status, problem["status"]) == (404, 404)
                assert "standard input and output" in problem["detail"]
        status, _ = await fetch(port, "/api/server", "origin: https://elsewhere.example\r\n")
        assert status == 403


@pytest.mark.parametrize("public", ["", "https://probe.example"])
async def test_a_page_that_a_person_has_to_open_is_among_them(public: str) -> None:
    arguments = ("--public-url", public) if public else ()
    async with watched(*arguments) as (probe, port):
        capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}}
        message = await probe.ask("tools/call", {"name": "elicit_url", "arguments": {}}, **capable)
        (asked,) = message["result"]["inputRequests"].values()
        origin, _, page = asked["params"]["url"].partition("/interaction/")
        assert origin == (public or f"http://127.0.0.1:{port}")
        status, body = await fetch(port, f"/interaction/{page}")
        assert (status, b"<button>Confirm</button>" in body) == (200, True)


def test_a_port_in_use_is_one_line_before_anything_is_read(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(LINE)
    with socket.create_server(("127.0.0.1", 0)) as taken, source.open("rb") as stdin:
        port = str(taken.getsockname()[1])
        done = run("--dashboard", port, stdin=stdin, stdout=subprocess.PIPE)
        # the offset belongs to the open file, which the process shared
        assert os.lseek(stdin.fileno(), 0, os.SEEK_CUR) == 0
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"error: cannot listen on 127.0.0.1:{port}: the port is in use\n"
