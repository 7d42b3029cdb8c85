"""A running engine with its endpoint, in memory and, with `autojump_clock`, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.cli.parts import live_judge
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.engine import Engine, Randomness
from probe.log.ndjson import OpenedFile
from probe.settings import Settings, build
from probe.tools.catalogue import TOOLSETS
from probe.web.paths import Paths

from .legacy import Legacy
from .modern import VERSION, Modern
from .shown import as_value, newest

EPOCH = 1_780_000_000.0


@dataclass
class Probe:
    """The engine under test and its ASGI application."""

    engine: Engine
    app: Paths

    async def client(
        self,
        revision: str = "2025-11-25",
        *,
        tools: str = "all",
        capabilities: dict[str, Any] | None = None,
    ) -> Legacy:
        """A new session."""
        client = Legacy(self.app, f"/mcp?tools={tools}")
        await client.initialize(revision, capabilities)
        return client

    async def of(self, revision: str, **asked: Any) -> Legacy | Modern:
        """A client of any revision; `asked` is what `client` and `modern` take by name."""
        return self.modern(**asked) if revision == VERSION else await self.client(revision, **asked)

    def modern(self, *, tools: str = "all", capabilities: dict[str, Any] | None = None) -> Modern:
        """A modern client, which declares all capabilities and the tasks extension unless told otherwise."""
        return Modern(self.app, f"/mcp?tools={tools}", capabilities)

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of some kinds, as the API shows them."""
        page = self.engine.log.since(0, 1_000_000)
        return [as_value(entry) for entry in page.entries if entry.fact.kind in kinds]

    def record(self) -> dict[str, Any]:
        """The newest call record."""
        return as_value(newest(self.engine.records, 1)[0])


@asynccontextmanager
async def running(
    settings: Settings | None = None,
    toolsets: Sequence[Toolset] = TOOLSETS,
    opened: OpenedFile | None = None,
    **values: Any,
) -> AsyncIterator[Probe]:
    """A probe that runs while the block does, or shows an `opened` file. `values` are settings by name.

    Raises `trio.TooSlowError` when the block lasts beyond any reason, so that no wait in a test is without bound:
    with nothing left to happen but keep-alive comments, virtual time would run on for ever.
    """
    numbers = count(1)
    settings = settings or build({"judge": False, **values})
    engine = Engine(
        settings,
        toolsets,
        epoch=EPOCH,
        randomness=Randomness(
            lambda: f"id-{next(numbers):04}-0123456789abcdef", lambda size: next(numbers).to_bytes(size, "big")
        ),
        opened=opened,
        new_judge=live_judge if settings.judge else None,
    )
    virtual = isinstance(trio.lowlevel.current_clock(), MockClock)
    with trio.fail_after(20_000 if virtual else 100):
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.serve)
            yield Probe(engine, Paths(engine))
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def draining(probe: Probe) -> AsyncIterator[trio.Event]:
    """The server shuts down while the block runs; the event tells when that is over."""
    over = trio.Event()

    async def drain() -> None:
        await probe.engine.drain()
        over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain)
        await wait_all_tasks_blocked()
        yield over
        nursery.cancel_scope.cancel()
