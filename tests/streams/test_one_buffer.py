"""HTTP: `Last-Event-ID` on a GET, the same on a `stream/resume`, and `received` read one buffer: the same bytes."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.http import Event
from ..support.probe import Probe, running
from .links import END, POLL, HttpLink, linked, mark, shape, steps
from .tools import ALL, SLOW

MESSAGES = 7
"""Create, four notifications, result and end."""


async def http(link: Any) -> HttpLink:
    assert isinstance(link, HttpLink)
    return link


def payload(events: list[Event], label: str) -> list[tuple[str | None, str]]:
    """The ids and bytes of the messages of one stream."""
    return [(event.id, event.data) for event in events if event.data and (event.id or "").startswith(f"{label}-")]


async def read_again(link: HttpLink, way: str, stream: str, label: str, had: int) -> list[tuple[str | None, str]]:
    """Read a stream after position `had`, in one of three ways."""
    del link.events[:]
    if way == "get":
        await link.get(f"{label}-{had}")
    elif way == "header":
        await link.say(link.resume(stream), {"last-event-id": f"{label}-{had}"})
    else:
        await link.say(link.resume(stream, received=had))
    await link.now()
    return payload(link.events, label)


@pytest.mark.parametrize("had", range(MESSAGES))
async def test_three_readers_of_one_buffer(had: int, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, stream_min_s=0) as probe, linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", SLOW, id="it", token="t")
        await link.until(lambda message: message.get("method") == END)
        label = (link.events[0].id or "").rpartition("-")[0]
        first = payload(link.events, label)
        assert [id for id, _ in first] == [f"{label}-{place}" for place in range(1, MESSAGES + 1)]
        for way in ("get", "header", "received"):
            assert await read_again(link, way, stream, label, had) == first[had:]


@pytest.mark.parametrize("way", ["get", "header", "received"])
async def test_a_stream_that_lives_goes_on_after_each_of_them(
    probe: Probe, way: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", {"steps": 20, "step_ms": 1000}, id="it", token="t")
        await trio.sleep(2.5)
        await link.now()
        link = await http(await link.back(5))
        await read_again(link, way, stream, "p1", 2)
        await trio.sleep(60)
        await link.now()
        assert steps(link.heard) == list(range(2, 21)), "also the one that it has not seen although it was sent"


async def test_received_goes_before_the_header(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", SLOW, id="it", token="t")
        link = await http(await link.back(10))
        await link.say(link.resume(stream, received=5), {"last-event-id": "p1-2"})
        await link.now()
        assert [place for place, _ in payload(link.events, "p1")] == ["p1-6", "p1-7"]


@pytest.mark.parametrize("header", ["p9-1", "g1-0", "nonsense", "p2-3", ""])
async def test_an_event_of_another_stream_says_nothing_about_this(
    probe: Probe, header: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", SLOW, id="it", token="t")
        await link.start("chatty")
        await link.drop()
        link = await http(await link.back(10))
        await link.say(link.resume(stream), {"last-event-id": header})
        await link.now()
        assert [place for place, _ in payload(link.events, "p1")] == [f"p1-{place}" for place in range(2, 8)]


async def test_a_poll_hears_the_header_too(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", SLOW, id="it", token="t")
        link = await http(await link.back(10))
        for had, pending in ((1, True), (6, True), (7, False)):
            answer = await link.ask(link.request(POLL, link.about(stream)), {"last-event-id": f"p1-{had}"})
            assert answer["result"]["pendingMessages"] is pending


async def test_a_get_takes_over_and_is_taken_over(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", {"steps": 30, "step_ms": 1100}, id="it", token="t")
        await trio.sleep(4)
        had = len(await link.now()) + 1
        getter = await http(await link.another())
        await getter.get(f"p1-{had}")
        await trio.sleep(5)
        taken = await getter.now()
        assert await link.now() == []
        await link.say(link.resume(stream, id="r"))
        await trio.sleep(60)
        rest = await link.now()
        assert await getter.now() == []
        assert steps(link.heard[:had] + taken + rest) == list(range(1, 31))


@pytest.mark.parametrize(("min_s", "retry_ms"), [(5, 5000), (0.7, 700), (0.1, 500), (0, 500)])
async def test_the_event_stream_s_own_retry_says_min(min_s: float, retry_ms: int, autojump_clock: MockClock) -> None:
    """Or what holds for any stream, when that is more."""
    async with running(toolsets=ALL, stream_min_s=min_s) as probe, linked(probe, "http") as one:
        link = await http(one)
        stream = await link.start("progress", {"steps": 30, "step_ms": 1000}, token="t")
        assert link.events[0].retry == retry_ms
        link = await http(await link.back(5))
        await link.get("p1-1")
        await link.now()
        assert link.events[0].retry == retry_ms
        link = await http(await link.back(5))
        await link.say(link.resume(stream, id="r"))
        await link.now()
        assert link.events[0].retry == retry_ms
        link = await http(await link.back(5))
        await link.say({"jsonrpc": "2.0", "method": "stream/resume", "params": link.about(stream)})
        await link.now()
        assert link.events[0].retry == retry_ms


async def test_one_exchange_of_a_batch_carries_several_streams(probe: Probe, autojump_clock: MockClock) -> None:
    """2025-03-26 has batches; the marks tell the streams apart, and the event ids too."""
    async with linked(probe, "http", revision="2025-03-26") as one:
        link = await http(one)
        calls = [link.tool("progress", SLOW, id=f"it{n}", token=f"t{n}") for n in range(3)]
        await link.say([*calls, link.request("ping", None, "ping")])
        await trio.sleep(10)
        heard = await link.now()
        streams = {mark(message)["streamId"] for message in heard if mark(message)}
        assert len(streams) == 3
        for stream in streams:
            mine = [message for message in heard if mark(message).get("streamId") == stream]
            assert [mark(message)["sequence"] for message in mine] == list(range(1, 8))
        assert shape(heard).count("ping") == 1
