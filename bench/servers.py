"""The servers under measurement: how each is started, which of its tools does what, and what the system says of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import trio

from .client import Era, Tool

ROOT = Path(__file__).parent.parent
_START_S = 20.0
_URL = re.compile(rb"http://127\.0\.0\.1:(\d+)/mcp")

OUR_SERVER = "MCP Probe"
OUR_MODERN = "MCP Probe, modern"
UPPER_BOUND = "bare hypercorn"
NO_SERVER = "echo, no server"
"""Answers without looking at what it answers: what the load reaches."""

CLOCK_URI = "probe://clock"
"""The resource that ticks, on every server that offers subscriptions."""
TICK_S = 2.0
"""It changes at each multiple of this, by the wall clock."""

HOST_SECRET = "known-to-this-benchmark"  # noqa: S105  it guards a server that lives for seconds, on this machine

Measurement = Literal[
    "calls",
    "http2",
    "pipes",
    "streams",
    "many",
    "cancellation",
    "listen",
    "feed",
    "hosts",
    "start",
    "growth",
    "replicas",
]


class StartError(Exception):
    """A server did not start; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server and how it is spoken to: the tool that answers 1,024 characters at once, the one that waits, the era.

    `options` are further arguments for one kind of measurement. `audited`: it is ours, so when a call ended is read
    from the server's own audit, not from the tool `ended`, and there are dashboards.
    """

    name: str
    command: tuple[str, ...]
    echo: Tool
    wait: Tool
    options: Mapping[Measurement, tuple[str, ...]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    audited: bool = False
    era: Era = "legacy"

    @property
    def cancels(self) -> bool:
        """Whether there is anything to cancel behind it."""
        return self.name not in (UPPER_BOUND, NO_SERVER)

    @property
    def listens(self) -> bool:
        """Whether it offers subscriptions; the upper bound looks at no header, and so speaks both eras alike."""
        return self.era == "modern" or self.name == UPPER_BOUND


def all_servers(node: str, node_modules: Path) -> list[Server]:
    """Ours first; a server that is spoken to in both eras is there twice."""
    echo, wait = Tool("echo", {}), Tool("wait", {})
    # Their streamed answer to a call would be compared with our answer in one piece; this is their fastest, too.
    as_json: dict[Measurement, tuple[str, ...]] = {"calls": ("--json",)}
    scripts = ROOT / "bench" / "reference"
    ours = Server(
        OUR_SERVER,
        (sys.executable, "-m", "probe", "serve", "--port", "0"),
        Tool("long_output", {"blocks": 1, "chars": 1024}),
        Tool("progress", {"steps": 100, "step_ms": 5000}),
        # The calls of the load would push those to be read out of the audit.
        {
            "cancellation": ("--call-records", "100000", "--api-page", "100000"),
            # More clients than a host may have dispatches by default.
            "hosts": ("--toolhost-secret", HOST_SECRET, "--max-host-dispatches", "100"),
            "many": (
                "--max-calls",
                "20000",
                "--max-connections",
                "15000",
                "--max-in-flight",
                "1000",
                "--address-share",
                "1",
            ),
            "growth": ("--max-sessions", "20000", "--address-share", "1"),
        },
        {"PYTHONPATH": str(ROOT / "src")},
        audited=True,
    )
    python_sdk = Server("Python SDK, uvicorn", (sys.executable, str(scripts / "python_sdk.py")), echo, wait, as_json)
    # A modern stream begins with its first message: here the first step, and there is time for closing before the last.
    stepping = Tool("progress", {"steps": 100, "step_ms": 50})
    return [
        ours,
        replace(ours, name=OUR_MODERN, era="modern", wait=stepping),
        python_sdk,
        replace(python_sdk, name="Python SDK, modern", era="modern"),
        Server(
            "TypeScript SDK, node",
            (node, str(scripts / "typescript_sdk.cjs")),
            echo,
            wait,
            as_json,
            {"NODE_PATH": str(node_modules)},
        ),
        Server(UPPER_BOUND, (sys.executable, str(scripts / "bare.py")), echo, wait),
        Server(NO_SERVER, (sys.executable, str(scripts / "echo.py")), echo, wait),
    ]


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens."""

    server: Server
    port: int
    pid: int

    def memory(self) -> int:
        """Resident bytes; 0 where the system has no /proc."""
        found = re.search(r"VmRSS:\s+(\d+) kB", _proc(self.pid, "status"))
        return int(found[1]) * 1024 if found else 0

    def cpu_s(self) -> float:
        """Seconds of processor time so far; 0 where the system has no /proc."""
        return processor_s(self.pid)

    def pause(self) -> None:
        """Stop the process where it is, until `go_on`."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has used; 0 where the system has no /proc."""
    # The second field, the program's name in parentheses, may hold anything.
    fields = _proc(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _proc(pid: int, name: str) -> str:
    path = Path(f"/proc/{pid}/{name}")
    return path.read_text() if path.exists() else ""


@asynccontextmanager
async def running(server: Server, measurement: Measurement, cores: Cores) -> AsyncIterator[Running]:
    """Start a server in a process of its own; it is killed at the end, whatever it is doing. Raises `StartError`."""
    command = [*server.command, *server.options.get(measurement, ())]
    with cores.server_started_here():
        process = await trio.lowlevel.open_process(
            command, env={**os.environ, **server.environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    try:
        yield Running(server, await _port(server, process), process.pid)
    finally:
        process.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(5):
            await process.wait()


async def _port(server: Server, process: trio.Process) -> int:
    output = b""
    assert process.stdout is not None
    with trio.move_on_after(_START_S):
        async for piece in process.stdout:
            output += piece
            if found := _URL.search(output):
                await _wait_listening(int(found[1]))
                return int(found[1])
    raise StartError(f"{server.name} did not start: {output.decode(errors='replace')}")


async def _wait_listening(port: int) -> None:
    """Some servers name their port before they listen on it."""
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            await trio.sleep(0.01)
        else:
            await stream.aclose()
            return


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core runs the server and which one the load; None for both where the system decides."""

    server: int | None
    load: int | None

    @classmethod
    def divided(cls) -> Cores:
        """The first two that this process may use, and the load, which is this process, moves to its own."""
        available = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        if len(available) < 2:
            return cls(None, None)
        _move_to(available[1])
        return cls(available[0], available[1])

    @contextmanager
    def server_started_here(self) -> Iterator[None]:
        """What is started inside inherits the server's core, all its threads too; to move it later would miss some."""
        if self.server is None or self.load is None:
            yield
            return
        _move_to(self.server)
        try:
            yield
        finally:
            _move_to(self.load)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """What is started inside, this process too, may use both cores."""
        if self.server is None or self.load is None:
            yield
            return
        _move_to(self.server, self.load)
        try:
            yield
        finally:
            _move_to(self.load)


def _move_to(*cores: int) -> None:
    if sys.platform == "linux":
        os.sched_setaffinity(0, cores)
