"""`resumeInterval` and how long what has ended is kept: each to the edge, in virtual time."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.probe import Probe, running
from .links import CREATE, END, Link, is_method, linked, sequences, shape
from .tools import ALL, ANSWERS, SLOW

MIN, MAX, KEEP, IDLE = 5.0, 3600.0, 300.0, 1800.0
EDGE = 2**-10  # seconds: a sum with it is exact, and less than a millisecond
LONG = {"client_request_s": 20_000.0}
"""Settings with which `ask` waits for its answer beyond every interval."""


async def error_of_resume(link: Link, stream: str, **claim: Any) -> tuple[int, Any]:
    error = await link.error(link.resume(stream, **claim))
    return error["code"], error.get("data")


def bytes_kept(probe: Probe) -> int:
    return probe.engine.streams._bytes


# min


async def test_a_resume_is_too_early_until_min_after_the_disconnect(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    await trio.sleep(0.75)
    await link.drop()
    dropped = trio.current_time()
    link = await link.another()
    assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": 5000})
    await trio.sleep_until(dropped + 1.25)
    assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": 3750})
    await trio.sleep_until(dropped + MIN - EDGE)
    assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": 1})
    await trio.sleep_until(dropped + MIN)
    heard = await link.rest(link.resume(stream, id="r"))
    assert sequences(heard) == [2, 3, 4, 5, 6, 7], "what was refused took nothing"


@pytest.mark.parametrize("away_s", [0.0001, 0.12345, 1.99951, 3.3333, 4.9994, 4.99999])
async def test_who_waits_as_long_as_the_error_says_is_not_too_early_again(
    link: Link, away_s: float, autojump_clock: MockClock
) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    link = await link.back(away_s)
    code, data = await error_of_resume(link, stream)
    assert code == 1004
    await trio.sleep(data["retryAfterMs"] / 1000)
    assert (await link.ask(link.resume(stream)))["result"]["status"] == "completed"


async def test_beside_a_reader_min_counts_from_when_it_attached(link: Link, autojump_clock: MockClock) -> None:
    began = trio.current_time()
    stream = await link.start("progress", {"steps": 30, "step_ms": 1100}, id="it", token="t")
    other = await link.another()
    await trio.sleep_until(began + MIN - EDGE)
    assert await error_of_resume(other, stream) == (1004, {"retryAfterMs": 1})
    await trio.sleep_until(began + MIN)
    await other.say(other.resume(stream, id="r"))
    assert await other.now() == [], "the first has read all there was"
    await trio.sleep_until(began + 2 * MIN - EDGE)
    assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": 1}), "from the attachment of the second"
    await trio.sleep_until(began + 2 * MIN)
    await link.say(link.resume(stream, id="r2"))
    await trio.sleep(1.5)
    assert shape(await link.now())[-1] == "notifications/progress"


async def test_min_counts_from_the_last_disconnect(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", {"steps": 30, "step_ms": 1000}, id="it", token="t")
    link = await link.back()
    await link.say(link.resume(stream, id="r"))
    link = await link.back(MIN - EDGE)
    assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": 1})
    await trio.sleep(EDGE)
    await link.say(link.resume(stream, id="r2"))
    await trio.sleep(1.5)
    assert shape(await link.now())[-1] == "notifications/progress"


async def test_a_poll_is_never_too_early(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW)
    link = await link.back(0)
    assert (await link.poll(stream))["status"] == "live"
    code, data = await error_of_resume(link, stream)
    assert (code, data) == (1004, {"retryAfterMs": 5000}), "and is no resume"


# max


async def test_nobody_comes_back_so_it_is_abandoned_at_that_very_moment(
    transport: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=ALL, **LONG) as probe, linked(probe, transport) as link:
        stream = await link.start("ask", id="it", token="t")
        await trio.sleep(10)
        label = link.label
        await link.drop()
        dropped = trio.current_time()
        await trio.sleep_until(dropped + MAX - EDGE)
        assert bytes_kept(probe) > 0
        assert probe.record()["outcome"] is None
        await trio.sleep_until(dropped + MAX)
        await trio.testing.wait_all_tasks_blocked()
        assert (probe.record()["outcome"], bytes_kept(probe)) == ("disconnected", 0)
        assert list(probe.engine.streams) == []
        assert [call for session in probe.engine.sessions for call in session.calls] == []
        (cancelled,) = probe.events("call.cancelled")
        assert (cancelled["by"], cancelled["effect"]) == ("disconnect", True)
        (lost,) = probe.events("stream.lost")
        assert (lost["session"], lost["why"], lost["messages"]) == (label, "abandoned", 0)
        opened = [event["at"] for event in probe.events("stream.opened") if event["purpose"] == "resumable"]
        assert lost["at"] == cancelled["at"] == pytest.approx(opened[0] + 10 + MAX, abs=1e-4)
        link = await link.another()
        owner = [(await link.error(link.resume(stream))), await link.poll(stream)]
        assert [(error["code"], error["data"]) for error in owner] == [(1003, {"reason": "abandoned"})] * 2
        async with linked(probe, transport) as stranger:
            assert await error_of_resume(stranger, stream) == (-32602, None)
            assert (await stranger.poll(stream))["code"] == -32602
        assert probe.record()["answered"] is False


async def test_its_unsent_messages_are_counted_when_it_is_abandoned(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link:
        await link.start("progress", SLOW, token="t")
        await link.drop()
        await trio.sleep(MAX)
        await trio.testing.wait_all_tasks_blocked()
        (lost,) = probe.events("stream.lost")
        assert (lost["why"], lost["messages"]) == ("abandoned", 6)
        assert probe.record()["outcome"] == "completed", "the work had ended long before"


async def test_a_poll_restarts_max_and_a_refused_resume_does_not(transport: str, autojump_clock: MockClock) -> None:
    async with (
        running(toolsets=ALL, **LONG, stream_min_s=3600, stream_max_s=7200) as probe,
        linked(probe, transport) as link,
    ):
        stream = await link.start("ask")
        await link.drop()
        dropped = trio.current_time()
        link = await link.another()
        await trio.sleep_until(dropped + 1000)
        assert (await link.poll(stream))["status"] == "live"
        await trio.sleep_until(dropped + 1500)
        assert (await error_of_resume(link, stream))[0] == 1004
        await trio.sleep_until(dropped + 1000 + 7200 - EDGE)
        assert list(probe.engine.streams) != []
        await trio.sleep_until(dropped + 1000 + 7200)
        await trio.testing.wait_all_tasks_blocked()
        assert list(probe.engine.streams) == []
        assert probe.record()["outcome"] == "disconnected"


async def test_poll_all_restarts_max_too(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, **LONG) as probe, linked(probe, transport) as link:
        stream = await link.start("ask")
        link = await link.back(MAX - EDGE)
        assert len(await link.poll_all()) == 1
        await trio.sleep(MAX - EDGE)
        assert (await link.poll(stream))["status"] == "live"


async def test_while_it_is_read_nobody_is_waited_for(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, **LONG) as probe, linked(probe, transport) as link:
        stream = await link.start("ask", {"waitMs": 0})
        question = await link.hear()
        await trio.sleep(3 * MAX)
        assert (await link.poll(stream))["status"] == "live"
        await link.answer(question, ANSWERS["elicitation"])
        assert shape(await link.now())[-1] == END


async def test_a_stream_that_was_resumed_in_time_has_max_again(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, **LONG) as probe, linked(probe, transport) as link:
        stream = await link.start("ask")
        link = await link.back(MAX - EDGE)
        await link.say(link.resume(stream, id="r"))
        await trio.sleep(10)
        await link.drop()
        dropped = trio.current_time()
        await trio.sleep_until(dropped + MAX - EDGE)
        assert list(probe.engine.streams) != []
        await trio.sleep_until(dropped + MAX)
        await trio.testing.wait_all_tasks_blocked()
        assert list(probe.engine.streams) == []


async def test_a_session_with_a_stream_that_waits_is_not_idle(probe: Probe, autojump_clock: MockClock) -> None:
    """HTTP: 1800 s without a request would end it."""
    async with linked(probe, "http") as link:
        stream = await link.start("simple_tool", {"delayMs": 1000})
        await link.drop()
        dropped = trio.current_time()
        await trio.sleep_until(dropped + MAX - EDGE)
        assert [session.label for session in probe.engine.sessions] == [link.label]
        assert (await link.poll(stream))["pendingMessages"]
        await trio.sleep(MAX)
        await trio.testing.wait_all_tasks_blocked()
        assert list(probe.engine.streams) == []
        # Now it has nothing but its own patience.
        await trio.sleep(IDLE - 1)
        assert len(list(probe.engine.sessions)) == 1
        await trio.sleep(2)
        assert list(probe.engine.sessions) == []


# What has ended.


async def test_what_was_taken_to_its_end_is_kept_for_a_while_that_nothing_prolongs(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link:
        stream = await link.start("simple_tool", {"delayMs": 1000}, id="it")
        await link.until(is_method(END))
        ended = trio.current_time()
        link = await link.back(100)
        assert (await link.poll(stream))["status"] == "completed"
        await trio.sleep_until(ended + KEEP - EDGE)
        again = await link.rest(link.resume(stream, received=0))
        assert shape(again) == [CREATE, "it", END]
        await trio.sleep_until(ended + KEEP)
        await trio.testing.wait_all_tasks_blocked()
        assert (await link.poll(stream))["code"] == -32602
        assert (list(probe.engine.streams), bytes_kept(probe)) == ([], 0)
        assert probe.events("stream.lost") == [], "it has been read"


async def test_whoever_has_everything_by_a_poll_is_waited_for_no_longer(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link:
        stream = await link.start("simple_tool", {"delayMs": 1000}, id="it")
        link = await link.back(10)
        assert not (await link.poll(stream, received=3))["pendingMessages"]
        await trio.sleep(KEEP)
        await trio.testing.wait_all_tasks_blocked()
        assert (list(probe.engine.streams), bytes_kept(probe)) == ([], 0)


async def test_what_ended_without_its_client_waits_for_it_as_long_as_what_lives(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link:
        stream = await link.start("simple_tool", {"delayMs": 1000}, id="it")
        link = await link.back(MAX - EDGE)
        assert await link.poll(stream) == {
            "streamId": stream, "status": "completed", "pendingMessages": True, "hasRequest": False, "hasError": False
        }  # fmt: skip
        heard = await link.rest(link.resume(stream))
        assert shape(heard) == ["it", END]


# Settings


@pytest.mark.parametrize(("shortest", "longest"), [(0.5, 7.25), (0, 3), (3600, 3601)])
async def test_the_settings_are_announced_and_kept_to(
    transport: str, shortest: float, longest: float, autojump_clock: MockClock
) -> None:
    async with (
        running(toolsets=ALL, **LONG, stream_min_s=shortest, stream_max_s=longest) as probe,
        linked(probe, transport) as link,
    ):
        stream = await link.start("ask", {"waitMs": 0})
        assert link.heard[0]["params"]["stream"]["resumeInterval"] == {"min": shortest, "max": longest}
        link = await link.back(0)
        if shortest:
            wait_ms = round(shortest * 1000)
            assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": wait_ms})
            await trio.sleep(shortest - EDGE)
            assert await error_of_resume(link, stream) == (1004, {"retryAfterMs": 1})
            await trio.sleep(EDGE)
        await link.say(link.resume(stream, id="r"))
        await link.drop()
        await trio.sleep(longest - EDGE)
        assert list(probe.engine.streams) != []
        await trio.sleep(EDGE)
        await trio.testing.wait_all_tasks_blocked()
        assert list(probe.engine.streams) == []
