"""A flood: many workers against one server at the same time, until its time is up, and what comes of it."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

import trio
from bench.http1 import BrokenResponseError, Connection

from . import wire


class Raw(Connection):
    """A connection on which more than requests can be sent."""

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self._send(data)

    def reset_on_close(self) -> None:
        """Closing sends RST instead of FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass(slots=True)
class Flood:
    """One flood on a port: until when, and what came of it. `prefix` stands before its paths, such as `/r/ROOM`.

    `clients` gives each worker an address of its own, `turns` tells apart what is done in turn.
    """

    port: int
    ends_at: float
    prefix: str = ""
    done: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    clients: count[int] = field(default_factory=lambda: count(1))
    turns: count[int] = field(default_factory=count)

    @property
    def over(self) -> bool:
        """Whether its time is up."""
        return trio.current_time() >= self.ends_at

    def note(self, status: int, body: bytes = b"") -> None:
        """An answer came."""
        kind = wire.fault(status, body)
        if kind is None:
            self.done += 1
        else:
            self.errors[kind] += 1

    async def ask(self, connection: Connection, request: bytes) -> tuple[int, bytes, str]:
        """One exchange, noted; its status, its body, and the session that it names."""
        head, body = await connection.exchange(request)
        self.note(head.status, body)
        return head.status, body, (head.get(b"mcp-session-id") or b"").decode()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Raw]:
        """A connection; that it breaks is noted, and ends the block."""
        try:
            async with Raw(self.port) as connection:
                yield connection
        except* (OSError, BrokenResponseError):
            self.errors["closed"] += 1
            # A server that refuses connections would otherwise be all that this process looks at.
            await trio.sleep(0.01)


Worker: TypeAlias = Callable[[Flood, wire.Client], Awaitable[None]]


async def run(flood: Flood, worker: Worker, workers: int) -> None:
    """So many at once, each again and again; at the end of its time everything is hung up.

    They come one after the other in the first half of it: many clients that all begin in one moment would measure how
    long their queue is.
    """
    pause_s = (flood.ends_at - trio.current_time()) / 2 / workers
    with trio.move_on_at(flood.ends_at):
        async with trio.open_nursery() as nursery:
            for _ in range(workers):
                nursery.start_soon(_again, flood, worker)
                await trio.sleep(pause_s)


async def _again(flood: Flood, worker: Worker) -> None:
    client = wire.Client.numbered(next(flood.clients), flood.prefix)
    while not flood.over:
        await worker(flood, client)
