"""Pages that no client reads: `max_unsent_bytes` counts them, and a large one is made while it is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.log.events import ServerState
from probe.web.paths import RESERVED

from ..support.api import LOCAL, page
from ..support.http import exchange, http_scope
from ..support.probe import Probe, running
from .strangers import ANN, BEN, reached, seen_from

MOST = 8 * 1024 * 1024
LARGE = 3_000_000


@dataclass
class Unread:
    """One request for a page whose answer is taken up to a part that is larger than `takes` bytes, or the first."""

    path: str
    takes: int = 0
    parts: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False
    asked: bool = False

    async def run(self, app: Any) -> None:
        await app(http_scope("GET", self.path, LOCAL), self._receive, self._send)
        self.over = True

    async def _receive(self) -> dict[str, Any]:
        if self.asked:
            await trio.sleep_forever()
        self.asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, event: Any) -> None:
        self.parts.append(event)
        if len(event.get("body", b"")) > self.takes and event["type"] == "http.response.body":
            await trio.sleep_forever()


async def fill(probe: Probe, count: int, size: int) -> None:
    """Load the pages, and add entries of about `size` bytes each to the log."""
    await page(probe, "/api")
    for _ in range(count):
        probe.engine.log.append(ServerState("x" * size))


@pytest.mark.parametrize(
    "path", ["/api/events?since=0&limit=500", "/api/events?before=9999&limit=500", "/api/search?by=entry"]
)
async def test_a_large_page_is_sent_in_pieces(path: str) -> None:
    async with running() as probe:
        await fill(probe, 300, 4000)
        async with exchange(probe.app, "GET", path, LOCAL) as answer:
            assert "content-length" not in answer.headers
            parts = [part async for part in answer.parts()]
    assert len(json.loads(b"".join(parts))["events"]) >= 300
    assert max(map(len, parts)) < RESERVED


async def test_pages_that_nobody_reads_have_a_place_each() -> None:
    """One address has a quarter of 8 MiB, and each page holds 64 KiB: the 33rd is refused before it is made."""
    async with running(max_unsent_bytes=MOST) as probe:
        await fill(probe, 300, 4000)
        async with trio.open_nursery() as nursery:
            for _ in range(32):
                nursery.start_soon(Unread("/api/events").run, seen_from(probe.app, ANN))
            await wait_all_tasks_blocked()
            assert probe.engine.services.unsent.held == 32 * RESERVED
            async with exchange(seen_from(probe.app, ANN), "GET", "/api/events", LOCAL) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (429, "5")
                assert "its share of max_unsent_bytes" in (await answer.json())["detail"]
            for path in ("/api/server", "/dashboard", "/interaction"):
                async with exchange(seen_from(probe.app, BEN), "GET", path, LOCAL) as answer:
                    assert answer.status not in (429, 503)
            assert reached(probe) == [("address_share:max_unsent_bytes", MOST // 4)]
            nursery.cancel_scope.cancel()
        assert probe.engine.services.unsent.held == 0
        assert await page(probe, "/api/server")


async def test_a_large_answer_without_room_is_refused_whole() -> None:
    async with running(max_unsent_bytes=MOST) as probe, trio.open_nursery() as nursery:
        await fill(probe, 1, LARGE)
        for _ in range(2):
            nursery.start_soon(Unread(f"/api/events/{probe.engine.log.last}").run, probe.app)
        await wait_all_tasks_blocked()
        async with exchange(probe.app, "GET", f"/api/events/{probe.engine.log.last}", LOCAL) as answer:
            assert (answer.status, answer.headers["content-type"]) == (503, "application/problem+json")
            assert "max_unsent_bytes" in (await answer.json())["detail"]
        nursery.cancel_scope.cancel()
    assert probe.engine.services.unsent.held == 0


async def test_a_large_piece_without_room_ends_the_answer_there() -> None:
    async with running(max_unsent_bytes=MOST) as probe, trio.open_nursery() as nursery:
        await fill(probe, 1, LARGE)
        readers = [Unread("/api/events.ndjson", takes=64 * 1024) for _ in range(3)]
        for reader in readers:
            nursery.start_soon(reader.run, probe.app)
            await wait_all_tasks_blocked()
        assert [reader.over for reader in readers] == [False, False, True]
        assert all(reader.parts[0]["status"] == 200 for reader in readers)
        assert readers[2].parts[-1]["more_body"], "it has no end"
        assert reached(probe) == [("max_unsent_bytes", MOST)]
        nursery.cancel_scope.cancel()
    assert probe.engine.services.unsent.held == 0
