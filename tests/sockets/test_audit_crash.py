"""A server process that dies, or whose file cannot be written: what the audit says afterwards."""

from __future__ import annotations

import http.client
import json
import os
import re
import selectors
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

_WAIT_S = 30.0
_FLUSH_S = 0.2
_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "crash", "version": "1"}}


class Server:
    """A running process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self._session: str | None = None

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=_WAIT_S)
        session = {} if self._session is None else {"mcp-session-id": self._session}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {**_HEADERS, **session})
            answer = connection.getresponse()
            return {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def initialize(self) -> None:
        request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _PARAMS}
        headers, _ = self._ask("POST", "/mcp", request)
        self._session = headers["mcp-session-id"]

    def call(self, id: int, name: str = "chatty", arguments: dict[str, Any] | None = None) -> bytes:
        params = {"name": name, "arguments": arguments or {}}
        request = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        return self._ask("POST", "/mcp", request)[1]

    def try_call(self, id: int, name: str = "chatty", arguments: dict[str, Any] | None = None) -> bool:
        """Whether it was answered; a server that is killed does not."""
        try:
            return b"result" in self.call(id, name, arguments)
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> Any:
        return json.loads(self._ask("GET", path)[1])

    def all_calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._ask("GET", "/api/calls.ndjson")[1].splitlines()]


@contextmanager
def server(path: Path, *arguments: str, limit_file_size: int | None = None) -> Iterator[Server]:
    """`mcp-probe serve` with an audit file; what is left of it at the end is killed."""
    command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--grace-s", "0", "--audit-db", str(path)]
    if limit_file_size is not None:
        # The shell sets it in blocks of 1024 bytes, and Python ignores the signal, so that writing fails with EFBIG.
        command = ["bash", "-c", f'ulimit -f {limit_file_size // 1024}; exec "$@"', "bash", *command]
    command += ["--audit-flush-s", str(_FLUSH_S), *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            with selectors.DefaultSelector() as selector:
                selector.register(process.stderr, selectors.EVENT_READ)
                assert selector.select(_WAIT_S)
            line = process.stderr.readline()
            found = re.search(r"http://\S+/mcp", line)
            assert found, line
            started = Server(process, urlsplit(found[0]).netloc)
            started.initialize()
            yield started
        finally:
            process.kill()


def wait_until(ready: Callable[[], Any]) -> None:
    until = time.monotonic() + _WAIT_S
    while not ready():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)  # real time: a process can only be asked


def check(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that must be whole, the oldest first."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [json.loads(row) for (row,) in connection.execute("SELECT row FROM rows ORDER BY number")]
    finally:
        connection.close()


def test_a_killed_server_leaves_a_whole_file_and_the_next_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    answered: list[int] = []
    with server(path) as first:
        waiting = threading.Thread(target=first.try_call, args=(1_000_000, "progress", {"steps": 9, "step_ms": 5000}))
        waiting.start()
        wait_until(lambda: len(first.get("/api/calls?outcome=running")["calls"]) == 1)
        dead = threading.Event()

        def load() -> None:
            number = 0
            while not dead.is_set():
                if not first.try_call(number):
                    return
                answered.append(number)
                number += 1

        loading = threading.Thread(target=load)
        loading.start()
        wait_until(lambda: len(answered) >= 50)
        due = {*answered}
        wait_until(lambda: due <= {row["request_id"] for row in check(path)})
        os.kill(first.process.pid, signal.SIGKILL)
        dead.set()
        loading.join(_WAIT_S)
        waiting.join(_WAIT_S)
    kept = {row["request_id"]: row for row in check(path)}
    assert due <= kept.keys()
    assert kept[1_000_000]["outcome"] is None
    with server(path) as second:
        second.call(5, "chatty", {"lines": 2})
        rows = second.all_calls()
        assert [row["request_id"] for row in rows[:1]] == [5]
        assert {row["id"] for row in rows[1:]} == {row["id"] for row in kept.values()}
        lost = second.get("/api/calls?outcome=lost")["calls"]
        assert 1_000_000 in [row["request_id"] for row in lost]
        assert second.get("/api/calls?outcome=running")["calls"] == []
        detail = second.get(f"/api/calls/{kept[1_000_000]['id']}")
        # The client uses ids again, which is noted.
        kinds = [event["kind"] for event in detail["evidence"]["events"] if event["kind"] != "client.misuse"]
        assert kinds[:3] == ["http.request", "message.received", "call.started"]
    check(path)


def test_a_file_that_may_not_grow_stops_no_call_and_stays_whole(tmp_path: Path) -> None:
    """As on a full disk: the system refuses to write any more, in the middle of a writing."""
    path = tmp_path / "audit.db"
    with server(path, "--call-records", "100", limit_file_size=512 * 1024) as running:
        number = 0
        while running.get("/api/server")["audit"]["state"] == "ok":
            running.call(number, "chatty", {"lines": 100})
            number += 1
            assert number < 5000
        for more in range(20):
            assert b"result" in running.call(number + more)
        assert running.get("/api/calls?limit=1")["calls"][0]["request_id"] == number + 19
    rows = check(path)
    assert 0 < len(rows) < number + 20


def test_two_servers_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with server(path):
        command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--audit-db", str(path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, check=False)
    assert second.returncode == 2
    assert second.stderr == f"error: the audit file {path} is written by another server\n"


@pytest.mark.parametrize("content", [b"my diary\n" * 100, b""])
def test_a_file_that_cannot_be_the_audits_is_one_line_at_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "audit.db" if content else tmp_path / "missing" / "audit.db"
    if content:
        path.write_bytes(content)
    command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--audit-db", str(path)]
    failed = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, check=False)
    assert failed.returncode == 2
    assert re.fullmatch(r"error: .*audit.*\n", failed.stderr), failed.stderr
    assert not content or path.read_bytes() == content
