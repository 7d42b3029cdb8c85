"""Subscriptions of 2026-07-28 where all of them share one channel with everything else."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.inside import engine_tasks
from ..support.listening import ACKNOWLEDGED
from ..support.modern import SUBSCRIPTION_ID
from ..support.pipes import Pipe, pipe
from ..support.probe import Probe

TOOLS = {"toolsListChanged": True}
CLOCK = {"resourceSubscriptions": ["probe://clock"]}
IDS: list[Any] = [70, "70", "ear"]


def listen(client: Pipe, id: Any, asked: dict[str, Any]) -> dict[str, Any]:
    return client.modern("subscriptions/listen", {"notifications": asked}, id=id)


def of(message: dict[str, Any]) -> Any:
    return (message.get("params") or message.get("result"))["_meta"].get(SUBSCRIPTION_ID)


async def announce(client: Pipe) -> None:
    await client.say(client.modern("tools/call", {"name": "announce_list_change", "arguments": {}}))


@pytest.mark.proves(
    "2026-07-28/subscriptions/2",
    "2026-07-28/subscriptions/3",
    "2026-07-28/subscriptions/8",
    "2026-07-28/subscriptions/9",
)
async def test_each_subscription_begins_with_its_acknowledgement_and_names_itself(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """Per id, not per channel: those of one are among the messages of the others."""
    async with pipe(probe.engine) as client:
        for id in IDS:
            await client.say(listen(client, id, {**TOOLS, **CLOCK}))
            await announce(client)
            await client.hear_until(lambda message: "result" in message)
        await trio.sleep(3)
        await client.hear_until(lambda message: message.get("method") == "notifications/resources/updated")
        told = [message for message in client.heard if "method" in message]
        for id in IDS:
            mine = [message for message in told if (of(message), type(of(message))) == (id, type(id))]
            assert [message["method"] == ACKNOWLEDGED for message in mine] == [True] + [False] * (len(mine) - 1)
            assert mine[1]["method"] == "notifications/tools/list_changed"
        assert told.index(next(message for message in told if of(message) == "ear")) > 2, "others came before it"


@pytest.mark.proves("2026-07-28/subscriptions/10", "2026-07-28/cancellation/9", "2026-07-28/cancellation/11")
async def test_a_cancelled_subscription_ends_alone_without_a_result(probe: Probe, autojump_clock: MockClock) -> None:
    async with pipe(probe.engine) as client:
        for id in IDS:
            await client.say(listen(client, id, TOOLS))
            await client.hear()
        await client.cancel("70", "heard enough")
        begun = len(client.heard)
        await announce(client)
        await client.hear_until(lambda message: "result" in message)
        await wait_all_tasks_blocked()
        later = client.heard[begun:]
        assert sorted(repr(of(message)) for message in later if "method" in message) == ["'ear'", "70"]
        assert [message for message in later if message.get("id") == "70"] == []


async def end(probe: Probe, client: Pipe) -> list[dict[str, Any]]:
    """What the client hears when the server shuts down, to the end of the connection."""
    heard = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(probe.engine.drain)
        try:
            while True:
                heard.append(await client.hear())
        except EOFError:
            pass
    return heard


@pytest.mark.proves(
    "2026-07-28/cancellation/1",
    "2026-07-28/cancellation/8",
    "2026-07-28/subscriptions/4",
    "2026-07-28/subscriptions/5",
    "2026-07-28/subscriptions/7",
)
async def test_the_server_tears_a_subscription_down_with_a_result_and_a_cancellation(
    probe: Probe, autojump_clock: MockClock
) -> None:
    async with pipe(probe.engine) as client:
        for id in IDS:
            await client.say(listen(client, id, TOOLS))
            await client.hear()
        heard = await end(probe, client)
        for id in IDS:
            result, cancelled = [message for message in heard if repr(_named(message)) == repr(id)]
            assert (repr(result["id"]), result["result"]["resultType"]) == (repr(id), "complete")
            assert repr(of(result)) == repr(id)
            assert cancelled["method"] == "notifications/cancelled"
        assert len(heard) == 2 * len(IDS)
        assert client.ending is None or client.ending.code == 1001


def _named(message: dict[str, Any]) -> Any:
    return message["id"] if "id" in message else message["params"]["requestId"]


@pytest.mark.proves("2026-07-28/cancellation/2", "2026-07-28/cancellation/8")
async def test_the_server_cancels_nothing_else(probe: Probe, autojump_clock: MockClock) -> None:
    """A call that is cut off, one that ends, and a subscription that its client has ended."""
    async with pipe(probe.engine) as client:
        await client.say(listen(client, "ended", TOOLS))
        await client.hear()
        await client.cancel("ended")
        slow = {"name": "progress", "arguments": {"steps": 100, "step_ms": 1000}}
        await client.say(client.modern("tools/call", slow, id="cut off"))
        await announce(client)
        await client.hear_until(lambda message: "result" in message)
        heard = await end(probe, client)
        assert [message["error"]["code"] for message in heard if message.get("id") == "cut off"] == [1002]
        assert [message for message in client.heard if message.get("method") == "notifications/cancelled"] == []


@pytest.mark.proves("2026-07-28/subscriptions/11", "2026-07-28/cancellation/10")
async def test_nothing_of_a_subscription_outlives_its_connection(probe: Probe, autojump_clock: MockClock) -> None:
    async with pipe(probe.engine) as client:
        await client.say(listen(client, 1, {**TOOLS, **CLOCK}))
        await client.hear()
    idle = engine_tasks()
    assert not len(probe.engine.modern.listeners)
    async with pipe(probe.engine) as again:
        await announce(again)
        await again.hear_until(lambda message: "result" in message)
        await trio.sleep(20)
        await again.call(again.modern("tools/list"))
        assert [message for message in again.heard if "method" in message] == []
        await again.say(listen(again, 1, TOOLS))
        assert (await again.hear())["method"] == ACKNOWLEDGED
    await wait_all_tasks_blocked()
    assert engine_tasks() == idle
