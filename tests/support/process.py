"""Real processes: a server on a free port of the loopback interface, and any program whose lines a test follows."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import trio
from bench.cluster import new_room, running

# a start takes a second or two; a machine with many other programs needs many times that
_START_S = 90.0
# the grace period below, the flush of the responses, and a slow machine
_STOP_S = 15.0
PATIENCE_S = 30.0
"""Far longer than anything that a program does here; a test that waits so long has failed."""


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Run `mcp-probe serve` with these arguments; gives the URL of `/mcp`.

    Leaving the block sends SIGTERM: the process must then end by itself, with exit code 0 and without a traceback.
    """
    command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--grace-s", "1", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _announced_url(process)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=_STOP_S)
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in said) == (0, False), said


@contextmanager
def served_to_clients(*arguments: str) -> Iterator[str]:
    """As `served`, for clients that may be anywhere. `PROBE_BALANCER` (haproxy or nginx) puts them in a room.

    The room is on one of three replicas behind that balancer, and may use all that its replica has.
    """
    balancer = os.environ.get("PROBE_BALANCER")
    if balancer is None:
        with served(*arguments) as url:
            yield url
    else:
        with running(balancer, "--grace-s", "1", "--room-share", "1", *arguments) as cluster:
            yield new_room(cluster.url)["mcp"]


def _announced_url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        assert selector.select(_START_S), f"the server said nothing within {_START_S:g} s"
    line = process.stderr.readline()
    found = re.search(r"http://\S+/mcp", line)
    assert found, f"no URL in {line!r}"
    return found[0]


class Program:
    """A process that is followed: `lines` has what it has said on standard output and standard error."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.lines: list[str] = []
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._silent = False
        self._came = trio.lowlevel.ParkingLot()

    async def read(self) -> None:
        """Follow it to the end of its output."""
        rest = b""
        async for piece in self._stdout:
            *whole, rest = (rest + piece).split(b"\n")
            self.lines += [line.decode() for line in whole]
            self._came.unpark_all()
        self._silent = True
        self._came.unpark_all()

    async def said(self, *parts: str) -> str:
        """The first line, of those before too, that has all these parts."""
        with trio.fail_after(PATIENCE_S):
            while not (found := [line for line in self.lines if all(part in line for part in parts)]):
                assert not self._silent, f"it ended without {parts}: {self.lines}"
                await self._came.park()
        return found[0]

    async def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        await self._stdin.send_all(line.encode() + b"\n")

    async def end_input(self) -> None:
        """Close its standard input, as a client does that leaves."""
        await self._stdin.aclose()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait until it has ended, and all that it said is in `lines`; its exit code."""
        with trio.fail_after(PATIENCE_S):
            code = await self.process.wait()
            while not self._silent:
                await self._came.park()
        assert not any("Traceback" in line for line in self.lines), self.lines
        return code

    async def killed(self) -> None:
        """`kill -9`, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        assert await self.ended() == -signal.SIGKILL


@asynccontextmanager
async def followed(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Program]:
    """Run a program; what is left of it after the block is killed. Settings of whoever tests do not reach it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MCP_PROBE_")}
    process = await trio.lowlevel.open_process(
        [*command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**inherited, **environment},
    )
    program = Program(process)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(program.read)
            yield program
            nursery.cancel_scope.cancel()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.aclose()
            await process.stdout.aclose()


@dataclass
class Server:
    """A server process of a test's own. `url` is that of `/mcp`."""

    url: str
    port: int
    program: Program


@asynccontextmanager
async def serving(*arguments: str, port: int = 0, before: str = "", **environment: Any) -> AsyncIterator[Server]:
    """As `served`, for a test that stops or kills the server: one that still runs after the block is told to end.

    `before` is a command of the shell that prepares the process, such as `ulimit -n 256`.
    """
    command = [sys.executable, "-m", "probe", "serve", "--port", str(port), "--grace-s", "1", *arguments]
    prepared = ["sh", "-c", f'{before}; exec "$@"', "sh", *command] if before else command
    async with followed(prepared, environment) as program:
        found = re.search(r"https?://\S+:(\d+)/mcp", await program.said("listens on"))
        assert found, program.lines
        yield Server(found[0], int(found[1]), program)
        if program.process.poll() is None:
            program.signal(signal.SIGTERM)
            assert await program.ended() == 0, program.lines
