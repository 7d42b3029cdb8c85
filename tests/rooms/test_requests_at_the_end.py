"""Requests of every kind that are in flight when their room ends: none uses what the room has let go of."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.http import http_scope
from .house import LOCAL, house, socket

SHOWN = [
    "/dashboard",
    "/dashboard/events?tail=1000&view=1&tables=calls,sessions,streams",
    "/api/server",
    "/api/counts",
    "/api/sessions",
    "/api/streams",
    "/api/calls",
    "/api/calls.csv",
    "/api/calls.ndjson",
    "/api/events?since=0&view=1",
    "/api/events.ndjson",
    "/api/judge",
    "/api/judge/s1",
    "/api/judge/s1/card",
    "/api/export",
    "/api/export.har",
    "/api/export.html",
]
CALL = {"steps": 1000, "step_ms": 100}
# Of the owner alone.
OWN = [
    "/dashboard/events?tail=10&filter=tool:progress",
    "/dashboard/events?tail=10&view=1&passes=tool:progress",
    "/api/search?filter=tool:progress",
    "/api/events?since=0&text=progress",
    "/api/export.mcpprobe",
    "/api/export.mcpprobe?client=s1",
]


class Request:
    """A request whose client takes `most` pieces of the answer, and no more until the room has ended.

    It waits for that and `late_s` seconds more in spite of its cancellation, and then goes on.
    """

    def __init__(self, target: str, most: int, late_s: float, headers: Any = LOCAL, message: Any = None) -> None:
        self.target = target
        self.statuses: list[int] = []
        self.room_ended = trio.Event()
        self._headers = headers
        self._message = message
        self._body_is_read = False
        self._most = most
        self._late_s = late_s

    async def _receive(self) -> dict[str, Any]:
        if self._body_is_read:
            await trio.sleep_forever()
        self._body_is_read = True
        body = b"" if self._message is None else json.dumps(self._message).encode()
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])
        self._most -= 1
        if self._most < 0:
            with trio.CancelScope(shield=True):
                await self.room_ended.wait()
                await trio.sleep(self._late_s)
                self._late_s = 0
        else:
            await trio.lowlevel.checkpoint()

    async def run(self, app: Any) -> None:
        """Send it."""
        method = "GET" if self._message is None else "POST"
        await app(http_scope(method, self.target, self._headers), self._receive, self._send)


@pytest.mark.parametrize(
    ("most", "late_s"), [(10**6, 0), (1, 0), (2, 5), (2, 20)], ids=["quick", "slow", "leaves late", "leaves too late"]
)
@pytest.mark.parametrize("passes", [0, 1, 2, 4, 8, 16, 32, 64, 128])
async def test_no_request_uses_what_its_room_has_let_go_of(
    passes: int, most: int, late_s: float, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(judge=True, max_feed_readers=1000) as here, trio.open_nursery() as nursery:
        room = await here.open()
        engine, legacy, call = room.engine, await room.legacy(), {"name": "progress", "arguments": CALL}
        for client in (legacy, room.modern()):
            for _ in range(3):
                await client.tool("progress", {"steps": 3, "step_ms": 0})
        shown = [f"/r/{id}{path}" for path in SHOWN for id in (room.id, room.reading)]
        requests = [Request(target, most, late_s) for target in [*shown, *(f"/r/{room.id}{path}" for path in OWN)]]
        mcp, message = f"/r/{room.id}/mcp", legacy.request("tools/call", call)
        requests.append(Request(mcp, most, late_s, legacy.headers, message))
        requests.append(Request(mcp, most, late_s, {**legacy.headers, "accept": "text/event-stream"}))
        async with socket(room) as pipe:
            await pipe.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
            for request in requests:
                nursery.start_soon(request.run, here.app)
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            assert (await room.ask("DELETE", "/api/room")).status == 204
            for request in requests:
                request.room_ended.set()
            assert len(here.rooms) == 0
            await trio.sleep(100)
        # Of a request that stays for too long nothing is taken away.
        assert late_s > 10 or not vars(engine.observer)
    assert [request.target for request in requests if not {*request.statuses} <= {200, 404}] == []
    # A client that reads at once is answered. The others may have gone before.
    assert late_s > 0 or all(request.statuses for request in requests)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
