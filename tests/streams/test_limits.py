"""A stream is whole or lost: how much may wait, how many there may be, and what goes first."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.core.budgets import SharedBytes

from ..support.calls import outcome
from ..support.probe import Probe, running
from .links import END, HttpLink, Link, is_method, linked, mark, sequences, shape, steps
from .tools import ALL, SLOW

FEW = 8
LITTLE = 64 * 1024


async def lost(link: Link, stream: str) -> Any:
    """The reason that the owner is told, by each of the two requests alike."""
    errors = [await link.error(link.resume(stream)), await link.poll(stream)]
    assert [error["code"] for error in errors] == [1003, 1003]
    assert errors[0] == errors[1]
    return errors[0]["data"]


def limits(probe: Probe) -> list[str]:
    return [event["limit"] for event in probe.events("limit.reached")]


def kept(probe: Probe) -> int:
    return sum(stream.replay.bytes for stream in probe.engine.streams)


@pytest.mark.parametrize("steps_there_are", [FEW - 2, FEW - 1])
async def test_as_many_messages_may_wait_as_create_says(
    transport: str, steps_there_are: int, autojump_clock: MockClock
) -> None:
    """Create was taken; of the rest there may be so many and no more."""
    async with running(toolsets=ALL, replay_messages=FEW) as probe, linked(probe, transport) as link:
        stream = await link.start("progress", {"steps": steps_there_are, "step_ms": 1000}, id="it", token="t")
        assert mark(link.heard[0])["maxMessages"] == FEW
        link = await link.back(20)
        if steps_there_are == FEW - 2:
            rest = await link.rest(link.resume(stream))
            assert sequences(rest) == list(range(2, FEW + 2)), "eight are there, the first of all has made room"
        else:
            assert await lost(link, stream) == {"reason": "overflow"}
            assert list(probe.engine.streams) == []


async def test_what_overflows_is_lost_whole_and_its_work_is_cancelled_at_once(
    transport: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=ALL, replay_messages=FEW) as probe, linked(probe, transport) as link:
        stream = await link.start("progress", {"steps": 60, "step_ms": 1000}, id="it", token="t")
        await link.drop()
        await trio.sleep(FEW + 0.5)
        assert outcome(probe)[0] is None
        await trio.sleep(1)
        assert outcome(probe) == ("disconnected", "disconnect", FEW + 1, False)
        assert probe.engine.streams._bytes == 0
        link = await link.another()
        assert await lost(link, stream) == {"reason": "overflow"}
        (event,) = probe.events("stream.lost")
        assert (event["why"], event["messages"]) == ("overflow", 9)
        dropped = probe.events("message.dropped")
        assert [event["method"] for event in dropped] == ["notifications/progress"]


async def test_bytes_are_bounded_likewise(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, replay_bytes=LITTLE) as probe, linked(probe, transport) as link:
        stream = await link.start("shout", {"times": 20, "bytes": 10_000}, id="it")
        assert mark(link.heard[0])["maxBytes"] == LITTLE
        link = await link.back(6.5)
        assert (await link.poll(stream))["status"] == "live"
        await trio.sleep(1)
        assert await lost(link, stream) == {"reason": "overflow"}
        assert kept(probe) == 0


async def test_what_was_taken_makes_room(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, replay_messages=FEW, stream_min_s=0) as probe, linked(probe, transport) as link:
        stream = await link.start("progress", {"steps": 50, "step_ms": 1000}, id="it", token="t")
        heard: list[Any] = []
        for _ in range(6):
            await trio.sleep(6.5)
            heard += await link.now()
            link = await link.back(1)
            await link.say(link.resume(stream))
        await trio.sleep(60)
        heard += await link.now()
        assert steps(heard) == list(range(1, 51))


async def test_a_resume_from_before_what_is_kept_is_refused_and_loses_nothing(
    transport: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=ALL, replay_messages=FEW, stream_min_s=0) as probe, linked(probe, transport) as link:
        stream = await link.start("progress", {"steps": 50, "step_ms": 1000}, id="it", token="t")
        await trio.sleep(20.5)
        link = await link.back(0)
        for refused in (await link.error(link.resume(stream, received=3)), await link.poll(stream, received=3)):
            assert refused["code"] == 1003
            assert refused["data"] == {"reason": "evicted", "firstKept": 14}
        await link.say(link.resume(stream, received=13))
        assert sequences(await link.now()) == list(range(14, 22))
        await link.cancel("it")
        assert END in shape(await link.now())


async def test_one_message_too_large_for_all_is_kept_but_nothing_beside_it(
    transport: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=ALL, replay_bytes=LITTLE) as probe, linked(probe, transport) as link:
        stream = await link.start("shout", {"times": 2, "bytes": 200_000}, id="it")
        link = await link.back(1.5)
        assert (await link.poll(stream))["pendingMessages"]
        await trio.sleep(1)
        assert await lost(link, stream) == {"reason": "overflow"}


async def test_so_many_streams_a_client_may_have(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, max_draft_streams_per_client=3) as probe, linked(probe, transport) as link:
        await link.start("simple_tool", {"delayMs": 0}, id="done")
        await link.until(is_method(END))
        for number in range(3):
            await link.start("progress", SLOW, id=f"it{number}")
        assert len(list(probe.engine.streams)) == 3, "the finished one has made room"
        error = await link.error(link.tool("chatty"))
        assert error["code"] == -32000
        assert limits(probe) == ["max_draft_streams_per_client"]
        async with linked(probe, transport) as other:
            await other.start("chatty")
        await trio.sleep(10)
        await link.now()
        await link.start("chatty")


async def test_those_that_wait_for_their_client_make_no_room(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, max_draft_streams_per_client=2) as probe, linked(probe, transport) as link:
        streams = [await link.start("simple_tool", {"delayMs": 1000}, id=f"it{number}") for number in range(2)]
        link = await link.back(10)
        assert (await link.poll(streams[0]))["status"] == "completed"
        if transport == "http":
            assert (await link.error(link.tool("chatty")))["code"] == -32000
        for number, stream in enumerate(streams):
            assert shape(await link.rest(link.resume(stream))) == [f"it{number}", END]
        await link.start("chatty")


async def test_a_client_of_a_pipe_is_who_has_the_secret(autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, max_draft_streams_per_client=2) as probe, linked(probe, "pipe") as link:
        stream = await link.start("simple_tool", {"delayMs": 1000}, id="a")
        await link.start("simple_tool", {"delayMs": 1000}, id="b")
        link = await link.back(10)
        await link.poll(stream)
        assert (await link.error(link.tool("chatty")))["code"] == -32000


async def test_so_many_streams_the_server_may_have(transport: str, autojump_clock: MockClock) -> None:
    async with (
        running(toolsets=ALL, max_draft_streams=3) as probe,
        linked(probe, transport) as one,
        linked(probe, transport) as two,
    ):
        await one.start("progress", SLOW)
        await two.start("progress", SLOW)
        await one.start("progress", SLOW)
        assert (await two.error(two.tool("chatty")))["code"] == -32000
        assert limits(probe) == ["max_draft_streams"]
        assert probe.engine.streams._bytes == kept(probe) > 0
        await trio.sleep(10)
        await two.start("chatty")


async def test_all_streams_together_are_bounded_and_finished_ones_go_first(
    transport: str, autojump_clock: MockClock
) -> None:
    async with (
        running(toolsets=ALL, draft_stream_bytes=2 * LITTLE) as probe,
        linked(probe, transport) as link,
        linked(probe, transport) as other,
    ):
        finished = await other.start("shout", {"times": 1, "bytes": 60_000}, id="done")
        await other.until(is_method(END))
        waiting = await link.start("shout", {"times": 1, "bytes": 60_000}, id="waits")
        growing = await link.start("shout", {"times": 30, "bytes": 20_000, "waitMs": 2000}, id="grows")
        link = await link.back(5)
        assert (await other.poll(finished))["code"] == -32602, "forgotten, and nothing was lost"
        assert (await link.poll(waiting))["status"] == "completed"
        assert (await link.poll(growing))["status"] == "live"
        await trio.sleep(10)
        assert await lost(link, growing) == {"reason": "server_full"}
        assert outcome(probe, "grows")[:2] == ("disconnected", "disconnect")
        assert (await link.poll(waiting))["pendingMessages"], "who waits is not the one that grows"
        assert [event["why"] for event in probe.events("stream.lost")] == ["server_full"]
        assert "draft_stream_bytes" in limits(probe)
        assert probe.engine.streams._bytes == kept(probe)
        assert shape(await link.rest(link.resume(waiting)))[-2:] == ["waits", END]


async def test_of_engines_with_one_bound_the_one_with_the_most_loses_a_stream(
    transport: str, autojump_clock: MockClock
) -> None:
    shared = SharedBytes(2 * LITTLE)
    async with (
        running(toolsets=ALL) as probe,
        running(toolsets=ALL) as other,
        linked(probe, transport) as link,
        linked(other, transport) as there,
    ):
        for each in (probe, other):
            each.engine.streams._shared = shared
        finished = await link.start("shout", {"times": 1, "bytes": 20_000}, id="done")
        await link.until(is_method(END))
        small = await link.start("shout", {"times": 2, "bytes": 20_000, "waitMs": 12_000}, id="small")
        large = await link.start("shout", {"times": 2, "bytes": 50_000, "waitMs": 12_000}, id="large")
        link = await link.back(13)
        growing = await there.start("shout", {"times": 4, "bytes": 20_000, "waitMs": 1000}, id="grows")
        await there.until(is_method(END))
        assert (await there.poll(growing))["status"] == "completed"
        assert (await link.poll(finished))["code"] == -32602, "forgotten, and nothing was lost"
        assert await lost(link, large) == {"reason": "server_full"}
        assert (await link.poll(small))["status"] == "live"
        assert limits(probe) == ["all_rooms:draft_stream_bytes"]
        assert shared.bytes == kept(probe) + kept(other) <= 2 * LITTLE
        for each in (probe, other):
            each.engine.streams.leave_shared()
        assert shared.bytes == 0


async def test_a_finished_stream_without_bytes_is_no_room_for_a_growing_one(autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL) as probe, linked(probe, "pipe") as link:
        shared = probe.engine.streams._shared = SharedBytes(LITTLE)
        await link.start("shout", {"times": 1, "bytes": 1000}, id="done")
        await link.until(is_method(END))
        (empty,) = probe.engine.streams
        empty.replay.forget(empty.replay.last)
        probe.engine.streams._note(empty)
        assert (empty.finished, empty.weight, shared.bytes) == (True, 0, 0)
        growing = await link.start("shout", {"times": 30, "bytes": 10_000, "waitMs": 1000}, id="grows")
        await trio.sleep(40)
        assert await lost(link, growing) == {"reason": "server_full"}
        assert limits(probe) == ["all_rooms:draft_stream_bytes"]
        assert shared.bytes == kept(probe) == probe.engine.streams._bytes


async def test_who_holds_most_loses_the_largest_unread_stream_and_not_who_grows(
    transport: str, autojump_clock: MockClock
) -> None:
    async with (
        running(toolsets=ALL, draft_stream_bytes=2 * LITTLE) as probe,
        linked(probe, transport) as link,
        linked(probe, transport) as other,
    ):
        small = await link.start("shout", {"times": 2, "bytes": 20_000, "waitMs": 12_000}, id="small")
        large = await link.start("shout", {"times": 2, "bytes": 50_000, "waitMs": 12_000}, id="large")
        link = await link.back(13)
        growing = await other.start("shout", {"times": 4, "bytes": 20_000, "waitMs": 1000}, id="grows")
        await other.until(is_method(END))
        assert (await other.poll(growing))["status"] == "completed"
        assert await lost(link, large) == {"reason": "server_full"}
        assert (await link.poll(small))["status"] == "live"
        assert [event["why"] for event in probe.events("stream.lost")] == ["server_full"]
        assert outcome(probe, "large")[:2] == ("disconnected", "disconnect")
        assert probe.engine.streams._bytes == kept(probe)


async def test_a_call_whose_stream_is_lost_under_its_reader_is_answered_on_the_connection(
    autojump_clock: MockClock,
) -> None:
    async with running(toolsets=ALL, draft_stream_bytes=LITTLE) as probe, linked(probe, "pipe") as link:
        await link.start("shout", {"times": 30, "bytes": 10_000, "waitMs": 1000}, id="it")
        await trio.sleep(40)
        answers = [message for message in await link.now() if message.get("id") == "it"]
        assert [(answer["error"]["code"], answer["error"]["data"]) for answer in answers] == [
            (1003, {"reason": "server_full"})
        ]


async def test_a_lost_stream_is_lost_also_to_its_reader_whose_connection_goes_on(
    transport: str, autojump_clock: MockClock
) -> None:
    async with (
        running(toolsets=ALL, draft_stream_bytes=LITTLE, stream_min_s=0) as probe,
        linked(probe, transport) as link,
    ):
        stream = await link.start("shout", {"times": 30, "bytes": 10_000, "waitMs": 1000}, id="it")
        await link.start("progress", {"steps": 30, "step_ms": 1000}, id="other", token="t")
        link2 = await link.back(0)
        await link2.say(link2.resume(stream, id="r"))
        await trio.sleep(20)
        heard = await link2.now()
        (answer,) = [message for message in heard if message.get("id") == "r"]
        assert (answer["error"]["code"], answer["error"]["data"]) == (1003, {"reason": "server_full"})
        assert END not in shape(heard)
        assert await lost(link2, stream) == {"reason": "server_full"}
        assert (await link2.ask(link2.request("ping")))["result"] == {}
        await trio.sleep(20)
        assert outcome(probe, "other")[0] == "completed"


# The end of the session, and of the server


@pytest.mark.parametrize("grace_s", [0.5, 30.0])
async def test_the_server_s_end_ends_every_stream_properly(
    transport: str, grace_s: float, autojump_clock: MockClock
) -> None:
    """Five times, as who comes first in a turn of the event loop is left to chance."""
    for _ in range(5):
        async with running(toolsets=ALL, grace_s=grace_s) as probe, linked(probe, transport) as link:
            await link.start("progress", {"steps": 10, "step_ms": 1000}, id="it", token="t")
            await trio.sleep(2.5)
            await probe.engine.drain()
            heard = await link.now()
            assert shape(heard)[-2:] == ["it", END]
            if grace_s < 10:
                assert heard[-2]["error"]["code"] == -32000
            else:
                assert steps(heard) == list(range(1, 11))


async def test_the_server_s_end_waits_for_calls_that_nobody_reads(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, grace_s=3.0) as probe, linked(probe, transport) as link:
        await link.start("progress", {"steps": 10, "step_ms": 1000}, id="long")
        await link.start("simple_tool", {"delayMs": 3000}, id="short")
        await link.drop()
        began = trio.current_time()
        await trio.sleep(1)
        await probe.engine.drain()
        assert trio.current_time() - began == pytest.approx(4.0, abs=0.1)
        assert outcome(probe, "short")[0] == "completed"
        assert outcome(probe, "long")[:2] == ("cancelled", "shutdown")


async def test_while_draining_nothing_is_resumed(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, grace_s=10.0) as probe, linked(probe, transport) as link:
        stream = await link.start("progress", {"steps": 10, "step_ms": 1000}, id="it")
        link = await link.back()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(probe.engine.drain)
            await trio.testing.wait_all_tasks_blocked()
            await link.say(link.resume(stream, id="r"))
            (refused,) = await link.now()
            assert refused["error"]["code"] == -32000
    assert probe.record()["outcome"] == "completed"


async def test_the_end_of_a_session_takes_its_streams_along(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "http") as link:
        assert isinstance(link, HttpLink)
        await link.start("progress", {"steps": 60, "step_ms": 1000}, id="it", token="t")
        await link.start("chatty", id="done")
        await trio.sleep(2)
        label = link.label
        assert await link.http.delete() == 204
        await link.now()
        assert list(probe.engine.streams) == []
        assert probe.engine.streams._bytes == 0
        assert outcome(probe)[:2] == ("cancelled", "session_end")
        events = [(event["session"], event["why"]) for event in probe.events("stream.lost")]
        assert (label, "session_ended") in events
        await trio.sleep(100)
        assert probe.record()["answered"] in (True, False)
