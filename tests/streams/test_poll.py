"""`stream/poll` and `stream/poll/all`: true to what is unsent, and nothing is taken by them."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.probe import Probe, running
from .links import Link, linked, shape
from .tools import ALL, SLOW

LIVE, COMPLETED = "live", "completed"
NOTHING = {"waitMs": 0}


def told(status: str, pending: bool, request: bool, error: bool) -> dict[str, Any]:
    return {"status": status, "pendingMessages": pending, "hasRequest": request, "hasError": error}


async def polled(link: Link, stream: str, **claim: Any) -> dict[str, Any]:
    result = await link.poll(stream, **claim)
    assert result.pop("streamId") == stream
    return result


# An error response is the last but one of a stream, in the moment of its end: there is no live stream with one.
@pytest.mark.parametrize(
    ("tool", "arguments", "dropped_after_s", "polled_after_s", "expected"),
    [
        ("simple_tool", {"delayMs": 5000}, 0, 1, told(LIVE, pending=False, request=False, error=False)),
        ("progress", SLOW, 0, 2.5, told(LIVE, pending=True, request=False, error=False)),
        ("progress", SLOW, 2.5, 0, told(LIVE, pending=False, request=False, error=False)),
        ("ask", {"waitMs": 1000}, 0, 2, told(LIVE, pending=True, request=True, error=False)),
        ("ask", {"waitMs": 1000}, 2, 0, told(LIVE, pending=False, request=False, error=False)),
        ("simple_tool", {"delayMs": 0}, 0, 0, told(COMPLETED, pending=False, request=False, error=False)),
        ("fail", {"waitMs": 1000}, 2, 0, told(COMPLETED, pending=False, request=False, error=False)),
        ("progress", SLOW, 0, 10, told(COMPLETED, pending=True, request=False, error=False)),
        ("ask", {"waitMs": 1000}, 0, 20, told(COMPLETED, pending=True, request=True, error=False)),
        ("ask", {"waitMs": 1000}, 2, 20, told(COMPLETED, pending=True, request=False, error=False)),
        ("fail", {"waitMs": 1000}, 0, 2, told(COMPLETED, pending=True, request=False, error=True)),
        ("ask_and_fail", {"waitMs": 1000}, 0, 20, told(COMPLETED, pending=True, request=True, error=True)),
        ("ask_and_fail", {"waitMs": 1000}, 2, 20, told(COMPLETED, pending=True, request=False, error=True)),
    ],
)
async def test_every_combination_there_can_be(
    transport: str,
    tool: str,
    arguments: dict[str, Any],
    dropped_after_s: float,
    polled_after_s: float,
    expected: dict[str, Any],
    autojump_clock: MockClock,
) -> None:
    async with running(toolsets=ALL, client_request_s=10.0) as probe, linked(probe, transport) as link:
        stream = await link.start(tool, arguments, id="it", token="t")
        await trio.sleep(dropped_after_s)
        link = await link.back(polled_after_s)
        assert await polled(link, stream) == expected
        assert await polled(link, stream) == expected, "to ask changes nothing"
        (row,) = await link.poll_all()
        assert row == {"streamId": stream, **expected}


@pytest.mark.parametrize("tool", ["progress", "ask", "ask_and_fail", "fail"])
async def test_what_the_client_says_it_has_is_not_unsent(transport: str, tool: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, client_request_s=10.0, stream_min_s=0) as probe, linked(probe, transport) as link:
        stream = await link.start(tool, SLOW if tool == "progress" else NOTHING, id="it", token="t")
        link = await link.back(30)
        messages = [link.client.methods and None, *(await link.rest(link.resume(stream, received=0)))]
        for had in (*range(len(messages)), 1, 0):
            left = messages[had + 1 :]
            requests = [message for message in left if message and "method" in message and "id" in message]
            errors = [message for message in left if message and "error" in message]
            assert await polled(link, stream, received=had) == told(
                COMPLETED, pending=bool(left), request=bool(requests), error=bool(errors)
            )


@pytest.mark.parametrize("received", [8, 1000, 2**70])
async def test_nobody_has_what_was_never_sent(link: Link, received: int, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, token="t")
    link = await link.back(10)
    assert (await link.poll(stream, received=received))["code"] == -32602
    assert (await link.error(link.resume(stream, received=received)))["code"] == -32602
    assert (await polled(link, stream))["pendingMessages"], "and nothing changed"


@pytest.mark.parametrize("claim", [{"received": -1}, {"received": "1"}, {"received": True}, {"received": 1.0}])
async def test_what_makes_no_sense_is_refused(link: Link, claim: dict[str, Any], autojump_clock: MockClock) -> None:
    stream = await link.start("chatty")
    link = await link.back(10)
    assert (await link.poll(stream, **claim))["code"] == -32602
    assert (await link.error(link.resume(stream, **claim)))["code"] == -32602


async def test_a_poll_brings_no_message_and_reads_nothing(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    link = await link.back(2.5)
    del link.heard[:]
    await link.poll(stream)
    await link.poll_all()
    await trio.sleep(20)
    assert len(link.heard + await link.now()) == 2
    (open_stream,) = link.probe.engine.streams
    assert open_stream.reader is None
    assert len(await link.rest(link.resume(stream))) == 6


async def test_poll_all_has_the_streams_of_this_client_oldest_first(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link, linked(probe, transport) as stranger:
        mine = [await link.start("progress", SLOW, token="t1"), await link.start("chatty")]
        other = await stranger.start("progress", SLOW)
        mine.append(await link.start("ask", {"waitMs": 1000}))
        link = await link.back(2.5)
        assert [row["streamId"] for row in await stranger.poll_all()] == [other]
        rows = await link.poll_all()
        assert [row.pop("streamId") for row in rows] == mine
        assert rows == [
            told(LIVE, pending=True, request=False, error=False),
            told(COMPLETED, pending=False, request=False, error=False),
            told(LIVE, pending=True, request=True, error=False),
        ]
        for row, stream in zip(rows, mine, strict=True):
            assert await polled(link, stream) == row


async def test_poll_all_of_a_client_without_streams_is_empty(link: Link, autojump_clock: MockClock) -> None:
    assert await link.poll_all() == []
    assert (await link.ask(link.request("stream/poll/all")))["result"] == {"streams": []}
    assert shape(link.heard) == [2, 3] or len(link.heard) == 2
