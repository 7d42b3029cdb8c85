"""A host that does not read: what waits for it is bounded, and nobody else waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.hosts import PLAIN, Call, Host, calling, connected, hosting
from ..support.modern import Modern
from ..support.probe import Probe

QUEUE = 64 * 1024
OTHER = "instance-of-another-host"


def stuck(host: Host) -> None:
    host.reads = trio.Event()


def padded(size: int) -> dict[str, Any]:
    """Arguments that make a message of about so many bytes."""
    return {"padding": "x" * size}


async def test_what_waits_for_a_host_is_bounded_and_then_calls_fail_at_once(autojump_clock: MockClock) -> None:
    # What is refused takes no place: with seven of them, the next would be refused for that.
    async with hosting(host_queue_bytes=QUEUE, max_host_dispatches=7) as (probe, host):
        client, calls = probe.modern(tools="hosts"), []
        stuck(host)
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                calls.append(Call(client, client.request("tools/call", call_of("demo__plain", 10_000))))
                nursery.start_soon(calls[-1].run)
                await wait_all_tasks_blocked()
            refused = [call for call in calls if call.over.is_set()]
            assert calls[6:] == refused, "six of them fit, and nobody waits for a place in the queue"
            for call in refused:
                assert (call.failure["code"], call.failure["retryable"]) == ("host_busy", True)
                assert "demo reads too slowly" in call.failure["message"]
                assert "(host_queue_bytes)" in call.failure["message"]
            assert {event["limit"] for event in probe.events("limit.reached")} == {"host_queue_bytes"}
            host.reads.set()
            for _ in range(6):
                await host.answer((await host.dispatched())[0], text="done")
        assert [call.result["content"][0]["text"] for call in calls[:6]] == ["done"] * 6
        async with calling(client, "demo__plain", padded(10_000)):
            await host.answer((await host.dispatched())[0], text="there is room again")


def call_of(name: str, size: int) -> dict[str, Any]:
    return {"name": name, "arguments": padded(size)}


async def test_a_message_that_is_larger_than_the_queue_may_wait_alone(autojump_clock: MockClock) -> None:
    async with hosting(host_queue_bytes=QUEUE) as (probe, host):
        client = probe.modern(tools="hosts")
        async with calling(client, "demo__plain", padded(2 * QUEUE)) as call:
            dispatch, params = await host.dispatched()
            assert params["arguments"] == padded(2 * QUEUE)
            await host.answer(dispatch, text="done")
        assert call.result["content"][0]["text"] == "done"


async def test_nobody_else_is_delayed(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), connected(probe.app, OTHER) as other:
        await other.register("other", [PLAIN])
        client = probe.modern(tools="hosts,probe")
        stuck(host)
        async with calling(client, "demo__plain") as slow:
            began = trio.current_time()
            async with calling(client, "other__plain") as quick:
                await other.answer((await other.dispatched())[0], text="done")
            assert quick.result["content"][0]["text"] == "done"
            assert (await other.ask("ping"))["result"] == {}
            await client.tool("simple_tool", {"delayMs": 0})
            assert trio.current_time() == began
            await slow.over.wait()
            assert trio.current_time() - began == 30
        assert slow.result["_meta"]["mcp-probe/deadline"]["deadline"] == "idle"


async def test_what_is_cancelled_while_it_waits_is_never_sent(autojump_clock: MockClock) -> None:
    async with hosting(max_host_dispatches=3) as (probe, host):
        client = probe.modern(tools="hosts")
        stuck(host)
        async with (
            calling_next(client, 1) as first,
            calling_next(client, 2) as second,
            calling_next(client, 3) as third,
        ):
            # The first is on its way already, so that the host must be told.
            first.leave()
            second.leave()
            await wait_all_tasks_blocked()
            stopped = [(event["dispatch"], event["how"]) for event in probe.events("dispatch.stopped")]
            assert stopped == [(second_id(probe), "never_sent")]
            async with calling_next(client, 4) as fourth:
                host.reads.set()
                heard = await host.hear_all()
                n = [message["params"].get("arguments", {}).get("n", "stop") for message in heard]
                assert n == [1, 3, "stop", 4]
                for message in heard:
                    if "id" in message:
                        await host.answer(message["id"], text=str(message["params"]["arguments"]["n"]))
            assert fourth.result["content"][0]["text"] == "4"
        assert third.result["content"][0]["text"] == "3"
        assert len(probe.events("dispatch.cancelled")) == 1


@asynccontextmanager
async def calling_next(client: Modern, n: int) -> AsyncIterator[Call]:
    """A call that is in the queue before anything else happens."""
    async with calling(client, "demo__plain", {"n": n}) as call:
        await wait_all_tasks_blocked()
        yield call


def second_id(probe: Probe) -> str:
    return str(probe.events("dispatch.sent")[1]["dispatch"])


async def test_a_queue_that_is_full_still_takes_what_stops_the_work(autojump_clock: MockClock) -> None:
    async with hosting(host_queue_bytes=QUEUE) as (probe, host):
        client = probe.modern(tools="hosts")
        async with calling(client, "demo__plain") as runs:
            dispatch, _ = await host.dispatched()
            stuck(host)
            async with calling(client, "demo__plain", padded(2 * QUEUE)) as large:
                await wait_all_tasks_blocked()
                runs.leave()
                await runs.over.wait()
                async with calling(client, "demo__plain") as refused:
                    pass
                assert refused.failure["code"] == "host_busy"
                host.reads.set()
                sent, _ = await host.dispatched()
                assert (await host.cancelled())["dispatch"] == dispatch
                await host.answer(sent, text="done")
            assert large.result["content"][0]["text"] == "done"


async def test_answers_that_a_host_does_not_read_stop_its_own_messages(autojump_clock: MockClock) -> None:
    """No memory for answers grows without end: while they wait, what asks for more of them does too."""
    async with hosting() as (probe, host):
        stuck(host)
        for _ in range(100):
            await host.send("x" * 10_000)
        await wait_all_tasks_blocked()
        waiting = host.to_server.statistics().current_buffer_used
        said = [event for event in probe.events("host.message") if event["rpc"] == "error"]
        # Each answer has some 150 bytes, and 64 KiB of them may wait.
        assert (waiting, len(said)) == (0, 100)
        for _ in range(900):
            await host.send("x")
        await wait_all_tasks_blocked()
        assert host.to_server.statistics().current_buffer_used > 0
        host.reads.set()
        for _ in range(1000):
            assert "error" in await host.hear()
        assert host.to_server.statistics().current_buffer_used == 0
        async with calling(probe.modern(tools="hosts"), "demo__plain"):
            await host.answer((await host.dispatched())[0], text="done")


async def test_a_server_that_ends_waits_a_little_for_the_host_to_hear_of_it(autojump_clock: MockClock) -> None:
    async with hosting(grace_s=1) as (probe, host):
        async with calling(probe.modern(tools="hosts"), "demo__plain"):
            dispatch, _ = await host.dispatched()
            stuck(host)
            await probe.engine.drain()
        await trio.sleep(1.9)
        host.reads.set()
        assert (await host.cancelled())["dispatch"] == dispatch
        assert await host.hear_close() == (1001, "the server is shutting down")


async def test_a_server_that_ends_does_not_wait_long_for_a_host_that_does_not_read(
    autojump_clock: MockClock,
) -> None:
    async with hosting(grace_s=1) as (probe, host):
        async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
            await host.dispatched()
            stuck(host)
            began = trio.current_time()
            await probe.engine.drain()
            assert trio.current_time() - began == 1
            await call.over.wait()
        await trio.sleep(2.1)
        # The close waits for the socket, whose patience is the listener's business.
        assert [event["by"] for event in probe.events("host.closed")] == ["the server is shutting down"]
        host.reads.set()
        await probe.app.wait_idle()
