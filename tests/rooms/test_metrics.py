"""The metrics of rooms, as `/metrics` has them."""

from __future__ import annotations

from trio.testing import MockClock, wait_all_tasks_blocked

from probe.rooms.metrics import families

from .house import REMOTE, House, house


def values(here: House) -> dict[str, float]:
    """The samples that are not 0, such as `rooms_ended_total owner`."""
    samples = [sample for family in families(here.rooms) for sample in family.samples]
    return {
        " ".join([sample.name.removeprefix("mcp_probe_"), *sample.labels.values()]): sample.value
        for sample in samples
        if sample.value
    }


async def test_rooms_are_counted_as_they_open_and_end(autojump_clock: MockClock) -> None:
    async with house(room_idle_s=60) as here:
        assert values(here) == {}
        owned, idle, kept = await here.open(), await here.open(), await here.open()
        await owned.ask("DELETE", "/api/room")
        assert values(here) == {"rooms": 2, "rooms_opened_total": 3, "rooms_ended_total owner": 1}
        client = await kept.legacy()
        async with client.get():
            await here.engine.clock.timer.sleep_until(here.engine.clock.now() + 61)
            assert (await idle.ask("GET", "/api/room")).status == 404
            assert values(here)["rooms_ended_total idle"] == 1
            await here.rooms.drain()
            await wait_all_tasks_blocked()
        assert values(here) == {
            "rooms_opened_total": 3,
            "rooms_ended_total owner": 1,
            "rooms_ended_total idle": 1,
            "rooms_ended_total shutdown": 1,
            "room_refusals_total unknown": 1,
        }


async def test_a_refusal_is_counted_with_its_reason() -> None:
    async with house(max_rooms=4, address_share=0.25, rooms_per_hour=1) as here:
        await here.ask("GET", "/r/AAAAAAAA/" + "A" * 40 + "/mcp")
        made = [await here.make() for _ in range(5)]
        for room in made[:2]:
            await here.ask("GET", f"/r/{room['id']}/api/room", client=REMOTE)
        for room in made[1:]:
            await here.ask("GET", f"/r/{room['id']}/api/room")
        for _ in range(2):
            await here.ask("GET", "/new", client=REMOTE)
        here.engine.draining = True
        await here.ask("GET", "/new")
        await here.ask("GET", f"/r/{made[4]['id']}/api/room")
        assert {name.removeprefix("room_refusals_total "): count for name, count in values(here).items()} == {
            "rooms": 4,
            "rooms_opened_total": 4,
            "unknown": 1,
            "address": 1,
            "full": 1,
            "rate": 1,
            "shutdown": 2,
        }


async def test_no_label_has_an_id_of_a_room() -> None:
    async with house() as here:
        room = await here.open()
        text = " ".join(values(here))
        assert not [part for part in (*room.id.split("/"), *room.reading.split("/")) if part in text]
