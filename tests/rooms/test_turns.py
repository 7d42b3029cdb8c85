"""All clients of a room take the turns of the address that opened it, whatever connection they come by."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.cli import app
from probe.server.listener.fair_queue import ConnectionTurns, FairQueue
from probe.settings import build

from ..sockets.peers import Dialer
from ..support.websocket import TEXT, frame
from .house import House, Room, house

HOSTILE, OTHER = ("198.51.100.7", 4711), ("203.0.113.9", 4711)


async def opened(here: House, client: tuple[str, int]) -> Room:
    """A room that a client opens."""
    made = await here.make()
    assert (await here.ask("GET", f"/r/{made['id']}/api/room", client=client)).status == 200
    return Room(here, made["id"], made["read_only"]["api"].partition("/r/")[2].removesuffix("/api"))


async def test_a_room_has_the_turns_of_its_opener_and_its_readers_have_others() -> None:
    async with house() as here:
        room, local = await opened(here, HOSTILE), await here.open()
        by = here.rooms.turns_by
        assert {by(f"/r/{room.id}{path}".encode()) for path in ("", "/mcp", "/ws?tools=all")} == {HOSTILE[0]}
        assert by(f"/r/{room.id}?x=/".encode()) == HOSTILE[0]
        assert by(f"/r/{room.reading}/dashboard".encode()) == (HOSTILE[0], "readers")
        # Whoever names a room that is not there stays with the own turns, as do the clients of a local room.
        others = ("/", "/new", "/r/", f"/r/{room.id}x/mcp", "/r/\xff/\xff", f"/x/{room.id}/mcp", f"/r/{local.id}/mcp")
        assert {by(path.encode("latin-1")) for path in others} == {None}
        await room.ask("DELETE", "/api/room")
        assert by(f"/r/{room.id}/mcp".encode()) is None


async def test_many_clients_of_one_room_delay_another_room_by_one_of_their_requests() -> None:
    async with house() as here:
        hostile, other = await opened(here, HOSTILE), await opened(here, OTHER)
        queue, order = FairQueue(), list[str]()

        async def request(room: Room, client: str) -> None:
            turns = ConnectionTurns(queue, client, (), here.rooms.turns_by)
            await turns.wait_request(f"/r/{room.id}/mcp".encode(), [])
            order.append(client)

        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(request, hostile, f"192.0.2.{number}")
            await trio.lowlevel.checkpoint()
            nursery.start_soon(request, other, "203.0.113.1")
        assert len(order) == 201
        assert order.index("203.0.113.1") <= 4


@pytest.mark.parametrize("version", ["1.1", "2"])
async def test_the_listener_of_a_server_with_rooms_gives_turns_so(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[Hashable, bool]] = []
    wait_turn = FairQueue.wait_turn

    async def noted(self: FairQueue, client: Hashable, *, message: bool = False) -> int:
        taken.append((client, message))
        return await wait_turn(self, client, message=message)

    monkeypatch.setattr(FairQueue, "wait_turn", noted)
    dialer = Dialer()
    settings = build({"port": 0, "rooms": "only", "judge": False, "trusted_proxies": "127.0.0.1"})
    async with app.running(settings) as server:
        port = urlsplit(server.urls[0]).port
        assert port is not None
        asked = partial(_asked, dialer, port, version)
        path = urlsplit(json.loads(await asked("/api/rooms", HOSTILE[0], b"{}"))["room"]).path
        await asked(f"{path}api/room", HOSTILE[0])
        taken.clear()
        await asked(f"{path}api/room", OTHER[0])
        await asked(f"{path}mcp", "192.0.2.1", b"{}")
        assert taken == [(HOSTILE[0], False)] * 2
        if version == "1.1":
            wire = await dialer.wire(port)
            upgrade = "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
            keys = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n"
            head = f"GET {path}ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: {OTHER[0]}\r\n{upgrade}{keys}\r\n"
            await wire.send(head.encode())
            await wire.read_until(b"\r\n\r\n")
            taken.clear()
            await wire.send(frame(TEXT, b"{}"))
            await wire.read()
            assert taken == [(HOSTILE[0], True)]
        await dialer.hang_up()
        await wait_all_tasks_blocked(0.01)


async def _asked(dialer: Dialer, port: int, version: str, path: str, client: str, body: bytes = b"") -> bytes:
    headers: list[Any] = [("x-forwarded-for", client), ("content-type", "application/json")]
    if version == "1.1":
        http1 = await dialer.http1(port)
        return (await http1.ask(path, headers=headers, body=body)).body
    http2 = await dialer.http2(port)
    stream = await http2.request(path, end=not body, headers=headers)
    if body:
        await http2.data(stream, body, end=True)
    return (await http2.answer(stream)).body
