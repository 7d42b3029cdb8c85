"""infra/smoke.py: it passes a probe that works, and says what is wrong with everything else."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from ..support.process import served
from .proxies import buffering, switching
from .tools import ROOT

SMOKE = ROOT / "infra" / "smoke.py"
NAMES = ["health", "ready", "call", "stream", "closing", "body", "session", "websocket", "dashboard"]


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with served() as url:
        yield url.removesuffix("/mcp")


def smoke(*arguments: str) -> tuple[int, dict[str, str]]:
    """The exit code, and what was said about each check."""
    command = [sys.executable, str(SMOKE), *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=120)
    words = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    said = {rest.split()[0].rstrip(":"): f"{verdict} {rest}" for verdict, rest in words}
    return done.returncode, said


def failed(said: dict[str, str]) -> list[str]:
    return [name for name, line in said.items() if line.startswith("FAILED")]


def test_a_probe_that_works_passes(origin: str) -> None:
    code, said = smoke(origin)
    assert (code, list(said), failed(said)) == (0, NAMES, [])


def test_a_server_of_rooms_passes_in_a_room() -> None:
    with served("--rooms", "on", "--max-rooms", "1") as url:
        code, said = smoke(url.removesuffix("/mcp"))
        # It has ended its room, so there is a place for another one.
        with urllib.request.urlopen(urllib.request.Request(url.replace("/mcp", "/api/rooms"), method="POST")) as answer:
            api = json.load(answer)["api"]
        with urllib.request.urlopen(f"{api}/room") as answer:
            assert answer.status == 200
    assert (code, list(said), failed(said)) == (0, NAMES, [])


def test_a_proxy_that_buffers_is_found_out(origin: str) -> None:
    with buffering(origin) as behind:
        code, said = smoke(behind)
    assert code == 1
    assert failed(said) == ["stream", "closing", "websocket"]
    assert "something buffers the stream" in said["stream"]
    assert "the call runs on" in said["closing"]


def test_tools_that_are_not_served_are_missed() -> None:
    with served("--tools", "chatty") as url:
        code, said = smoke(url.removesuffix("/mcp"))
    assert (code, failed(said)) == (1, ["call", "stream", "closing", "body"])


def test_a_name_that_the_probe_does_not_allow_is_found_out(origin: str) -> None:
    # a proxy in front whose own name nobody has told the probe
    with switching(lambda: origin, host="127.0.0.2") as behind:
        code, said = smoke(behind)
    assert code == 1
    assert {"call", "stream", "session", "websocket"} <= set(failed(said))
    assert "HTTP 403" in said["call"]


def test_nobody_there_fails_everything() -> None:
    with socket.socket() as free:
        # bound and not listening: nobody else can take it meanwhile
        free.bind(("127.0.0.1", 0))
        code, said = smoke(f"http://127.0.0.1:{free.getsockname()[1]}", "--wait", "1")
    assert (code, failed(said)) == (1, NAMES)
