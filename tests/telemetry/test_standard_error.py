"""A reader of standard error may stop reading; the server does not wait for it."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from probe.telemetry import lines
from probe.telemetry.lines import StandardError

PATIENCE_S = 30


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that holds as little as it can."""
    ends = os.pipe()
    fcntl.fcntl(ends[1], getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)
    yield ends
    for end in ends:
        os.close(end)


def read(end: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += os.read(end, size - len(found))
    return found


def fill(end: int) -> int:
    """Write until nothing more fits; how much that was."""
    os.set_blocking(end, False)
    try:
        size = os.write(end, b"x" * 1_000_000)
    finally:
        os.set_blocking(end, True)
    return size


def healthy(client: HTTPConnection) -> bool:
    client.request("GET", "/health")
    response = client.getresponse()
    response.read()
    return response.status == 200


def test_lines_come_in_order_and_flush_waits_for_them(pipe: tuple[int, int]) -> None:
    out, into = pipe
    err = StandardError(into)
    for number in range(100):
        err.write(b"%d\n" % number)
    err.flush(PATIENCE_S)
    assert read(out, 290) == b"".join(b"%d\n" % number for number in range(100))


def test_what_has_no_room_is_lost_and_counted(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = pipe
    monkeypatch.setattr(lines, "_MOST_BYTES", 100)
    filled, err = fill(into), StandardError(into)
    err.write(b"a" * 99 + b"\n")
    for _ in range(3):
        err.write(b"lost\n")
    err.flush(0.01)
    assert read(out, filled + 100) == b"x" * filled + b"a" * 99 + b"\n"
    err.flush(PATIENCE_S)
    err.write(b"later\n")
    told = b"3 lines were lost here: nobody read them\nlater\n"
    assert read(out, len(told)) == told


def test_a_thread_can_wait_for_room(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = pipe
    monkeypatch.setattr(lines, "_MOST_BYTES", 100)
    filled, err = fill(into), StandardError(into)
    err.write(b"a" * 100)
    thread = threading.Thread(target=err.write_all, args=(b"b" * 100,))
    thread.start()
    assert read(out, filled + 200).endswith(b"a" * 100 + b"b" * 100)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_descriptor_that_is_broken_is_nobodys_business() -> None:
    out, into = os.pipe()
    os.close(out)
    err = StandardError(into)
    err.write(b"line\n")
    err.flush(PATIENCE_S)
    err.write(b"another\n")
    err.flush(PATIENCE_S)
    os.close(into)


@pytest.mark.parametrize("signals", [1, 2])
def test_a_server_whose_standard_error_nobody_reads_serves_and_ends(pipe: tuple[int, int], signals: int) -> None:
    """What it would say: one connection is too many, and it is told to stop."""
    out, into = pipe
    command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--max-connections", "1"]
    server = subprocess.Popen(command, stderr=into)
    try:
        said = b""
        while b"\n" not in said:
            said += os.read(out, 4096)
        found = re.search(rb"listens on http://(\S+)/mcp", said)
        assert found is not None
        fill(into)
        client, refused = (HTTPConnection(found[1].decode(), timeout=PATIENCE_S) for _ in range(2))
        assert healthy(client)
        refused.request("POST", "/mcp", body=b"{}")
        assert refused.getresponse().status == 503
        refused.close()
        assert healthy(client)
        client.close()
        for _ in range(signals):
            server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
    finally:
        server.kill()
        server.wait()
