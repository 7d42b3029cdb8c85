"""Connections that carry everything: calls over a WebSocket and over standard streams, of one legacy session."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio

from .client import FIRST_ID, REVISIONS, WrongAnswerError
from .servers import Cores, Running, Server, processor_s
from .tools import Calls

_READ = 256 * 1024
_HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: mcp\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Piping:
    """How many calls are in flight, by turns, and for how long."""

    in_flight: tuple[int, ...] = (1, 32)
    warm_up_s: float = 1.0
    window_s: float = 2.0


@dataclass(slots=True)
class _Pipe:
    """Sends messages, and reads answers one by one."""

    send: Callable[[bytes], Awaitable[None]]
    receive: Callable[[], Awaitable[bytes]]
    cpu_s: Callable[[], float]
    numbers: int = FIRST_ID

    async def ask(self, message: dict[str, Any]) -> bytes:
        """One exchange."""
        await self.send(json.dumps(message).encode())
        return await self.receive()


async def over_websocket(running: Running, shape: Piping) -> dict[int, Calls]:
    """Calls by how many are in flight. Raises `WrongAnswerError`."""
    stream = await trio.open_tcp_stream("127.0.0.1", running.port)
    async with stream:
        frames = _Frames(stream)
        await stream.send_all(_HANDSHAKE.format(port=running.port).encode())
        await frames.read_head()
        return await _measure(_Pipe(frames.send, frames.receive, running.cpu_s), running.server, shape)


async def over_stdio(server: Server, cores: Cores, shape: Piping) -> dict[int, Calls]:
    """The same for a process of its own, on its standard streams."""
    async with _process(server, cores) as process:
        lines = _Lines(process)
        pipe = _Pipe(lines.send, lines.receive, lambda: processor_s(process.pid))
        return await _measure(pipe, server, shape)


async def _measure(pipe: _Pipe, server: Server, shape: Piping) -> dict[int, Calls]:
    names = {"name": "bench", "version": "1"}
    about = {"protocolVersion": REVISIONS["legacy"], "capabilities": {}, "clientInfo": names}
    answer = await pipe.ask({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
    if b'"result"' not in answer:
        raise WrongAnswerError(f"initialize was answered {answer[:300]!r}")
    await pipe.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    found = {}
    for in_flight in shape.in_flight:
        await _window(pipe, server, in_flight, shape.warm_up_s)
        found[in_flight] = await _window(pipe, server, in_flight, shape.window_s)
    return found


async def _window(pipe: _Pipe, server: Server, in_flight: int, seconds: float) -> Calls:
    """Keep so many calls in flight for so long; answers come in the order of the calls, as none of them waits."""
    params = {"name": server.echo.name, "arguments": server.echo.arguments}
    request = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params}).encode()
    sent: list[float] = []

    async def call() -> None:
        pipe.numbers += 1
        sent.append(time.perf_counter())
        await pipe.send(request.replace(b'"id": 0', b'"id": %d' % pipe.numbers, 1))

    start, cpu_before = time.perf_counter(), pipe.cpu_s()
    for _ in range(in_flight):
        await call()
    latencies: list[float] = []
    while len(latencies) < len(sent):
        body = await pipe.receive()
        if len(body) < 1024 or b'"result"' not in body:
            raise WrongAnswerError(f"{server.echo.name} was answered {body[:300]!r}")
        now = time.perf_counter()
        latencies.append((now - sent[len(latencies)]) * 1000)
        if now - start < seconds:
            await call()
    elapsed, cpu_s, count = time.perf_counter() - start, pipe.cpu_s() - cpu_before, len(latencies)
    latencies.sort()
    return Calls(count / elapsed, latencies[count // 2], latencies[count * 99 // 100], cpu_s / count * 1e6)


class _Frames:
    """WebSocket messages of a client, in one frame each (RFC 6455 section 5.2)."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def read_head(self) -> None:
        """The answer to the handshake. Raises `WrongAnswerError`."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            await self._more()
        if not self._buffer.startswith(b"HTTP/1.1 101 "):
            raise WrongAnswerError(f"the handshake was answered {bytes(self._buffer[:300])!r}")
        del self._buffer[: end + 4]

    async def send(self, message: bytes) -> None:
        """A masked text message; the mask is zero, so that the load has nothing to do for it."""
        size = len(message)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
        await self._stream.send_all(b"\x81" + length + b"\0\0\0\0" + message)

    async def receive(self) -> bytes:
        """The next text message; other frames are passed over."""
        while True:
            await self._have(2)
            opcode, size, at = self._buffer[0] & 0x0F, self._buffer[1] & 0x7F, 2
            if size >= 126:
                at = 4 if size == 126 else 10
                await self._have(at)
                size = int.from_bytes(self._buffer[2:at], "big")
            await self._have(at + size)
            body = bytes(self._buffer[at : at + size])
            del self._buffer[: at + size]
            if opcode == 1:
                return body

    async def _have(self, size: int) -> None:
        while len(self._buffer) < size:
            await self._more()

    async def _more(self) -> None:
        data = await self._stream.receive_some(_READ)
        if not data:
            raise WrongAnswerError("the server closed the connection")
        self._buffer += data


class _Lines:
    """Messages as lines."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._lines: list[bytes] = []
        self._rest = b""

    async def send(self, message: bytes) -> None:
        """A line."""
        assert self._process.stdin is not None
        await self._process.stdin.send_all(message + b"\n")

    async def receive(self) -> bytes:
        """The next line."""
        assert self._process.stdout is not None
        while not self._lines:
            data = await self._process.stdout.receive_some(_READ)
            if not data:
                raise WrongAnswerError("the server closed its standard output")
            *whole, self._rest = (self._rest + data).split(b"\n")
            self._lines = whole[::-1]
        return self._lines.pop()


@asynccontextmanager
async def _process(server: Server, cores: Cores) -> AsyncIterator[trio.Process]:
    command = ["stdio" if word == "serve" else word for word in server.command if word not in ("--port", "0")]
    piped: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with cores.server_started_here():
        process = await trio.lowlevel.open_process(command, env={**os.environ, **server.environment}, **piped)
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(5):
            await process.wait()
