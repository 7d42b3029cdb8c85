"""Cancellation on one connection that carries everything: the last column of the product contract's table."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.calls import misuses, outcome
from ..support.inside import engine_tasks
from ..support.probe import Probe
from .talks import Talk, settle, slow_pipe, steps_of, talking

both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])
LONG_S = 200
"""Longer than anything here would go on."""


def check_silent_after(probe: Probe, seq: int, id: Any = "it") -> None:
    """Nothing was emitted, and nothing handed to the wire, for a request after an event of the log."""
    (call,) = {event["call"] for event in probe.events("call.started") if event["request_id"] == id}
    later = [event for event in probe.events("message.emitted") if event["seq"] > seq]
    assert [event for event in later if event["call"] == call] == []
    (settled,) = [event for event in probe.events("call.settled") if event["call"] == call]
    assert (settled["answered"], settled["sent_after_cancel"]) == (False, 0)


# -- a request in flight


@pytest.mark.proves(
    "2026-07-28/stdio/4", "2026-07-28/stdio/5", "2026-07-28/cancellation/9", "2026-07-28/cancellation/10",
    "2026-07-28/cancellation/11", "2026-07-28/cancellation/13", "2025-11-25/cancellation/5",
    "2025-11-25/cancellation/6", "2025-11-25/cancellation/7", "2025-11-25/cancellation/10",
)  # fmt: skip
@both_eras
@pytest.mark.parametrize("transport", ["stdio", "websocket"])
async def test_a_request_in_flight_is_cancelled_and_gets_no_response(
    transport: str, era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era, transport=transport) as talk:
        before = engine_tasks()
        await talk.client.say(talk.steps())
        assert steps_of(await talk.hear_for(3.5)) == [1, 2, 3]
        await talk.client.cancel("it", "changed my mind")
        assert await talk.hear_for(LONG_S) == []
        assert engine_tasks() == before, "its resources are free"
        assert outcome(probe) == ("cancelled", "notification", 3, False)
        assert len(probe.events("client.seen")) == (era == "modern"), "a cancellation does not say whose it is again"
        record = probe.record()
        assert (record["cancel_reason"], record["emitted"], record["delivered"]) == ("changed my mind", 3, 3)
        assert record["duration_ms"] == pytest.approx(3500, abs=1)
        (asked,) = probe.events("call.cancelled")
        assert (asked["request_id"], asked["by"], asked["effect"]) == ("it", "notification", True)
        check_silent_after(probe, asked["seq"])
        await talk.answered(talk.trifle("it"))


@both_eras
async def test_what_waits_for_the_writer_is_not_sent_either(era: str, probe: Probe, autojump_clock: MockClock) -> None:
    """The client has read nothing of ten steps when it cancels: only what is being written comes still."""
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=100, ms=100))
        await talk.client.say(talk.steps(count=3, ms=100, id="other", token="other"))
        await trio.sleep(1.05)
        await talk.client.cancel("it")
        await settle()
        heard = await talk.hear_for(LONG_S)
        of_it = [message for message in heard if message.get("params", {}).get("progressToken") == "token"]
        assert steps_of(of_it) in ([], [1])
        assert steps_of([message for message in heard if message not in of_it]) == [1, 2, 3, "other"]
        assert outcome(probe) == ("cancelled", "notification", 10, False)


@both_eras
async def test_a_reader_that_reads_slowly_gets_nothing_after_its_cancellation_was_read(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=100, ms=10))
        heard = []
        for _ in range(5):
            await trio.sleep(0.1)
            heard.append(await talk.client.hear())
        await talk.client.cancel("it")
        await settle()
        heard += await talk.hear_for(LONG_S)
        assert steps_of(heard) in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]), "at most the one that was being written"


@both_eras
async def test_an_id_is_a_value_with_a_type(era: str, probe: Probe, autojump_clock: MockClock) -> None:
    """5 is not "5"."""
    async with talking(probe, era) as talk:
        for id in (5, "5", 6):
            await talk.client.say(talk.steps(id=id, token=f"{id!r}"))
        await talk.hear_for(1.5)
        await talk.client.cancel("5")
        await talk.hear_for(1)
        await talk.client.cancel(6)
        await talk.hear_for(LONG_S)
        heard = talk.client.heard
        assert {message["id"] for message in heard if "method" not in message and message["id"] != 1} == {5}
        steps = [message["params"] for message in heard if "method" in message]
        counts = {token: sum(one["progressToken"] == token for one in steps) for token in ("5", "'5'", "6")}
        assert counts == {"5": 10, "'5'": 1, "6": 2}


@pytest.mark.proves("2026-07-28/cancellation/12", "2025-11-25/cancellation/9")
@both_eras
@pytest.mark.parametrize("early_ms", [-1, 0, 1])
@pytest.mark.parametrize("reads", [True, False])
async def test_the_result_or_the_cancellation_wins(
    era: str, early_ms: int, reads: bool, probe: Probe, autojump_clock: MockClock
) -> None:
    """They come within a millisecond, or at the same time: what is heard is what the record says."""
    async with talking(probe, era) as talk:
        await talk.client.say(talk.call("simple_tool", {"delayMs": 1000}))
        heard = []
        if reads:
            heard += await talk.hear_for(1 - early_ms / 1000)
        else:
            await trio.sleep(1 - early_ms / 1000)
        await talk.client.cancel("it")
        heard += await talk.hear_for(LONG_S)
        record = probe.record()
        if record["outcome"] == "cancelled":
            assert heard == []
            assert (record["answered"], record["answer_delivered"]) == (False, False)
        else:
            assert record["outcome"] == "completed"
            assert [message["id"] for message in heard] == (["it"] if record["answer_delivered"] else [])
        if early_ms > 0:
            assert heard == []
        if early_ms < 0 and reads:
            assert [message["id"] for message in heard] == ["it"]


@both_eras
async def test_a_hundred_requests_of_which_every_second_is_cancelled(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era) as talk:
        before = engine_tasks()
        for id in range(100):
            await talk.client.say(talk.call("simple_tool", {"delayMs": 2000}, id=f"n{id}"))
        await trio.sleep(1)
        for id in range(0, 100, 2):
            await talk.client.cancel(f"n{id}")
        heard = await talk.hear_for(LONG_S)
        assert sorted(message["id"] for message in heard) == sorted(f"n{id}" for id in range(1, 100, 2))
        assert {outcome(probe, f"n{id}")[0] for id in range(99, 60, -2)} == {"completed"}
        assert {outcome(probe, f"n{id}")[0] for id in range(98, 60, -2)} == {"cancelled"}
        assert engine_tasks() == before
        assert misuses(probe) == []


# -- what cancels nothing


@pytest.mark.proves("2026-07-28/cancellation/14", "2025-11-25/cancellation/12")
@both_eras
@pytest.mark.parametrize("id", ["unknown", 0, -1, 2**70])
async def test_an_unknown_id_is_ignored_and_recorded(era: str, id: Any, probe: Probe) -> None:
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=2, ms=1))
        await talk.client.cancel(id)
        heard = await talk.client.hear_until(lambda message: message.get("id") == "it")
        assert steps_of(heard) == [1, 2, "it"]
        assert misuses(probe) == ["cancellation without effect"]


@pytest.mark.proves("2026-07-28/cancellation/15", "2025-11-25/cancellation/13")
@both_eras
async def test_a_finished_request_is_ignored_and_recorded(era: str, probe: Probe) -> None:
    async with talking(probe, era) as talk:
        await talk.answered(talk.steps(count=1, ms=0), talk.trifle())
        await settle()
        for id in ("it", "trifle"):
            await talk.client.cancel(id)
        await talk.answered(talk.trifle("another"))
        assert misuses(probe) == ["cancellation without effect"] * 2
        assert probe.events("call.cancelled") == []


@pytest.mark.proves("2026-07-28/cancellation/16", "2025-11-25/cancellation/14")
@both_eras
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"requestId": None},
        {"requestId": True},
        {"requestId": 1.5},
        {"requestId": ["it"]},
        {"requestId": {"it": 1}},
        {"requestId": "it", "reason": 5},
        {"requestId": "it", "reason": None},
    ],
)
async def test_a_malformed_cancellation_is_ignored_and_recorded(era: str, params: Any, probe: Probe) -> None:
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=2, ms=20))
        await talk.client.notify("notifications/cancelled", params)
        heard = await talk.client.hear_until(lambda message: message.get("id") == "it")
        assert steps_of(heard) == [1, 2, "it"]
        assert misuses(probe) == ["malformed cancellation"]


async def test_initialize_is_not_cancelled(probe: Probe) -> None:
    async with talking(probe, "legacy") as talk:
        await talk.client.cancel(1)
        await talk.answered(talk.trifle())
        assert misuses(probe) == ["notifications/cancelled for initialize"]


async def test_a_cancellation_before_initialize_is_ignored(probe: Probe) -> None:
    async with talking(probe, "modern") as talk:
        await talk.client.cancel(1)
        await talk.client.initialize()
        assert misuses(probe) == ["cancellation without effect"]


@both_eras
async def test_the_request_that_made_a_task_does_not_end_it(era: str, probe: Probe, autojump_clock: MockClock) -> None:
    async with talking(probe, era) as talk:
        params = {"name": "pure_task", "arguments": {"durationMs": 5000}}
        params |= {"task": {}} if era == "legacy" else {}
        handle = (await talk.answered(talk.request("tools/call", params, id="it")))["it"]["result"]
        id = handle["task"]["taskId"] if era == "legacy" else handle["taskId"]
        await talk.client.cancel("it")
        await talk.hear_for(6)
        got = (await talk.answered(talk.request("tasks/get", {"taskId": id}, id="get")))["get"]
        assert got["result"]["status"] == "completed"
        assert misuses(probe) == ["notifications/cancelled for a task"]


async def test_the_task_of_another_connection_is_not_what_a_cancellation_names(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """Two connections of the same client use the same id."""
    async with talking(probe, "modern") as other, talking(probe, "modern") as talk:
        params = {"name": "pure_task", "arguments": {"durationMs": 5000}}
        await other.answered(other.request("tools/call", params, id="it"))
        await talk.answered(talk.trifle("before"))
        await talk.client.cancel("it")
        await talk.answered(talk.trifle("after"))
        assert misuses(probe) == ["cancellation without effect"]
        assert probe.events("client.misuse")[0]["call"] is None


@both_eras
async def test_an_id_in_flight_is_not_taken_again(era: str, probe: Probe, autojump_clock: MockClock) -> None:
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=3))
        await talk.hear_for(1.5)
        await talk.client.say(talk.trifle("it"))
        refusal = await talk.client.hear()
        assert (refusal["id"], refusal["error"]["code"]) == ("it", -32600)
        heard = await talk.hear_for(LONG_S)
        assert steps_of(heard) == [2, 3, "it"]
        assert heard[-1]["result"]["structuredContent"]["done"] is True
        assert misuses(probe) == ["duplicate id"]


@both_eras
async def test_a_request_of_another_connection_is_not_cancelled(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era) as one, talking(probe, era) as other:
        await one.client.say(one.steps(count=3))
        await one.hear_for(1.5)
        await other.client.cancel("it")
        assert steps_of(await one.hear_for(LONG_S)) == [2, 3, "it"]
        assert misuses(probe) == ["cancellation without effect"]


# -- waiting requests that are no calls


async def test_a_waiting_tasks_result_is_let_go_and_the_task_goes_on(probe: Probe, autojump_clock: MockClock) -> None:
    async with talking(probe, "legacy") as talk:
        params = {"name": "pure_task", "arguments": {"durationMs": 5000}, "task": {}}
        handle = (await talk.answered(talk.request("tools/call", params, id="it")))["it"]["result"]
        named = {"taskId": handle["task"]["taskId"]}
        await talk.client.say(talk.request("tasks/result", named, id="waiting"))
        await talk.hear_for(1)
        await talk.client.cancel("waiting")
        heard = await talk.hear_for(LONG_S)
        assert [message.get("id") for message in heard if "method" not in message] == []
        got = (await talk.answered(talk.request("tasks/result", named, id="again")))["again"]
        assert got["result"]["structuredContent"] == {"message": "Completed after 5000ms"}


# -- both eras on one connection


async def test_the_eras_do_not_cancel_each_others_requests(probe: Probe, autojump_clock: MockClock) -> None:
    async with talking(probe, "legacy") as legacy:
        modern = Talk(legacy.client, "modern")
        await legacy.client.say(legacy.steps(id="old", token="old"))
        await legacy.client.say(modern.steps(id="new", token="new"))
        assert sorted(map(str, steps_of(await legacy.hear_for(1.5)))) == ["1", "1"]
        await legacy.client.cancel("old")
        assert steps_of(await legacy.hear_for(2)) == [2, 3]
        await legacy.client.cancel("new")
        assert await legacy.hear_for(LONG_S) == []
        assert [outcome(probe, id) for id in ("old", "new")] == [
            ("cancelled", "notification", 1, False),
            ("cancelled", "notification", 3, False),
        ]
        assert misuses(probe) == []


async def test_a_cancellation_with_modern_metadata_is_of_the_modern_era(
    probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, "legacy") as legacy:
        await legacy.client.say(legacy.steps(count=3))
        await legacy.hear_for(1.5)
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        await legacy.client.notify("notifications/cancelled", {"requestId": "it", "_meta": meta})
        assert steps_of(await legacy.hear_for(LONG_S)) == [2, 3, "it"]
        assert misuses(probe) == ["cancellation without effect"]


# -- the connection goes


@both_eras
@pytest.mark.parametrize("way", ["drop", "end_input", "stop_reading"])
async def test_a_connection_that_goes_cancels_what_is_in_flight(
    era: str, way: str, probe: Probe, autojump_clock: MockClock
) -> None:
    idle = engine_tasks()
    async with talking(probe, era) as talk:
        for id in ("it", "other"):
            await talk.client.say(talk.steps(id=id, token=id))
        await talk.client.say(talk.call("simple_tool", {"delayMs": 5000}, id="silent"))
        await talk.hear_for(3.5)
        began = trio.current_time()
        await getattr(talk.client, way)()
        with trio.fail_after(10):
            await talk.client.gone.wait()
        # who only stops to read is noticed by the next step
        assert trio.current_time() - began <= {"drop": 0, "end_input": 0, "stop_reading": 2.5}[way]
        for id in ("it", "other"):
            found = outcome(probe, id)
            assert (found[0], found[1], found[3]) == ("disconnected", "disconnect", False)
        assert outcome(probe, "silent")[0] == "disconnected"
        (closed,) = probe.events("connection.closed")
        assert (closed["by"], closed["session"]) == ("client", "s1" if era == "legacy" else None)
    assert engine_tasks() == idle
    assert len(probe.events("session.closed")) == (era == "legacy")


@both_eras
async def test_a_connection_that_goes_while_nothing_is_read_is_given_up(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """Half of it ended, and nobody reads the other half: two seconds are enough."""
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=100, ms=10))
        await trio.sleep(0.5)
        await talk.client.end_input()
        with trio.fail_after(5):
            await talk.client.gone.wait()
        assert outcome(probe)[0] == "disconnected"


@both_eras
async def test_what_was_answered_before_the_end_of_input_may_still_be_read(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """As with a shell's pipe: each message of a call that was over, also those in one piece with others."""
    async with talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=20, ms=0))
        await talk.client.say(talk.trifle())
        await settle()
        await talk.client.end_input()
        await settle()
        heard = steps_of(await talk.client.rest())
        assert sorted(map(str, heard)) == sorted(map(str, [*range(1, 21), "it", "trifle"]))
        assert probe.record()["answer_delivered"]


