"""A modern call lives as long as its response stream (product contract, section 3, column "modern HTTP").

2026-07-28 basic/patterns/cancellation and basic/transports/streamable-http, unless another page is named.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.calls import (
    RUDE,
    RUDE_LATENCY_S,
    check_disconnected,
    emitted_after,
    heard,
    outcome,
    silent,
    slow,
    steps,
    tool_call,
)
from ..support.http import http_scope
from ..support.inside import SERVICES, engine_tasks
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..support.shown import newest

# Closing the response is the cancellation.


@pytest.mark.proves("2026-07-28/streamable-http/15", "2026-07-28/streamable-http/16", "2026-07-28/streamable-http/17")
@pytest.mark.proves("2026-07-28/cancellation/3", "2026-07-28/cancellation/13")
async def test_closing_the_event_stream_cancels_the_call_and_everything_is_recorded(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    async with client.post(slow(client)) as answer:
        events = await answer.first(3)
        await trio.sleep(0.5)
        answer.hang_up()
        await wait_all_tasks_blocked()
        record = check_disconnected(probe, steps_done=3)
        assert engine_tasks() == SERVICES
        mark = probe.engine.log.last
        await trio.sleep(100)
        assert emitted_after(probe, mark) == []
        assert [part async for part in answer.parts()] == []
    assert steps([event.message for event in events]) == [1, 2, 3]
    assert (record["emitted"], record["delivered"]) == (3, 3)
    assert record["cancel_reason"] == "the client closed the response stream"
    assert (record["era"], record["transport"], record["session"]) == ("modern", "http", "m1")
    assert (record["request_id"], record["progress_token"], record["steps_total"]) == ("it", "token", 10)
    assert record["duration_ms"] == pytest.approx(3500, abs=1)
    (closed,) = probe.events("http.closed")
    assert (closed["by"], closed["messages"]) == ("client", 3)
    (ended,) = probe.events("stream.ended")
    assert (ended["stream"], ended["messages"]) == (closed["stream"], 3)


@pytest.mark.proves("2026-07-28/streamable-http/16", "2026-07-28/cancellation/3")
async def test_closing_before_the_answer_has_begun_cancels_the_call(probe: Probe, autojump_clock: MockClock) -> None:
    """ "The server MUST treat a client disconnect as cancellation of that request", whatever its answer would be."""
    client = probe.modern()
    began, gone = trio.current_time(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(set_after, gone, 2)
        async with client.post(silent(client), gone=gone) as answer:
            assert (answer.status, await answer.body()) == (0, b"")
    assert trio.current_time() - began == pytest.approx(2)
    record = check_disconnected(probe, steps_done=None)
    assert record["duration_ms"] == pytest.approx(2000, abs=1)
    assert probe.events("http.response", "message.emitted") == []
    assert engine_tasks() == SERVICES


async def set_after(event: trio.Event, seconds: float) -> None:
    await trio.sleep(seconds)
    event.set()


async def test_a_client_that_is_gone_at_once_stops_the_work_before_its_first_step(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    gone = trio.Event()
    gone.set()
    async with client.post(slow(client), gone=gone) as answer:
        assert answer.status == 0
    assert check_disconnected(probe, steps_done=0)["duration_ms"] == 0


async def test_a_request_whose_client_goes_before_its_end_never_begins(probe: Probe) -> None:
    """There is no request before its last byte."""
    client = probe.modern()
    request = slow(client)
    events = [
        {"type": "http.request", "body": b'{"jsonrpc"', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return events.pop(0)

    async def send(event: Any) -> None:
        raise AssertionError("nobody is there to be answered")

    with trio.fail_after(5):
        await probe.app(http_scope("POST", client.target, client.headers(request)), receive, send)
    assert probe.events("message.received", "call.started") == []


@pytest.mark.parametrize("same_id", [True, False], ids=["the same id", "another id"])
async def test_no_other_call_is_touched(same_id: bool, probe: Probe, autojump_clock: MockClock) -> None:
    """There are no sessions: requests of one id may come from anybody, and each has its own stream."""
    clients = [probe.modern() for _ in range(3)]
    ids = ["it"] * 3 if same_id else ["it", 5, "5"]
    got: dict[int, list[Any]] = {}

    async def one(number: int, client: Modern) -> None:
        async with client.post(slow(client, ids[number], token=number)) as answer:
            if number == 1:
                await answer.first(2)
                return
            got[number] = await heard(client, answer)

    async with trio.open_nursery() as nursery:
        for number, client in enumerate(clients):
            nursery.start_soon(one, number, client)
    for number in (0, 2):
        assert steps(got[number]) == [*range(1, 11), None]
        assert got[number][-1]["id"] == ids[number]
        assert {message["params"]["progressToken"] for message in got[number][:-1]} == {number}
    outcomes = [(record.progress_token, record.outcome) for record in newest(probe.engine.records, 10)]
    assert sorted(outcomes) == [(0, "completed"), (1, "disconnected"), (2, "completed")]


async def test_a_completed_call_is_not_cancelled_by_its_clients_going(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    async with client.post(slow(client, steps=2)) as answer:
        assert steps(await heard(client, answer)) == [1, 2, None]
    async with client.post(silent(client)) as answer:
        assert "result" in (await heard(client, answer))[0]
    assert [record.outcome for record in newest(probe.engine.records, 10)] == ["completed"] * 2
    assert probe.events("call.cancelled") == []


# Tools with bad manners.


@pytest.mark.proves("2026-07-28/streamable-http/17", "2026-07-28/progress/9")
@pytest.mark.parametrize("token", [1, None], ids=["while it streams", "before the answer"])
@pytest.mark.parametrize("tool", RUDE_LATENCY_S)
async def test_work_that_does_not_stop_at_once_is_not_heard_either(
    tool: str, token: int | None, autojump_clock: MockClock
) -> None:
    async with running(toolsets=[RUDE]) as probe:
        client = probe.modern()
        meta = {} if token is None else {"progressToken": token, "io.modelcontextprotocol/logLevel": "debug"}
        gone = trio.Event()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(set_after, gone, 1)
            async with client.post(tool_call(client, tool, **meta), gone=gone) as answer:
                told = [event.message async for event in answer.events()]
        assert trio.current_time() - began == pytest.approx(1 + RUDE_LATENCY_S[tool]), "the exchange ends with the work"
        assert steps(told) == ([] if token is None else [1])
        record = check_disconnected(probe, steps_done=probe.record()["steps_done"], latency_ms=10_000)
        assert record["cancel_latency_ms"] == pytest.approx(RUDE_LATENCY_S[tool] * 1000, abs=1)
        assert record["emitted"] == len(told)
        assert engine_tasks() == SERVICES
        dropped = [event["why"] for event in probe.events("message.dropped")]
        said_later = 0 if token is None or tool == "stumble" else 2
        assert dropped == ["the call was cancelled"] * said_later


# The race of the result and the disconnect.


@pytest.mark.proves("2026-07-28/cancellation/12")
@pytest.mark.parametrize("kind", ["stream", "one object"])
async def test_the_race_is_decided_once_however_close_it_is(kind: str, autojump_clock: MockClock) -> None:
    """The client goes just before the result is due, and then one turn of the scheduler later in each run."""
    seen = []
    for turns in range(-1, 20):
        async with running() as probe:
            client, gone = probe.modern(), trio.Event()
            request = slow(client, steps=1) if kind == "stream" else tool_call(client, "simple_tool", {"delayMs": 1000})
            async with trio.open_nursery() as nursery:
                nursery.start_soon(set_after_turns, gone, 1.0, turns)
                async with client.post(request, gone=gone) as answer:
                    got = [] if answer.status == 0 else await heard(client, answer)
            (settled,) = probe.events("call.settled")
            responses = [event for event in probe.events("message.emitted") if "id" in event["message"]]
            assert (settled["outcome"], len(responses)) in (("completed", 1), ("disconnected", 0))
            assert settled["sent_after_cancel"] == 0
            assert settled["answered"] == (len(responses) == 1)
            assert [message for message in got if "id" in message] in ([], [event["message"] for event in responses])
            assert engine_tasks() == SERVICES
            seen.append(settled["outcome"])
    assert set(seen) == {"completed", "disconnected"}, "the runs reach from one side of the race to the other"


async def set_after_turns(event: trio.Event, seconds: float, turns: int) -> None:
    due = trio.current_time() + seconds
    await trio.sleep_until(due - 1e-6 if turns < 0 else due)
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    assert trio.current_time() <= due
    event.set()


# What is no cancellation.

CLAUSE = "2026-07-28 basic/patterns/cancellation: closing the response stream is the cancellation"
IGNORED: dict[str, dict[str, Any] | None] = {
    "the request that runs": {"requestId": "it", "reason": "stop"},
    "an unknown request": {"requestId": "never seen"},
    "a request of another type": {"requestId": 17},
    "a finished request": {"requestId": "done"},
    "the request that made a task": {"requestId": "maker"},
    "no params": None,
    "no requestId": {"reason": "?"},
    "requestId null": {"requestId": None},
    "requestId a boolean": {"requestId": True},
    "requestId a fraction": {"requestId": 1.5},
    "requestId a list": {"requestId": ["it"]},
    "reason a number": {"requestId": "it", "reason": 5},
}


@pytest.mark.proves(
    "2026-07-28/cancellation/14",
    "2026-07-28/cancellation/15",
    "2026-07-28/cancellation/16",
    "2026-07-28/streamable-http/8",
    "ext-tasks/tasks/24",
)
@pytest.mark.parametrize("case", IGNORED)
async def test_a_cancellation_notification_over_http_is_accepted_without_effect_and_recorded(
    case: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """ "Streamable HTTP: Closing the SSE response stream is the cancellation signal. […] No `notifications/cancelled`
    message is required or expected."""
    client = probe.modern()
    params = IGNORED[case]
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", **({} if params is None else {"params": params})}
    await client.call("tools/call", {"name": "chatty"}, id="done")
    task = await client.call("tools/call", {"name": "task_with_progress", "arguments": {"itemCount": 3}}, id="maker")
    async with client.post(slow(client, steps=3)) as answer:
        await answer.first(1)
        async with client.post(note) as accepted:
            assert (accepted.status, await accepted.body()) == (202, b"")
        assert steps(await heard(client, answer)) == [2, 3, None]
    assert outcome(probe) == ("completed", None, 3, True)
    assert (await client.get_task(task["taskId"]))["status"] == "completed"
    assert [(event["what"], event["clause"]) for event in probe.events("client.misuse")] == [
        ("notifications/cancelled over HTTP", CLAUSE)
    ]
    (misuse,) = probe.events("client.misuse")
    received = [event for event in probe.events("message.received") if event["message"] == note]
    assert misuse["exchange"] == received[0]["exchange"], "the log tells which request did it"
    assert probe.events("call.cancelled") == []


@pytest.mark.proves("ext-tasks/tasks/50")
async def test_a_task_outlives_the_connection_that_made_it(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    request = tool_call(client, "task_with_progress", {"itemCount": 3})
    async with client.post(request) as answer:
        handle = (await answer.json())["result"]
    done = await client.until(handle["taskId"], "completed", pause=half_a_second)
    assert done["result"]["structuredContent"] == {"processedItems": 3}
    gone = trio.Event()
    gone.set()
    async with client.post(tool_call(client, "pure_task", {"durationMs": 1000}), gone=gone):
        pass
    await trio.sleep(2)
    assert [record.outcome for record in newest(probe.engine.records, 10)] == ["completed", "completed"]
    assert probe.events("call.cancelled") == []


async def half_a_second() -> None:
    await trio.sleep(0.5)


# Subscriptions.


# The exchange itself.
