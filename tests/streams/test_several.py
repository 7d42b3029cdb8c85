"""Several streams of one client at once, taking over from a connection that looks alive, and letting go."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

from ..support.calls import misuses, outcome
from ..support.pipes import STREAMS, pipe
from ..support.probe import Probe
from .links import END, Link, linked, mark, sequences, shape, steps

LONG = {"steps": 40, "step_ms": 1100}


def of(messages: list[Any], stream: str) -> list[Any]:
    """The messages of one stream; an error or an answer that is on none is not."""
    return [message for message in messages if mark(message).get("streamId") == stream]


async def test_several_streams_at_once_are_each_whole_and_in_order(link: Link, autojump_clock: MockClock) -> None:
    streams = {}
    for number in range(5):
        arguments = {"steps": 10 + number, "step_ms": 500 + 130 * number}
        streams[await link.start("progress", arguments, id=f"it{number}", token=f"t{number}")] = 10 + number
    heard = list(link.heard)
    for _ in range(2):
        await trio.sleep(1.5)
        heard += await link.now()
        link = await link.back(5)
        for place, stream in enumerate(streams):
            await link.say(link.resume(stream, id=f"r{place}"))
    await trio.sleep(60)
    heard += await link.now()
    for place, (stream, count) in enumerate(streams.items()):
        mine = of(heard, stream)
        assert sequences(mine) == list(range(1, count + 4))
        assert steps(mine) == list(range(1, count + 1))
        assert shape(mine)[-2:] == [f"it{place}", END]
    # Not one stream after the other: they are read in turn.
    order = [mark(message)["streamId"] for message in heard if mark(message)]
    assert sum(one != other for one, other in pairwise(order)) > 20


async def test_what_went_out_is_unsent_no_more(link: Link, autojump_clock: MockClock) -> None:
    """Whoever says nothing about what it has gets only what no socket has taken."""
    stream = await link.start("progress", {"steps": 30, "step_ms": 1100}, id="it", token="t")
    link = await link.back(10)
    heard = await after_resuming(link, stream)
    assert sequences(heard) == list(range(2, 11)), "nine wait"
    link = await link.back(5.5)
    assert sequences(await after_resuming(link, stream))[0] == 11


async def after_resuming(link: Link, stream: str) -> list[Any]:
    await link.say(link.resume(stream))
    return await link.now()


async def test_one_that_is_not_resumed_waits_and_the_others_go_on(link: Link, autojump_clock: MockClock) -> None:
    first = await link.start("progress", LONG, id="a", token="t1")
    second = await link.start("progress", LONG, id="b", token="t2")
    link = await link.back()
    await link.say(link.resume(first))
    await trio.sleep(60)
    await link.now()
    assert len(of(link.heard, first)) == 42
    assert of(link.heard, second) == []
    rest = await link.rest(link.resume(second))
    assert sequences(of(rest, second)) == list(range(2, 44))


async def test_taking_over_leaves_the_old_connection_nothing(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", LONG, id="it", token="t")
    other = await link.start("progress", LONG, id="other", token="t2")
    await trio.sleep(5)
    before = await link.now()
    new = await link.another()
    await new.say(new.resume(stream, id="r"))
    await trio.sleep(60)
    old, fresh = await link.now(), await new.now()
    assert of(old, stream) == []
    assert len(of(link.heard, other)) == 43, "what was not taken over goes on where it was"
    assert steps(of(before, stream) + fresh) == list(range(1, 41))
    assert shape(fresh)[-3:] == ["it", END, "r"]
    assert shape(old).count("it") == 0


async def test_a_resume_that_is_taken_over_is_answered_live(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", LONG, id="it", token="t")
    old = await link.back(5.5)
    await old.say(old.resume(stream, id="r1"))
    await trio.sleep(5)
    await old.now()
    del old.heard[:]
    new = await old.another()
    await new.say(new.resume(stream, id="r2"))
    answer = (await old.now())[0]
    assert answer["result"] == {"streamId": stream, "status": "live"}
    await trio.sleep(60)
    assert await old.now() == []
    heard = await new.now()
    assert sequences(of(heard, stream)) == list(range(sequences(heard)[0] or 0, 44))
    assert heard[-1]["result"] == {"streamId": stream, "status": "completed"}


@pytest.mark.parametrize("read_before", [0, 1])
async def test_taking_over_from_a_connection_that_stalls(
    probe: Probe, read_before: int, autojump_clock: MockClock
) -> None:
    """What is in the middle of its way may still come there, and no message after it."""
    async with pipe(probe.engine, pair=lockstep_stream_pair) as old, linked(probe, "pipe") as new:
        await old.initialize(capabilities=STREAMS)
        params = {"name": "progress", "arguments": LONG, "_meta": {"progressToken": "t"}}
        await old.say(old.legacy("tools/call", params, "it"))
        about = mark(await old.hear())
        await trio.sleep(5)
        # One message stalls alone; when it has come, the next stalls at the head of all that wait.
        for _ in range(read_before):
            await old.hear()
        await trio.sleep(5)
        await new.say(new.resume(about["streamId"], id="r", secret=about["secret"]))
        heard = await new.now()
        assert sequences(heard) == list(range(2 + read_before, 11))
        assert mark(await old.hear())["sequence"] == 2 + read_before
        before = len(old.heard)
        # What answers at once goes before what is on streams, so one answer alone would not show those.
        for number in range(3):
            await old.say(old.legacy("ping", None, f"ping{number}"))
            await old.result_of(f"ping{number}")
        assert len(old.heard) - before == 3, "nothing but the answers"
        await trio.sleep(60)
        assert sequences(heard + await new.now())[:-1] == list(range(2 + read_before, 44))


async def test_a_storm_of_take_overs_loses_and_doubles_nothing(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", LONG, id="it", token="t")
    links = [link]
    for number in range(6):
        await trio.sleep(5)
        links.append(await links[-1].another())
        await links[-1].say(links[-1].resume(stream, id=f"r{number}"))
    await trio.sleep(60)
    heard = [message for each in links for message in [*each.heard, *await each.now()] if mark(message)]
    assert sorted(
        place or 0 for place in sequences(list({id(message): message for message in heard}.values()))
    ) == list(range(1, 44))


async def test_taking_over_on_the_same_connection(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as link:
        stream = await link.start("progress", LONG, id="it", token="t")
        await trio.sleep(5)
        await link.now()
        await link.say(link.resume(stream, id="r1"))
        await trio.sleep(5)
        await link.say(link.resume(stream, id="r2"))
        await trio.sleep(60)
        await link.now()
        assert steps(link.heard) == list(range(1, 41))
        statuses = [message["result"]["status"] for message in link.heard if message.get("id") in ("r1", "r2")]
        assert statuses == ["live", "completed"]


async def test_a_resume_that_is_cancelled_lets_go_without_an_answer(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", LONG, id="it", token="t")
    link = await link.back()
    await link.say(link.resume(stream, id="r"))
    await trio.sleep(2.5)
    before = await link.now()
    await link.cancel("r")
    await trio.sleep(10)
    assert await link.now() == [], "no answer, no message"
    (resumable,) = link.probe.engine.streams
    assert resumable.reader is None
    assert outcome(link.probe)[0] is None, "the work goes on"
    rest = await link.rest(link.resume(stream, id="r2"))
    assert sequences(before + rest) == list(range(2, 44))
    assert misuses(link.probe) == []


async def test_after_letting_go_min_and_max_count_from_then(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", {"steps": 100, "step_ms": 5000}, id="it", token="t")
    link = await link.back()
    await link.say(link.resume(stream, id="r"))
    await trio.sleep(20)
    await link.cancel("r")
    await link.now()
    assert (await link.error(link.resume(stream)))["data"] == {"retryAfterMs": 5000}
    let_go = trio.current_time()
    await trio.sleep_until(let_go + 3600 - 2**-10)
    assert list(link.probe.engine.streams) != []
    await trio.sleep_until(let_go + 3600)
    await link.now()
    assert list(link.probe.engine.streams) == []


@pytest.mark.parametrize("then", ["cancel", "drop"])
async def test_two_resumes_of_one_stream_at_the_same_moment(link: Link, then: str, autojump_clock: MockClock) -> None:
    """The second is too early, and the first is not disturbed."""
    stream = await link.start("progress", LONG, id="it", token="t")
    link = await link.back()
    await link.say(link.resume(stream, id="r1"))
    await link.say(link.resume(stream, id="r2"))
    messages = await link.now()
    (refused,) = [message for message in messages if message.get("id") == "r2"]
    assert refused["error"]["code"] == 1004
    if then == "drop":
        link = await link.back()
        await link.say(link.resume(stream, id="r3"))
    else:
        await link.cancel("r2")
        await link.now()
        assert misuses(link.probe) == ["cancellation without effect"]
    await trio.sleep(60)
    rest = await link.now()
    assert sequences([message for message in messages + rest if mark(message)]) == list(range(2, 44))
