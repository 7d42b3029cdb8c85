"""Several processes that make ids of rooms: their clocks differ, or their balancer does not hash."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from ..support.legacy import Legacy
from ..support.modern import Modern
from .house import LOCAL, Below, House, house

KEYS = {"request_state_keys": "0" * 64}


async def opens(here: House, id: str) -> bool:
    """True if a server has the room, or opens it."""
    return (await here.ask("GET", f"/r/{id}/api/room")).status == 200


@pytest.mark.parametrize("ahead_s", [45, -45])
async def test_a_clock_that_is_off_by_less_than_a_minute_makes_and_opens_rooms(ahead_s: int) -> None:
    async with house(**KEYS) as here, house(**KEYS) as other:
        other.clock.ahead_s = ahead_s
        assert await opens(here, (await other.make())["id"])
        assert await opens(other, (await here.make())["id"])


async def test_an_id_of_a_clock_that_is_ahead_opens_its_room_for_less_than_two_minutes(
    autojump_clock: MockClock,
) -> None:
    async with house(**KEYS) as here, house(**KEYS) as other:
        other.clock.ahead_s = 45
        soon, late = await other.make(), await other.make()
        await trio.sleep(104)
        assert await opens(here, soon["id"])
        await trio.sleep(2)
        assert not await opens(here, late["id"])


async def test_a_clock_that_is_set_back_opens_new_rooms_at_once_and_earlier_ids_soon(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(**KEYS) as here:
        early, spent, ended = await here.make(), await here.make(), await here.open()
        await ended.ask("DELETE", "/api/room")
        here.clock.ahead_s = -90
        assert await opens(here, (await here.make())["id"])
        assert not await opens(here, early["id"])
        assert "clock" in caplog.text
        await trio.sleep(31)
        assert await opens(here, early["id"])
        # Nor is anything accepted for ever, or twice.
        await trio.sleep(120)
        assert not await opens(here, spent["id"])
        assert not await opens(here, ended.id)


async def test_a_clock_that_is_set_forward_opens_new_rooms_at_once() -> None:
    async with house(**KEYS) as here:
        here.clock.ahead_s = 3600
        assert await opens(here, (await here.make())["id"])


async def test_a_client_of_a_balancer_that_does_not_hash_gets_one_clear_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with house(**KEYS) as here, house(**KEYS) as other:
        made = await here.make()
        client = Legacy(Below(here.app, made["id"]), "/mcp")
        await client.initialize()
        strayed = Legacy(Below(other.app, made["id"]), "/mcp")
        async with strayed.post(strayed.request("tools/list"), client.headers) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, "balancer must hash" in error["message"]) == (404, True)
        # With one process it is the session that is wrong.
        assert "no such session" in error["message"]
        assert len(other.rooms) == 0
        assert caplog.text.count("balancer") == 1
        # A script of a page that the other process has served.
        asset = {**LOCAL, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
        assert (await other.ask("GET", f"/r/{made['id']}/dashboard/assets/x.js", asset)).status == 404
        assert len(other.rooms) == 0
        assert caplog.text.count("balancer") == 1
        # A request that rests on no other one opens a room of its own: no process can know better.
        assert "tools" in await Modern(Below(other.app, made["id"]), "/mcp").call("tools/list")
        # Now both have the room: the other one refuses the session, and its operator reads why.
        async with strayed.post(strayed.request("tools/list"), client.headers) as answer:
            assert (answer.status, "initialize again" in (await answer.json())["error"]["message"]) == (404, True)
        assert "another process has that room, too" in caplog.text


@pytest.mark.parametrize(("method", "status"), [("tools/list", 200), ("tools/none", 404)])
async def test_a_session_that_a_modern_request_names_by_mistake_is_no_matter_of_the_balancer(
    method: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """2026-07-28 ignores it, so a 404 is about the method, and the request may be the first for its room."""
    async with house(**KEYS) as here:
        client = Modern(Below(here.app, (await here.make())["id"]), "/mcp")
        # RFC 9110 section 5.5: spaces around a value are no part of it.
        for version in (" 2026-07-28 ", "2026-07-28"):
            named = {"mcp-session-id": "of-another-server", "mcp-protocol-version": version}
            async with client.post(client.request(method), named) as answer:
                assert answer.status == status
        assert len(here.rooms) == 1
        assert "another process" not in caplog.text


async def test_one_process_without_keys_has_no_other_one() -> None:
    async with house() as here:
        made = await here.make()
        client = Legacy(Below(here.app, made["id"]), "/mcp")
        request = client.request("tools/list")
        async with client.post(request, {"mcp-session-id": "of-another-server"}) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, "balancer" in error["message"]) == (404, False)
        assert len(here.rooms) == 1


async def test_the_log_names_a_balancer_that_sends_requests_for_rooms_of_others(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async with house(**KEYS) as here, house(**KEYS) as other, house() as alone:
        made, own = await here.make(), await alone.make()
        assert await opens(here, made["id"])
        await trio.sleep(61)
        for _ in range(3):
            assert not await opens(other, made["id"])
        assert caplog.text.count("does not hash") == 1
        assert made["id"].partition("/")[2] not in caplog.text
        # One process has no balancer.
        assert not await opens(alone, own["id"])
        assert caplog.text.count("does not hash") == 1
