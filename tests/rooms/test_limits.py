"""What rooms may take: all together, of one address, and one of them."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
import trio
from trio.testing import MockClock

from probe.log.events import LimitReached
from probe.rooms.room import room_settings
from probe.settings import build

from ..support.http import exchange
from .house import LOCAL, REMOTE, Below, House, house

OTHER = ("203.0.113.9", 4711)


async def opened(here: House, client: tuple[str, int] = REMOTE) -> int:
    """The status of the first request for a new room."""
    made = await here.make()
    return (await here.ask("GET", f"/r/{made['id']}/api/room", client=client)).status


def limits_reached(here: House) -> list[str]:
    """The limits in the log of the process."""
    facts = [entry.fact for entry in here.engine.log.since(0, 1000).entries]
    return [fact.limit for fact in facts if isinstance(fact, LimitReached)]


async def test_one_room_too_many_is_refused_and_one_that_ends_makes_room() -> None:
    async with house(max_rooms=2, address_share=1) as here:
        first = await here.open()
        assert await opened(here) == 200
        made = await here.make()
        reply = await here.ask("GET", f"/r/{made['id']}/api/room")
        assert (reply.status, "max_rooms" in reply.json["detail"]) == (503, True)
        assert "retry-after" in reply.headers
        assert limits_reached(here) == ["max_rooms"]
        await first.ask("DELETE", "/api/room")
        assert (await here.ask("GET", f"/r/{made['id']}/api/room")).status == 200


async def test_one_address_has_its_share_of_the_rooms() -> None:
    async with house(max_rooms=8, address_share=0.25) as here:
        assert [await opened(here) for _ in range(3)] == [200, 200, 429]
        assert await opened(here, OTHER) == 200
        assert limits_reached(here) == ["address_share:max_rooms"]


@pytest.mark.parametrize("path", ["/new", "/api/rooms"])
async def test_one_address_makes_so_many_rooms_in_an_hour(path: str, autojump_clock: MockClock) -> None:
    async with house(rooms_per_hour=3) as here:

        async def made(client: tuple[str, int] = REMOTE) -> int:
            return (await here.ask("POST", path, client=client)).status

        assert [await made() < 400 for _ in range(4)] == [True] * 3 + [False]
        reply = await here.ask("POST", path, client=REMOTE)
        assert (reply.status, int(reply.headers["retry-after"])) == (429, 1201)
        assert await made(OTHER) < 400
        assert await made(("127.0.0.1", 50000)) < 400
        assert limits_reached(here) == ["rooms_per_hour"]
        await trio.sleep(1201)
        assert await made() < 400
        assert len(here.rooms) == 0


async def test_a_room_has_the_rate_of_one_address_whatever_the_addresses_of_its_clients() -> None:
    async with house(request_burst=5, requests_per_second=0.1) as here:
        room, other = await here.open(), await here.open()
        statuses = []
        for number in range(7):
            client = (f"198.51.100.{number}", 4711)
            statuses.append((await here.ask("GET", f"/r/{room.id}/api/room", client=client)).status)
        assert statuses == [200] * 5 + [429] * 2
        assert (await here.ask("GET", f"/r/{other.id}/api/room", client=OTHER)).status == 200
        # The log of the room has it, and that of no other.
        reached = [entry for entry in room.engine.log.since(0, 100).entries if entry.fact.kind == "limit.reached"]
        assert len(reached) == 1
        assert limits_reached(here) == []


async def test_a_room_has_its_share_of_the_connections() -> None:
    async with house(max_connections=20, room_share=0.1) as here:
        room, other = await here.open(), await here.open()
        client = await room.legacy()
        async with client.get(), exchange(room.app, "GET", "/dashboard/events", LOCAL):
            reply = await room.ask("GET", "/api/server")
            assert (reply.status, "room_share" in reply.json["detail"]) == (429, True)
            assert (await other.ask("GET", "/api/server")).status == 200
        assert (await room.ask("GET", "/api/server")).status == 200


async def test_the_owner_ends_a_room_that_is_full() -> None:
    async with house(max_connections=20, room_share=0.1) as here:
        room = await here.open()
        client = await room.legacy()
        async with client.get(), exchange(room.app, "GET", "/dashboard/events", LOCAL):
            assert [(await room.ask("GET", "/api/server")).status for _ in range(3)] == [429] * 3
            reached = [entry for entry in room.engine.log.since(0, 500).entries if entry.fact.kind == "limit.reached"]
            assert len(reached) == 1
            assert (await room.ask("DELETE", "/api/room")).status == 204


async def test_the_owner_and_the_readers_of_each_room_have_a_rate_at_the_same_time() -> None:
    async with house(max_rooms=2, address_share=1, request_burst=2, requests_per_second=0.1) as here:
        rooms = [await here.open(), await here.open()]
        statuses = list[int]()
        for number in range(3):
            for place, id in enumerate((rooms[0].id, rooms[0].reading, rooms[1].id, rooms[1].reading)):
                client = (f"198.51.100.{10 * number + place}", 4711)
                statuses.append((await here.ask("GET", f"/r/{id}/api/room", client=client)).status)
        assert statuses == [200] * 8 + [429] * 4


async def test_readers_do_not_take_the_places_or_the_rate_of_the_owner() -> None:
    async with house(request_burst=5, requests_per_second=0.1, max_connections=40, room_share=0.1) as here:
        room = await here.open()
        for id, client in ((room.reading, REMOTE), (room.id, OTHER)):
            statuses = [(await here.ask("GET", f"/r/{id}/api/room", client=client)).status for _ in range(6)]
            assert statuses == [200] * 5 + [429], id
        shown = Below(here.app, room.reading)
        async with exchange(shown, "GET", "/dashboard/events", LOCAL):
            assert (await room.show("/api/server")).status == 429
            assert (await room.ask("GET", "/api/server")).status == 200


def test_a_room_takes_the_largest_body() -> None:
    settings = build({"rooms": "only", "max_body_bytes": 32 * 1024 * 1024})
    assert room_settings(settings).limits.max_body_bytes == 32 * 1024 * 1024


def test_a_room_has_its_share_of_every_limit_that_all_clients_share_and_nothing_of_the_server() -> None:
    settings = build(
        {
            "rooms": "only",
            "room_share": 0.25,
            "audit_db": "/nowhere/audit.db",
            "toolhost_secret": "s" * 16,
            "forward_secret": "s" * 16,
            "request_state_keys": "0" * 64,
            "metrics": True,
        }
    )
    own = room_settings(settings)
    assert own.limits.max_replay_bytes == settings.limits.max_replay_bytes // 4
    assert own.limits.max_sessions == settings.limits.max_sessions // 4
    assert own.limits.max_body_bytes == settings.limits.max_body_bytes
    texts = (own.rooms, own.audit_db, own.toolhost_secret, own.forward_secret, own.request_state_keys)
    assert texts == ("off", "", "", "", "")
    assert not own.metrics
    # No limit goes below the least that works.
    assert room_settings(build({"room_share": 0.001})).limits.max_incoming_bytes == 32 * 1024 * 1024


async def test_an_idle_room_takes_no_more_than_150_kilobytes() -> None:
    async with house(judge=True, max_rooms=1000) as here:
        await here.open()
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(200):
                await here.rooms.find(here.rooms.new_id(None), None)
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(here.rooms) == 201
        assert taken / 200 < 150_000


async def test_rooms_that_have_ended_leave_nothing_behind() -> None:
    async with house(max_rooms=1000, address_share=1) as here:
        # What the first room of a process loads is not of a room.
        ended = await here.open()
        await ended.legacy()
        await ended.ask("DELETE", "/api/room")
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(50):
                room = await here.open()
                await room.legacy()
                await room.ask("DELETE", "/api/room")
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(here.rooms) == 0
        assert taken / 50 < 10_000
