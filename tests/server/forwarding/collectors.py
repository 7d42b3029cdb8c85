"""A server that collects, on a real port, and what a process sends to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio_websocket import WebSocketConnection, wrap_client_stream

from probe.cli import app
from probe.engine.engine import Engine
from probe.log.event_log import Entry
from probe.settings import build
from probe.views.tables import TableName
from probe.wire.forwarding import SUBPROTOCOL

SECRET = "a-secret-of-the-tests"
HELLO = {"kind": "forward", "version": 1, "run": "r1", "program": "0.1.0", "pid": 7, "label": None, "at": 1.0}
PATIENCE_S = 30


class Collected:
    """One server: its engine, its address, and what is in its log."""

    def __init__(self, engine: Engine, url: str) -> None:
        self.engine = engine
        self.url = url
        self.port = int(url.rpartition(":")[2])

    def entries(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(entry.encoded()) for entry in self._all() if entry.fact.kind == kind]

    def rows(self, table: TableName) -> list[dict[str, Any]]:
        tables = self.engine.observer.tables
        return [json.loads(row) for row in tables.rows(table, tables.all(table))]

    async def until(self, met: Callable[[], object]) -> None:
        while not met():
            await self.engine.log.wait_beyond(self.engine.log.last)

    async def entry(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The entry of a kind that comes so many times."""
        await self.until(lambda: len(self.entries(kind)) >= count)
        return self.entries(kind)[count - 1]

    def _all(self) -> list[Entry]:
        return self.engine.log.since(0, 1_000_000).entries


@asynccontextmanager
async def collecting(**settings: Any) -> AsyncIterator[Collected]:
    """A server that collects logs."""
    with trio.fail_after(PATIENCE_S):
        async with app.running(build({"port": 0, "forward_secret": SECRET, **settings})) as server:
            yield Collected(server.engine, server.urls[0])


BEARER = ((b"Authorization", f"Bearer {SECRET}".encode()),)


@asynccontextmanager
async def socket_to(
    server: Collected, headers: Sequence[tuple[bytes, bytes]] = BEARER, subprotocol: str = SUBPROTOCOL
) -> AsyncIterator[WebSocketConnection]:
    """A process that has connected, and said nothing yet."""
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream, trio.open_nursery() as reader:
        yield await wrap_client_stream(
            reader, stream, "127.0.0.1", "/forward", subprotocols=[subprotocol], extra_headers=list(headers)
        )
        reader.cancel_scope.cancel()


async def greeted(socket: WebSocketConnection, **changes: Any) -> dict[str, Any]:
    await socket.send_message(json.dumps({**HELLO, **changes}))
    return dict(json.loads(await socket.get_message()))


def line(seq: int, **changes: Any) -> str:
    """A line of a log: a session that was closed."""
    context = dict.fromkeys(("exchange", "label", "call", "task", "stream"))
    entry = {"seq": seq, "at": 2.0 + seq, "mono": 1.0, "kind": "session.closed", "cause": None, "connection": "i1"}
    return json.dumps({**entry, **context, "session": "s1", "why": "test", **changes})
