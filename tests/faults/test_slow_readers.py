"""A client that stops reading: its stream is lost, announced so, and costs nothing any more."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from ..support.probe import Probe, running
from ..support.shown import newest
from .books import Job
from .client import Client
from .leaks import check_nothing_left
from .lines import Lines
from .links import NEVER, Cut, Transport
from .servers import gone, served
from .sockets import Https, WebSockets

SETTINGS = {"stream_min_s": 0, "replay_messages": 8}
FLOOD = Job("progress", {"steps": 100, "step_ms": 1})


@asynccontextmanager
async def lines() -> AsyncIterator[tuple[Probe, Transport]]:
    async with running(**SETTINGS) as probe, trio.open_nursery() as nursery:
        yield probe, Lines(probe.engine, nursery)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def websocket() -> AsyncIterator[tuple[Probe, Transport]]:
    async with served(send_buffer=4096, **SETTINGS) as (probe, port):
        yield probe, WebSockets(port, receive_buffer=4096)


@asynccontextmanager
async def http() -> AsyncIterator[tuple[Probe, Transport]]:
    async with served(send_buffer=4096, **SETTINGS) as (probe, port):
        transport = Https(port, receive_buffer=4096)
        await transport.begin(random.Random(0))
        yield probe, transport


class _Reader(Client):
    """Calls, hears that the stream begins, and hears nothing more."""

    async def begin_and_stall(self, how: str, job: Job) -> None:
        self._wanted = iter([job])
        async with self._transport.link(Cut(how=how), self._rng) as link:
            await self._call(link)
            while not self.books:
                heard = await link.hear()
                assert heard is not None
                await self._take(link, heard, last=True)
            link.cut()

    async def come_back(self) -> None:
        await self._come(NEVER, last=True)


async def until(condition) -> None:
    with trio.fail_after(60):
        while not condition():
            await wait_all_tasks_blocked(0.005)
            await trio.sleep(0.005)


@pytest.mark.parametrize("where", [lines, websocket, http])
@pytest.mark.parametrize("seed", range(3))
async def test_what_overflows_is_lost_and_its_owner_is_told(seed: int, where, clock) -> None:
    async with where() as (probe, transport):
        engine, how = probe.engine, "stall" if where is lines else "zombie"
        client = _Reader(transport, random.Random(seed), exact=True)
        await client.begin_and_stall(how, FLOOD)
        await until(lambda: newest(engine.records, 1)[0].outcome is not None)
        (book,) = client.books.values()
        (lost,) = probe.events("stream.lost")
        assert lost["why"] == "overflow"
        assert lost["messages"] == SETTINGS["replay_messages"] + 1
        (record,) = newest(engine.records, 1)
        assert record.outcome == "disconnected"
        assert record.steps_done < FLOOD.arguments["steps"], "or this test shows nothing"
        # while the connection is still there
        assert (engine.streams._bytes, [*engine.streams]) == (0, [])
        with trio.fail_after(60):
            await client.come_back()
        assert book.lost in (("overflow", "gone") if where is http else ("overflow",))
        await transport.close()
        await gone(clock)
        check_nothing_left(engine)
