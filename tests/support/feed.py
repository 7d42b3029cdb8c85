"""A reader of the live feed, as a browser's EventSource is one: it dispatches events and remembers the last id."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio

from ..wire.event_source import EventSource
from .http import Answer, exchange
from .probe import Probe

LOCAL = {"host": "127.0.0.1:8000", "accept": "text/event-stream"}


@dataclass
class Watcher:
    """What came so far. `chunks` are the parts of the body, `after` the last event id behind which it resumes."""

    answer: Answer
    source: EventSource = field(default_factory=EventSource)
    chunks: list[bytes] = field(default_factory=list)

    async def next_chunk(self) -> None:
        """Read one more part of the body."""
        part = await anext(self.answer.parts())
        self.chunks.append(part)
        self.source.feed(part)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read until it holds."""
        while not condition():
            await self.next_chunk()

    async def has(self, seq: int) -> None:
        """Read until this entry, or a later one, is there."""
        await self.until(lambda: int(self.source.last_event_id.rpartition("-")[2] or 0) >= seq)

    def data(self, type: str) -> list[Any]:
        """The data of the events of a type; entries are of the type `message`."""
        return [json.loads(event.data) for event in self.source.events if event.type == type]

    @property
    def seqs(self) -> list[int]:
        """The numbers of the entries."""
        return [entry["seq"] for entry in self.data("message")]

    def rows(self, table: str) -> list[Any]:
        """The rows of a table, as they came."""
        return [row for event in self.data("rows") if event["table"] == table for row in event["rows"]]


@asynccontextmanager
async def watching(probe: Probe, query: str = "", after: str | None = None) -> AsyncIterator[Watcher]:
    """A reader that is connected while the block runs."""
    headers = LOCAL if after is None else {**LOCAL, "last-event-id": after}
    with trio.fail_after(1000):
        async with exchange(probe.app, "GET", f"/dashboard/events?{query}", headers) as answer:
            assert answer.status == 200, await answer.body()
            yield Watcher(answer)
