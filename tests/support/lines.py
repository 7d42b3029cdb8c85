"""`mcp-probe stdio` as a real process behind three pipes, and streams that give exactly the pieces they are told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.abc import ReceiveStream

PATIENCE_S = 60
"""A start takes about a second; on a busy machine some more."""

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "1.2.3"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
STDIO = (sys.executable, "-m", "probe", "stdio")


class Pieces(ReceiveStream):
    """What a peer writes, cut as given; then the end of the stream, or the error."""

    def __init__(self, pieces: Iterable[bytes], error: type[Exception] | None = None) -> None:
        self._pieces = iter(pieces)
        self._error = error

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        piece = next(self._pieces, None)
        if piece is None and self._error is not None:
            raise self._error
        return piece or b""

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Stdio:
    """The client's side of one process. Every line that it reads from standard output has to be a message."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._stderr = process.stderr
        self._unread = {self.stdout: b"", self._stderr: b""}
        self._ids = iter(range(1, 1_000_000))

    async def _line(self, stream: Any) -> str:
        while b"\n" not in self._unread[stream]:
            piece = await stream.receive_some()
            assert piece, f"the end, after {self._unread[stream]!r}"
            self._unread[stream] += piece
        line, _, self._unread[stream] = self._unread[stream].partition(b"\n")
        return line.decode()

    async def said(self) -> str:
        """The next line on standard error."""
        return await self._line(self._stderr)

    async def write(self, text: bytes) -> None:
        """Write any bytes."""
        await self.stdin.send_all(text)

    async def read(self) -> dict[str, Any]:
        """The next message."""
        message = json.loads(await self._line(self.stdout))
        assert message["jsonrpc"] == "2.0", message
        return dict(message)

    async def send(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> int:
        """Send a modern request with more in its `_meta`; its id."""
        id = next(self._ids)
        said = {**(params or {}), "_meta": {**MODERN, **meta}}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": said}
        await self.write(json.dumps(message).encode() + b"\n")
        return id

    async def ask(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Send a modern request and read what must be its response."""
        id = await self.send(method, params, **meta)
        message = await self.read()
        assert message["id"] == id, message
        return message

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call, or what came instead."""
        message = await self.ask("tools/call", {"name": name, "arguments": arguments})
        return dict(message.get("result", message))

    async def start_steps(self, steps: int, step_ms: int) -> int:
        """A call that is running: its id. The first of its steps has been reported."""
        params = {"name": "progress", "arguments": {"steps": steps, "step_ms": step_ms}}
        id = await self.send("tools/call", params, progressToken="t")
        assert (await self.read())["method"] == "notifications/progress"
        return id

    async def close_stderr(self) -> None:
        """Nobody reads what it says any more."""
        await self._stderr.aclose()

    async def ended(self) -> tuple[list[dict[str, Any]], str]:
        """Wait until the process has ended by itself, as it should: with 0. What it wrote until then, and said."""
        rest = {stream: self._unread[stream] + b"".join([piece async for piece in stream]) for stream in self._unread}
        said = rest[self._stderr].decode()
        assert (await self.process.wait(), "Traceback" in said) == (0, False), said
        written = rest[self.stdout]
        assert not written or written.endswith(b"\n"), written
        return [json.loads(line) for line in written.splitlines()], said


@asynccontextmanager
async def speaking(*arguments: str, command: Sequence[str] = STDIO) -> AsyncIterator[Stdio]:
    """Run `mcp-probe stdio` with these arguments; what is left of it after the block is killed."""
    with trio.fail_after(PATIENCE_S):
        process = await trio.lowlevel.open_process(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith("MCP_PROBE_")},
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            async with process.stdin, process.stdout, process.stderr:
                yield Stdio(process)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
