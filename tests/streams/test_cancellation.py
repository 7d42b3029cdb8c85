"""Cancellation, progress, tasks and ids keep their rules across a disconnect (product contract, sections 3 and 4)."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.calls import misuses, outcome
from ..support.probe import Probe, running
from .links import END, Link, linked, sequences, shape, steps
from .tools import ALL, SLOW

LONG = {"steps": 60, "step_ms": 1000}
VAIN = "cancellation without effect"


async def test_after_resuming_the_call_is_cancelled_by_its_own_id(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", LONG, id="it", token="t")
    link = await link.back(5.5)
    await link.say(link.resume(stream, id="r"))
    assert steps(await link.now()) == [1, 2, 3, 4, 5]
    await link.cancel("it", "enough")
    assert shape(await link.now()) == [END, "r"]
    await trio.sleep(120)
    assert await link.now() == []
    assert outcome(link.probe) == ("cancelled", "notification", 5, False)
    assert link.probe.record()["cancel_reason"] == "enough"
    assert misuses(link.probe) == []


async def test_on_a_pipe_only_who_holds_the_stream_cancels_its_call(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as old, linked(probe, "pipe") as stranger:
        stream = await old.start("progress", LONG, id="it", token="t")
        await stranger.cancel("it")
        await stranger.now()
        assert misuses(probe) == [VAIN]
        new = await old.back()
        await new.cancel("it")
        await new.now()
        assert misuses(probe) == [VAIN] * 2
        await new.say(new.resume(stream, id="r"))
        await trio.sleep(1)
        assert steps(await new.now()) == [1, 2, 3, 4, 5, 6]
        await stranger.cancel("it")
        await stranger.now()
        assert misuses(probe) == [VAIN] * 3
        assert outcome(probe)[0] is None
        await new.cancel("it")
        assert shape(await new.now()) == [END, "r"]


async def test_whom_a_stream_was_taken_from_cannot_cancel_it(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as old:
        stream = await old.start("progress", LONG, id="it", token="t")
        await trio.sleep(5)
        new = await old.another()
        await new.say(new.resume(stream, id="r"))
        await new.now()
        await old.cancel("it")
        await old.now()
        assert misuses(probe) == [VAIN]
        assert outcome(probe)[0] is None
        await new.cancel("it")
        await new.now()
        assert outcome(probe)[0] == "cancelled"


async def test_over_http_the_session_holds_it_all_the_time(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "http") as link, linked(probe, "http") as stranger:
        stream = await link.start("progress", LONG, id="it", token="t")
        link = await link.back(2.5)
        await stranger.cancel("it")
        await stranger.now()
        assert (outcome(probe)[0], misuses(probe)) == (None, [VAIN])
        await link.cancel("it")
        await link.now()
        assert outcome(probe)[0] == "cancelled"
        await trio.sleep(10)
        rest = await link.rest(link.resume(stream))
        assert shape(rest)[-1] == END
        assert steps(rest) == [1, 2]


async def test_a_disconnect_cancels_nothing_on_a_stream_and_all_else_on_a_pipe(
    probe: Probe, autojump_clock: MockClock
) -> None:
    async with linked(probe, "pipe") as link:
        await link.start("progress", LONG, id="it", token="t")
        handle = await link.ask(link.tool("cancellable_task", id="task", task={}))
        assert handle["result"]["task"]["status"] == "working"
        await link.drop()
        assert outcome(probe)[0] is None
        assert outcome(probe, "task")[:2] == ("disconnected", "disconnect")
        await trio.sleep(61)
        assert outcome(probe)[0] == "completed"


@pytest.mark.parametrize("token", [0, "", "0", 2**63, "ö"])
async def test_progress_keeps_its_token_and_its_order(link: Link, token: Any, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", {"steps": 20, "step_ms": 1000}, id="it", token=token)
    await trio.sleep(2.5)
    heard = await link.now()
    for _ in range(2):
        link = await link.back()
        await link.say(link.resume(stream))
        await trio.sleep(0.25)
        heard += await link.now()
    await trio.sleep(60)
    heard += await link.now()
    notes = [message["params"] for message in heard if message.get("method") == "notifications/progress"]
    assert [note["progress"] for note in notes] == list(range(1, 21))
    assert all(note["progressToken"] == token and type(note["progressToken"]) is type(token) for note in notes)


async def test_a_task_goes_on_with_its_session_and_its_handle_with_the_stream(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link:
        await link.say(link.tool("task_with_progress", {"itemCount": 50, "delayPerItemMs": 1000}, id="it", task={}))
        await link.now()
        stream = link.heard[0]["params"]["stream"]["streamId"]
        link = await link.back(8)
        handle = await link.rest(link.resume(stream, received=1))
        assert shape(handle) == ["it", END]
        task = handle[0]["result"]["task"]["taskId"]
        answer = await link.ask(link.request("tasks/get", {"taskId": task}))
        if transport == "http":
            assert answer["result"]["status"] == "working"
            await link.cancel("it")
            await link.now()
            assert misuses(probe) == ["notifications/cancelled for a task"]
        else:
            assert answer["error"]["code"] == -32602, "the session ended with its connection"
            assert probe.record()["outcome"] == "disconnected"


# Ids


async def test_the_id_of_the_call_is_not_one_for_a_resume_of_it(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", LONG, id="it", token="t")
    link = await link.back()
    error = await ids_answer(link, link.resume(stream, id="it"))
    assert error["code"] == -32600
    await link.now()
    del link.heard[:]
    await link.say(link.resume(stream, id="r"))
    await trio.sleep(0.5)
    assert steps(await link.now()) == [1, 2, 3, 4, 5], "nothing is lost"
    await link.cancel("it")
    assert shape(await link.now()) == [END, "r"]


async def test_the_id_of_the_call_is_none_for_a_resume_when_the_call_is_over_either(
    link: Link, autojump_clock: MockClock
) -> None:
    """It is free, and its answer is on the stream: two answers would have it."""
    stream = await link.start("progress", SLOW, id="it", token="t")
    link = await link.back(10)
    error = await ids_answer(link, link.resume(stream, id="it"))
    assert error["code"] == -32600
    link.client.methods["it"] = ("tools/call", False)
    assert sequences(await link.rest(link.resume(stream, id="r")))[-6:] == [2, 3, 4, 5, 6, 7]


async def ids_answer(link: Link, request: Any) -> Any:
    await link.say(request)
    (answer,) = [message for message in await link.now() if "error" in message]
    assert answer["id"] == request["id"]
    return answer["error"]


async def test_an_id_that_is_in_flight_here_keeps_a_stream_from_being_resumed(
    probe: Probe, autojump_clock: MockClock
) -> None:
    async with linked(probe, "pipe") as link:
        stream = await link.start("progress", LONG, id="it", token="t")
        link = await link.back()
        mine = await link.start("progress", {"steps": 3, "step_ms": 1000}, id="it", token="t2")
        error = await ids_answer(link, link.resume(stream, id="r"))
        assert error["code"] == -32600
        await link.say({"jsonrpc": "2.0", "method": "stream/resume", "params": link.about(stream)})
        (bare,) = await link.now()
        assert (bare["error"]["code"], "id" in bare) == (-32600, False)
        assert mine != stream
        await trio.sleep(4)
        assert steps(await link.now()) == [1, 2, 3], "the call that has the id is not disturbed"
        link.client.methods["it"] = ("tools/call", False)
        await link.say(link.resume(stream, id="r"))
        assert steps(await link.now()) == list(range(1, 10)), "and nothing is lost of the other"


async def test_after_resuming_the_call_s_id_is_in_flight_here(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as link:
        stream = await link.start("progress", {"steps": 10, "step_ms": 1000}, id="it", token="t")
        link = await link.back()
        await link.say(link.resume(stream, id="r"))
        await link.now()
        error = await ids_answer(link, link.request("ping", None, "it"))
        assert error["code"] == -32600
        link.client.methods["it"] = ("tools/call", False)
        await trio.sleep(10)
        assert shape(await link.now())[-3:] == ["it", END, "r"]
        assert (await link.ask(link.request("ping", None, "it")))["result"] == {}, "it is free again"


async def test_no_room_in_flight_is_no_resume_and_loses_nothing(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=ALL, max_in_flight=2) as probe, linked(probe, transport) as link:
        stream = await link.start("progress", LONG, id="it", token="t")
        link = await link.back()
        if transport == "pipe":
            blocker = await link.start("progress", {"steps": 5, "step_ms": 1000}, id="other")
            assert blocker
            error = await ids_answer(link, link.resume(stream, id="r"))
            assert error["code"] == -32000
            await trio.sleep(5)
            await link.now()
        await link.say(link.resume(stream, id="r"))
        got = await link.now()
        assert sequences(got)[0] == 2
        assert steps(got)[:5] == [1, 2, 3, 4, 5]


async def test_a_burst_of_cancellations_and_resumes_ends_with_nothing_in_flight(
    link: Link, autojump_clock: MockClock
) -> None:
    streams = [await link.start("progress", SLOW, id=f"it{number}", token=f"t{number}") for number in range(8)]
    link = await link.back()
    for number, stream in enumerate(streams):
        await link.say(link.resume(stream, id=f"r{number}"))
        await link.cancel(f"it{number}")
    await trio.sleep(20)
    await link.now()
    assert [call for session in link.probe.engine.sessions for call in session.calls] == []
    assert all(not session.machine.in_flight for session in link.probe.engine.sessions)
