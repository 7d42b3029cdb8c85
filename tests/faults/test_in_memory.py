"""Lines and HTTP in memory, in virtual time, cut at random."""

from __future__ import annotations

import random

import pytest
import trio

from ..support.probe import Probe, running
from . import seeds
from .books import Job
from .client import Client
from .leaks import check_known, check_nothing_left, check_sizes
from .lines import Lines
from .links import NEVER
from .memory import MemoryHttp

SETTINGS = {"stream_min_s": 0, "max_draft_streams_per_client": 1000}


async def transport(where: str, probe: Probe, nursery: trio.Nursery, rng: random.Random) -> Lines | MemoryHttp:
    """A way to the server for one client."""
    if where == "lines":
        return Lines(probe.engine, nursery)
    http = MemoryHttp(probe.app, nursery)
    await http.begin(rng)
    return http


@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("where", ["lines", "http"])
async def test_stories(seed: int, where: str, autojump_clock, drops) -> None:
    rng, exact = random.Random(seed), seed % 2 == 0
    async with running(**SETTINGS) as probe, trio.open_nursery() as nursery:
        transports = [await transport(where, probe, nursery, rng) for _ in range(2)]
        clients = [
            Client(each, random.Random(rng.random()), exact=exact, first_id=1 + n * 10**6)
            for n, each in enumerate(transports)
        ]
        async with trio.open_nursery() as stories:
            for client in clients:
                stories.start_soon(client.story, 25)
        drops.count(f"{where} in memory", sum(client.drops for client in clients))
        check_sizes(probe.engine)
        for each in transports:
            await each.close()
        await trio.sleep(10)
        for client, each in zip(clients, transports, strict=True):
            if exact:
                client.check(probe.engine)
            else:
                client.check_bare(each.taken_unheard)
        check_known(probe.engine, clients)
        assert probe.events("stream.lost") == []
        await trio.sleep(10_000)
        check_nothing_left(probe.engine)


@pytest.mark.parametrize("seed", seeds(10))
async def test_who_does_not_come_back_leaves_nothing(seed: int, autojump_clock, drops) -> None:
    async with running(**SETTINGS) as probe, trio.open_nursery() as nursery:
        lines = Lines(probe.engine, nursery)
        client = Client(lines, random.Random(seed), exact=True)
        await client.wander(15)
        drops.count("lines in memory", client.drops)
        await lines.close()
        open_ones = [book for book in client.books.values() if not book.over]
        await trio.sleep(10_000)
        check_nothing_left(probe.engine)
        lost = {event["why"] for event in probe.events("stream.lost")}
        await client.come_too_late()
        await lines.close()
        assert {book.lost for book in open_ones} <= lost | {"forgotten"}
        assert lost <= {"abandoned"}
        outcomes = {record.outcome for record in probe.engine.records.newest_first()}
        assert outcomes <= {"completed", "cancelled", "disconnected", "tool_error"}


async def test_finished_streams_that_make_room_leave_nothing(autojump_clock) -> None:
    async with running(stream_min_s=0, max_draft_streams_per_client=3) as probe, trio.open_nursery() as nursery:
        lines = Lines(probe.engine, nursery)
        async with lines.link(NEVER, random.Random(0)) as link:
            for id in range(1, 21):
                await link.say(Job("chatty", {}).request(id))
                while (heard := await link.hear()) and heard.message.get("method") != "notifications/stream/end":
                    pass
                assert len([*probe.engine.streams]) <= 3
                check_sizes(probe.engine)
        await lines.close()
        await trio.sleep(10_000)
        check_nothing_left(probe.engine)
