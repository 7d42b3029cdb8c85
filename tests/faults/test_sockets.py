"""Real sockets of a real listener, cut at random."""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from . import seeds
from .client import Client
from .leaks import check_known, check_nothing_left, check_sizes
from .servers import gone, served
from .sockets import Https, WebSockets

SETTINGS = {"stream_min_s": 0, "max_draft_streams_per_client": 1000}


@pytest.mark.parametrize("exact", [True, False], ids=["counts", "bare"])
@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("seed", seeds(3))
async def test_stories(seed: int, transport: str, exact: bool, clock: MockClock, drops) -> None:
    rng = random.Random(seed)
    # who keeps no count may have missed a question, and waits until that is given up
    async with served(**SETTINGS, client_request_s=300.0 if exact else 0.5) as (probe, port):
        transports, clients = [], []
        for n in range(2):
            transports.append(Https(port) if transport == "http" else WebSockets(port))
            clients.append(Client(transports[n], random.Random(rng.random()), exact=exact, first_id=1 + n * 10**6))
            if transport == "http":
                await transports[n].begin(rng)
        with trio.fail_after(60):
            async with trio.open_nursery() as stories:
                for client in clients:
                    stories.start_soon(client.story, 20)
        drops.count(transport, sum(client.drops for client in clients))
        check_sizes(probe.engine)
        for each in transports:
            await each.close()
        await wait_all_tasks_blocked(0.02)
        if exact:
            for client in clients:
                client.check(probe.engine)
        check_known(probe.engine, clients)
        assert probe.events("stream.lost") == []
        await gone(clock)
        check_nothing_left(probe.engine)


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("seed", seeds(2))
async def test_who_does_not_come_back_leaves_nothing(seed: int, transport: str, clock: MockClock, drops) -> None:
    async with served(**SETTINGS) as (probe, port):
        rng = random.Random(seed)
        sockets = Https(port) if transport == "http" else WebSockets(port)
        client = Client(sockets, rng, exact=True)
        if transport == "http":
            await sockets.begin(rng)
        with trio.fail_after(60):
            await client.wander(15)
        drops.count(transport, client.drops)
        await sockets.close()
        await gone(clock)
        check_nothing_left(probe.engine)
