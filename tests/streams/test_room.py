"""Where there is no room for all streams: who has to give, and that nothing is left behind."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from tests.support.pipes import MARK, STREAMS, Pipe, pipe
from tests.support.probe import running

SHORT = {"name": "simple_tool", "arguments": {"delayMs": 100}}
LARGE = {"name": "long_output", "arguments": {"blocks": 2, "chars": 14_000}}


async def began(client: Pipe, tool: dict[str, Any]) -> str:
    """Call a tool; returns the id of the stream."""
    await client.say(client.legacy("tools/call", tool))
    created = (await client.hear_until(lambda message: message.get("method") == "notifications/stream/create"))[-1]
    stream_id: str = created["params"]["stream"]["streamId"]
    return stream_id


async def answer(client: Pipe, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request = client.legacy(method, params)
    await client.say(request)
    return (await client.hear_until(lambda message: message.get("id") == request["id"]))[-1]


async def test_who_hoards_streams_has_to_give_and_not_who_comes(autojump_clock: MockClock) -> None:
    async with running(max_draft_streams=4) as probe:
        async with pipe(probe.engine) as hoarder:
            await hoarder.initialize(capabilities=STREAMS)
            hoard = [await began(hoarder, SHORT) for _ in range(4)]
            secret = hoarder.heard[-1]["params"]["_meta"][MARK]["secret"]
        await trio.sleep(1)
        async with pipe(probe.engine) as other:
            await other.initialize(capabilities=STREAMS)
            await began(other, SHORT)
            assert len(list(probe.engine.streams)) == 4
            polled = await answer(other, "stream/poll", {"streamId": hoard[0], "_meta": {MARK: {"secret": secret}}})
            assert polled["error"]["data"] == {"reason": "server_full"}


async def test_finished_streams_make_room_and_nobody_loses_one(autojump_clock: MockClock) -> None:
    async with running(draft_stream_bytes=128 * 1024, replay_bytes=128 * 1024) as probe:
        async with pipe(probe.engine) as hoarder:
            await hoarder.initialize(capabilities=STREAMS)
            await hoarder.say(hoarder.legacy("tools/call", LARGE))
            await hoarder.say(hoarder.legacy("tools/call", LARGE))
            await hoarder.say(hoarder.legacy("tools/call", LARGE))
            await hoarder.drop()
        await trio.sleep(1)
        held = probe.engine.streams._bytes
        assert held > 0
        async with pipe(probe.engine) as other:
            await other.initialize(capabilities=STREAMS)
            for _ in range(4):
                await began(other, LARGE)
                await other.hear_until(lambda message: message.get("method") == "notifications/stream/end")
        assert probe.events("stream.lost") == []
        records = [record for record in probe.events("call.settled") if record["session"] == "s2"]
        assert [record["outcome"] for record in records] == ["completed"] * 4


async def test_a_stream_without_room_for_its_beginning_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    async with running(draft_stream_bytes=64 * 1024, replay_bytes=64 * 1024) as probe, pipe(probe.engine) as client:
        await client.initialize(capabilities=STREAMS)
        (session,) = probe.engine.sessions
        # As if all the room there is were taken by streams that no rule takes it from.
        probe.engine.streams._bytes += 64 * 1024
        refused = await answer(client, "tools/call", SHORT)
        assert refused["error"]["code"] == -32000
        assert (session.machine.in_flight, session.calls) == (set(), {})
        assert list(probe.engine.streams) == []
        assert await client.call(client.legacy("ping")) == {}


async def test_whoever_resumed_hears_at_shutdown_what_became_of_the_call(autojump_clock: MockClock) -> None:
    async with running(grace_s=1, stream_min_s=0) as probe:
        async with pipe(probe.engine) as first:
            await first.initialize(capabilities=STREAMS)
            stream = await began(first, {"name": "simple_tool", "arguments": {"delayMs": 5000}})
            secret, call = first.heard[-1]["params"]["_meta"][MARK]["secret"], next(first.ids) - 1
        async with pipe(probe.engine, ids=iter(range(100, 200))) as second, trio.open_nursery() as nursery:
            await second.initialize(capabilities=STREAMS)
            about = {"streamId": stream, "_meta": {MARK: {"secret": secret, "received": 1}}}
            await second.say(second.legacy("stream/resume", about, id="resume"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(probe.engine.drain)
            heard = await second.hear_until(lambda message: message.get("id") == "resume")
    assert [message.get("id", message.get("method")) for message in heard] == [
        call,
        "notifications/stream/end",
        "resume",
    ]
    assert heard[0]["error"]["code"] == -32000
    assert heard[-1]["result"]["status"] == "completed"
