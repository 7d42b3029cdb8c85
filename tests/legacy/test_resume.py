"""`Last-Event-ID`: no message lost, none twice, none of another stream (2025-11-25 basic/transports, Resumability)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from ..support.http import Answer, Event
from ..support.legacy import Legacy
from ..support.probe import Probe, running


def slow(client: Legacy, steps: int = 6, id: Any = "it") -> dict[str, Any]:
    """A call with one progress notification per second and then its response."""
    arguments = {"steps": steps, "step_ms": 1000}
    return client.request(
        "tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": "token"}}, id
    )


async def whole(answer: Answer) -> list[Event]:
    return [event async for event in answer.events()]


async def seen(answer: Answer, messages: int) -> list[Event]:
    """The priming event and so many messages; then the client hangs up."""
    return await answer.first(1 + messages)


def data(events: list[Event]) -> list[tuple[str | None, str]]:
    return [(event.id, event.data) for event in events if event.data]


def steps(events: list[Event]) -> list[Any]:
    messages = [event.message for event in events if event.data]
    return [message["params"]["progress"] if "method" in message else message["id"] for message in messages]


@pytest.mark.parametrize("count", range(8))
async def test_a_finished_stream_can_be_read_again_from_each_of_its_events(
    count: int, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.post(slow(client)) as answer:
        events = await whole(answer)
    assert len(events) == 8
    async with client.get(last_event_id=events[count].id) as again:
        assert again.headers["content-type"] == "text/event-stream"
        rest = await whole(again)
    assert data(rest) == data(events[count + 1 :]), "the same messages with the same ids"


@pytest.mark.proves("2025-11-25/transports/18", "2025-11-25/transports/15")
@pytest.mark.parametrize("count", range(7))
async def test_a_running_stream_goes_on_where_the_client_lost_it(
    count: int, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    with trio.fail_after(60):
        async with client.post(slow(client)) as answer:
            before = await seen(answer, count)
        await trio.sleep(1.5)
        async with client.get(last_event_id=before[-1].id) as again:
            after = await whole(again)
    assert steps(before + after) == [1, 2, 3, 4, 5, 6, "it"]
    assert probe.record()["outcome"] == "completed"


@given(cuts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6))
def test_however_often_the_client_comes_and_goes_it_gets_everything_once(cuts: list[tuple[int, int]]) -> None:
    async def story() -> None:
        async with running() as probe:
            assert steps(await everything(await probe.client(), cuts)) == [1, 2, 3, 4, 5, 6, 7, 8, 9, "it"]

    trio.run(story, clock=MockClock(autojump_threshold=0))


async def everything(client: Legacy, cuts: list[tuple[int, int]]) -> list[Event]:
    """All messages of a call whose client reads some, stays away some seconds, and comes back."""
    got: list[Event] = []
    with trio.fail_after(200):
        async with client.post(slow(client, 9)) as answer:
            last = (await answer.first(1))[0].id
        for count, away_s in [*cuts, (100, 0)]:
            async with client.get(last_event_id=last) as answer:
                got += await at_most(answer, count)
            last = got[-1].id if got else last
            await trio.sleep(away_s)
    return got


async def at_most(answer: Answer, count: int) -> list[Event]:
    """So many messages, or fewer when the stream ends before."""
    await answer.first(1)
    events = []
    while len(events) < count and (event := await answer.next_event()) is not None:
        events.append(event)
    return events


async def test_a_resuming_connection_takes_over_from_one_that_only_looks_alive(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    with trio.fail_after(60):
        async with client.post(slow(client)) as old:
            before = await seen(old, 2)
            async with client.get(last_event_id=before[-1].id) as new:
                left = await whole(old)
                after = await whole(new)
    assert data(left) == [], "what the old connection had not got, the new one gets"
    assert left[-1].retry == 500
    assert steps(before + after) == [1, 2, 3, 4, 5, 6, "it"]
    assert {event["by"] for event in probe.events("http.closed")} == {
        "displaced by a newer connection",
        "end of stream",
    }


@pytest.mark.proves("2025-11-25/transports/22")
async def test_the_standalone_stream_keeps_what_came_while_nobody_read(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    async with client.get() as answer:
        (primed,) = await answer.first(1)
    await trio.sleep(10)
    async with client.get(last_event_id=primed.id) as answer:
        messages = [event.message["method"] for event in await answer.first(5) if event.data]
    assert messages == ["notifications/resources/updated"] * 4


@pytest.mark.proves("2025-11-25/transports/25", "2025-11-25/transports/26")
async def test_no_message_of_another_stream_is_replayed(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    async with client.get(), client.post(slow(client, 6, "one")) as one, client.post(slow(client, 6, "two")) as two:
        (first,), (second,) = await one.first(1), await two.first(1)
        await trio.sleep(7)
    async with client.get(last_event_id=first.id) as one, client.get(last_event_id=second.id) as two:
        assert steps(await whole(one)) == [1, 2, 3, 4, 5, 6, "one"]
        assert steps(await whole(two)) == [1, 2, 3, 4, 5, 6, "two"]


async def test_another_sessions_event_id_gives_nothing_of_that_session(probe: Probe, autojump_clock: MockClock) -> None:
    client, other = await probe.client(), await probe.client()
    async with client.post(slow(client, 3, "secret")) as answer:
        events = await whole(answer)
    async with other.get(last_event_id=events[0].id) as answer:
        assert answer.status == 400
    async with other.post(slow(other, 2, "own")) as answer:
        await whole(answer)
    async with other.get(last_event_id=events[0].id) as answer:
        assert steps(await whole(answer)) == [1, 2, "own"]


FOREIGN = ["nonsense", "p1", "p1-", "-1", "p1-x", "p1--1", "p1-+1", "p1-1.0", "p1-999", "p2-0", "p99-1", "g1-0"]
ODD = [
    "",
    "q1-1",
    "p1-0x1",
    "p1-1 2",
    "p0-0",
    "p-1-1",
    "P1-1",
    "p1-\xb2",
    "\xb2-\xb2",
    "p1-" + "9" * 50,
    "p" + "9" * 50 + "-1",
]


@pytest.mark.parametrize("id", [*FOREIGN, *ODD])
async def test_an_id_that_was_never_given_is_refused(id: str, probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    async with client.get(last_event_id=id) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"] == {
            "code": -32602,
            "message": "Last-Event-ID names no event of this session",
        }


async def test_messages_that_are_no_longer_kept_are_410_and_the_others_can_be_had(autojump_clock: MockClock) -> None:
    async with running(replay_messages=8) as probe:
        client = await probe.client()
        async with client.post(slow(client, 20)) as answer:
            events = await whole(answer)
        assert len(data(events)) == 21, "a reader that keeps up gets them all"
        async with client.get(last_event_id=events[12].id) as answer:
            assert answer.status == 410
            assert "messages 13 to 13 are gone" in (await answer.json())["error"]["message"]
        async with client.get(last_event_id=events[13].id) as answer:
            assert data(await whole(answer)) == data(events[14:])


async def test_the_bytes_of_a_stream_are_bounded_too() -> None:
    async with running(replay_bytes=64 * 1024) as probe:
        client = await probe.client(tools="all")
        big = {"name": "long_output", "arguments": {"blocks": 5, "chars": 65536}}
        result = await client.call("tools/call", big)
        assert len(result["content"]) == 5, "one message beyond the bound is kept, alone"


@pytest.mark.parametrize(("later_s", "status"), [(299, 200), (301, 410)])
async def test_a_finished_stream_is_kept_for_300_seconds(
    later_s: int, status: int, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.post(slow(client)) as answer:
        events = await whole(answer)
    await trio.sleep(later_s)
    async with client.get(last_event_id=events[3].id) as answer:
        assert answer.status == status


async def test_the_memory_of_finished_streams_is_freed_without_any_further_request(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    for number in range(5):
        async with client.post(slow(client, 1, number)) as answer:
            await whole(answer)
    (session,) = probe.engine.sessions
    assert len(session._streams) == 5
    await trio.sleep(601)
    assert session._streams == {}


async def test_beyond_the_number_of_streams_the_oldest_is_gone(autojump_clock: MockClock) -> None:
    async with running(replay_streams=2) as probe:
        client = await probe.client()
        first = []
        for number in range(3):
            async with client.post(slow(client, 1, number)) as answer:
                first.append((await whole(answer))[0].id)
        statuses = []
        for id in first:
            async with client.get(last_event_id=id) as answer:
                statuses.append(answer.status)
        assert statuses == [410, 200, 200]


async def test_resuming_a_stream_whose_session_has_ended_is_404(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(slow(client)) as answer:
        events = await whole(answer)
    await client.delete()
    async with client.get(last_event_id=events[0].id) as answer:
        assert answer.status == 404
