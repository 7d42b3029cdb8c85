"""Create first, then messages, the result and the end: of every call, however it comes to its end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.legacy import ALL_CAPABILITIES
from ..support.pipes import STREAMS
from ..support.probe import Probe, running
from .links import (
    CREATE,
    END,
    LINKS,
    POLL,
    POLL_ALL,
    PROGRESS,
    RESUME,
    Client,
    Link,
    is_method,
    linked,
    mark,
    sequences,
    shape,
    steps,
)
from .tools import ALL, SLOW

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]


def one_stream(messages: list[Any]) -> str:
    """The id of the stream whose messages these are, from the first to the last."""
    first, last = messages[0], messages[-1]
    id = first["params"]["stream"]["streamId"]
    assert (first["method"], last["method"]) == (CREATE, END)
    assert last["params"]["streamId"] == id
    # An error has no place for a mark; the one of the end shows that it has a place of its own.
    for place, message in enumerate(messages, 1):
        about = mark(message)
        assert ("error" in message and not about) or (about["streamId"], about["sequence"]) == (id, place)
    return str(id)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_create_messages_result_end(
    probe: Probe, transport: str, revision: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport, revision=revision) as link:
        await link.say(link.tool("progress", SLOW, id="it", token="t"))
        heard = await link.until(is_method(END))
        one_stream(heard)
        assert shape(heard) == [CREATE, *[PROGRESS] * 4, "it", END]
        assert steps(heard) == [1, 2, 3, 4]
        assert await link.now() == []
        assert link.heard == heard


async def test_the_create_comes_with_the_call_and_not_with_its_first_message(
    link: Link, autojump_clock: MockClock
) -> None:
    await link.say(link.tool("simple_tool", {"delayMs": 5000}, id="it"))
    assert shape(await link.now()) == [CREATE]
    await trio.sleep(5)
    assert shape(await link.now()) == ["it", END]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"name": "chatty"}, None),
        ({"name": "simple_tool", "arguments": {"delayMs": 0}}, None),
        ({"name": "simple_tool", "arguments": {"delayMs": -1}}, None),
        ({"name": "no_such_tool"}, -32602),
        ({"name": "pure_task"}, -32601),
        ({"name": 5}, -32602),
        ({}, -32602),
        ({"name": "fail"}, 4711),
        ({"name": "chatty", "_meta": {"progressToken": []}}, -32602),
    ],
)
async def test_whatever_the_answer_is_it_stands_between_create_and_end(
    link: Link, call: dict[str, Any], code: int | None, autojump_clock: MockClock
) -> None:
    await link.say(link.request("tools/call", call, "it"))
    heard = await link.until(is_method(END))
    one_stream(heard)
    assert shape(heard) == [CREATE, "it", END]
    answer = heard[1]
    assert (answer["error"]["code"] if "error" in answer else None) == code
    await link.now()
    assert not [stream for stream in link.probe.engine.streams if stream.call is not None]


async def test_a_task_s_stream_holds_its_handle(link: Link, autojump_clock: MockClock) -> None:
    await link.say(link.tool("task_with_progress", {"itemCount": 2}, id="it", token="t", task={}))
    # On a pipe other messages about the task may come between.
    heard = [message for message in await link.until(is_method(END)) if mark(message)]
    one_stream(heard)
    assert shape(heard) == [CREATE, "it", END]
    task = heard[1]["result"]["task"]
    result = await link.ask(link.request("tasks/result", {"taskId": task["taskId"]}))
    assert result["result"]["structuredContent"] == {"processedItems": 2}
    assert not mark(result), "which is on no stream of the draft"
    assert steps(link.heard) == [1, 2]
    assert all(not mark(message) for message in link.heard if message.get("method") == PROGRESS)


async def test_a_cancelled_call_has_no_result_but_an_end(link: Link, autojump_clock: MockClock) -> None:
    await link.say(link.tool("progress", SLOW, id="it", token="t"))
    await trio.sleep(2.5)
    await link.cancel("it")
    heard = await link.until(is_method(END))
    one_stream(heard)
    assert shape(heard) == [CREATE, PROGRESS, PROGRESS, END]
    await trio.sleep(60)
    assert await link.now() == []
    assert link.probe.record()["outcome"] == "cancelled"


async def test_nothing_is_sent_after_a_cancellation_but_the_end_when_the_work_is_over(
    link: Link, autojump_clock: MockClock
) -> None:
    await link.say(link.tool("stubborn", id="it", token="t"))
    await trio.sleep(1)
    await link.cancel("it")
    await trio.sleep(4.5)
    assert shape(await link.now()) == [CREATE]
    await trio.sleep(1)
    assert shape(await link.now()) == [END]
    (settled,) = [event for event in link.probe.events("call.settled") if event["request_id"] == "it"]
    assert (settled["answered"], settled["sent_after_cancel"]) == (False, 0)


async def test_a_call_beyond_its_deadline_is_answered_between_create_and_end(
    transport: str, autojump_clock: Any
) -> None:
    async with running(toolsets=ALL, idle_deadline_s=3.0) as probe, linked(probe, transport) as link:
        await link.say(link.tool("simple_tool", {"delayMs": 5000}, id="it"))
        heard = await link.until(is_method(END))
        one_stream(heard)
        assert shape(heard) == [CREATE, "it", END]
        assert heard[1]["result"]["isError"]
        assert probe.record()["outcome"] == "timed_out"


@pytest.mark.parametrize(
    "capabilities",
    [
        ALL_CAPABILITIES,
        {},
        {"streams": {}},
        {"experimental": {}},
        {"experimental": {"stream": {}}},
    ],
)
async def test_who_does_not_declare_it_sees_nothing_of_it(
    probe: Probe, transport: str, capabilities: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as owner, linked(probe, transport, capabilities=capabilities) as link:
        await owner.start("progress", SLOW)
        await check_without(link)


async def check_without(link: Link) -> None:
    answer = await link.ask(link.tool("progress", {"steps": 1, "step_ms": 10}, token="t"))
    assert shape(link.heard) == [PROGRESS, answer["id"]]
    assert not any(mark(message) for message in link.heard)
    for method in (RESUME, POLL, POLL_ALL):
        for params in ({"streamId": "x"}, {}, None, {"streamId": 5}):
            error = await link.error(link.request(method, params))
            assert error["code"] == -32601
    assert sequences(link.heard) == [None] * len(link.heard)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_initialize_declares_it_to_those_who_declare_it(
    probe: Probe, transport: str, revision: str, autojump_clock: MockClock
) -> None:
    answers = []
    for capabilities in (STREAMS, ALL_CAPABILITIES, {"experimental": {"streams": {"any": 1}, "other": {}}}):
        async with trio.open_nursery() as nursery:
            answers.append(await initialized(probe, nursery, transport, revision, capabilities))
            nursery.cancel_scope.cancel()
    assert answers == [{"streams": {}}, None, {"streams": {}}]


async def initialized(
    probe: Probe, nursery: trio.Nursery, transport: str, revision: str, capabilities: dict[str, Any]
) -> Any:
    link = LINKS[transport](probe, nursery, Client(revision=revision, capabilities=capabilities))
    result = await link.open()
    assert result is not None
    return result["capabilities"].get("experimental")