async def test_a_task_of_a_session_ends_with_its_connection_and_a_modern_one_does_not(
    probe: Probe, autojump_clock: MockClock
) -> None:
    params = {"name": "pure_task", "arguments": {"durationMs": 5000}}
    async with talking(probe, "legacy") as legacy:
        await legacy.answered(legacy.request("tools/call", {**params, "task": {}}, id="old"))
    async with talking(probe, "modern") as modern:
        handle = (await modern.answered(modern.request("tools/call", params, id="new")))["new"]["result"]
    assert outcome(probe, "old")[:2] == ("disconnected", "disconnect")
    await trio.sleep(6)
    async with talking(probe, "modern") as again:
        got = await again.answered(again.request("tasks/get", {"taskId": handle["taskId"]}, id="get"))
        assert got["get"]["result"]["status"] == "completed"


@pytest.mark.parametrize("transport", ["stdio", "websocket"])
async def test_a_cancellation_before_any_request_is_of_no_client(probe: Probe, transport: str) -> None:
    """Only requests of 2026-07-28 say who sends them."""
    async with slow_pipe(probe, transport=transport) as client:
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await client.call(client.modern("tools/list"))
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await client.call(client.modern("tools/list"))
    assert [event["session"] for event in probe.events("client.seen")] == ["m1"]
    assert [event["session"] for event in probe.events("client.misuse")] == [None, "m1"]
