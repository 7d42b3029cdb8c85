"""Limits of the modern era at their edges."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Ask, Tool, ToolResult, structured

from ..support.legacy import RpcError
from ..support.listening import listening
from ..support.modern import Modern, unread
from ..support.probe import running
from ..support.questions import ANSWERS, QUESTIONS

FORM: dict[str, Any] = {"type": "object", "properties": {}}


async def refused(client: Modern, method: str, params: dict[str, Any]) -> tuple[int, int, str]:
    """Status, code and message of an error."""
    async with client.post(client.request(method, params)) as answer:
        error = (await answer.json())["error"]
    return answer.status, error["code"], error["message"]


@pytest.mark.proves("2026-07-28/basic/13", "2026-07-28/basic/15", "2026-07-28/basic/18")
async def test_calls_beyond_the_limit_are_refused_and_nothing_else_is(autojump_clock: MockClock) -> None:
    async with running(max_calls=2) as probe:
        client = probe.modern()
        task = (await client.tool("cancellable_task"))["taskId"]
        slow = {"name": "simple_tool", "arguments": {"delayMs": 1000}}
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(client.call, "tools/call", slow)
            await wait_all_tasks_blocked(0.001)
            status, code, message = await refused(client, "tools/call", slow)
            assert (status, code) == (503, 1002)
            assert "max_calls is 2" in message
            assert (await client.get_task(task))["status"] == "working"
            await client.call("server/discover")
            await client.call("tasks/cancel", {"taskId": task})
        await client.call("tools/call", slow)


async def test_an_answer_that_nobody_reads_holds_its_place(autojump_clock: MockClock) -> None:
    async with running(max_unsent_bytes=8 * 1024 * 1024) as probe:
        client = probe.modern()
        big = {"name": "long_output", "arguments": {"blocks": 50, "chars": 65536}}
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(unread, client, client.request("tools/call", big))
            await wait_all_tasks_blocked()
            status, code, message = await refused(client, "tools/call", big)
            assert (status, code) == (503, 1002)
            assert "max_unsent_bytes" in message
            assert [event["limit"] for event in probe.events("limit.reached")] == ["max_unsent_bytes"]
            await client.tool("chatty")
            nursery.cancel_scope.cancel()
        await client.tool("long_output", big["arguments"])


async def test_a_small_answer_has_room_where_a_large_one_has_none(autojump_clock: MockClock) -> None:
    """Seven eighths of 8 MiB are unread, some of it small; what is large has no room then, and what is small has."""
    most = 8 * 1024 * 1024
    async with running(max_unsent_bytes=most) as probe, trio.open_nursery() as nursery:
        client = probe.modern()
        for blocks, chars in ((50, 65536), (50, 65536), (11, 65536), (1, 60_000), (1, 60_000)):
            call = {"name": "long_output", "arguments": {"blocks": blocks, "chars": chars}}
            nursery.start_soon(unread, client, client.request("tools/call", call))
            await wait_all_tasks_blocked()
        assert most - most // 8 < probe.engine.services.unsent.held < most - 500_000
        few = {"name": "long_output", "arguments": {"blocks": 2, "chars": 65536}}
        status, _, message = await refused(client, "tools/call", few)
        assert status == 503
        assert "max_unsent_bytes is 8388608, and the last eighth of it is for small ones" in message
        await client.tool("long_output", {"blocks": 1, "chars": 60_000})
        nursery.cancel_scope.cancel()


async def test_a_state_that_could_not_come_back_is_not_given() -> None:
    async with running(toolsets=(QUESTIONS,), tools=QUESTIONS.name, max_request_state=1024) as probe:
        client = probe.modern(tools=QUESTIONS.name)
        tool = QUESTIONS.tools[0].name
        answers = {"name": {"action": "accept", "content": {"name": "x" * 2000}}, "capital": ANSWERS["capital"]}
        first = await client.tool(tool)
        with pytest.raises(RpcError, match="max_request_state") as caught:
            await client.tool(tool, inputResponses=answers, requestState=first["requestState"])
        assert caught.value.code == -32602


async def give_up(context: ToolContext) -> ToolResult:
    """Ask, and stop waiting after a second."""
    with trio.move_on_after(1):
        await context.elicit("?", FORM, "first")
    context.set_status("going on")
    await context.sleep(10)
    return structured({})


async def ask_later(context: ToolContext) -> ToolResult:
    """Ask a second thing while the first waits."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(context.ask, {"first": Ask("elicitation/create", {"message": "1", "requestedSchema": FORM})})
        await context.sleep(1)
        await context.elicit("2", FORM, "second")
    return structured({})


TOOLS = Toolset(
    "odd",
    tuple(
        Tool(run.__name__, run.__name__, "", run, task_support="required", requires=("elicitation",))
        for run in (give_up, ask_later)
    ),
)


async def test_a_question_that_nobody_waits_for_any_more_is_not_shown(autojump_clock: MockClock) -> None:
    async with running(toolsets=(TOOLS,), tools="odd") as probe:
        client = probe.modern(tools="odd")
        id = (await client.tool("give_up"))["taskId"]
        await trio.sleep(0.5)
        assert set((await client.get_task(id))["inputRequests"]) == {"first"}
        await trio.sleep(1)
        task = await client.get_task(id)
        assert (task["status"], task["statusMessage"]) == ("working", "going on")
        late = {"taskId": id, "inputResponses": {"first": {"action": "accept"}}}
        await client.call("tasks/update", late)
        assert (await client.get_task(id))["status"] == "working"


async def test_a_further_question_is_told_to_who_listens(autojump_clock: MockClock) -> None:
    async with running(toolsets=(TOOLS,), tools="odd") as probe:
        client = probe.modern(tools="odd")
        id = (await client.tool("ask_later"))["taskId"]
        async with listening(client, taskIds=[id]) as ear:
            await trio.sleep(2)
            assert [set(told.get("inputRequests", {})) for _, told in ear.told][-2:] == [{"first"}, {"first", "second"}]


async def test_what_is_asked_for_beyond_the_limit_is_not_even_looked_at() -> None:
    async with running(max_subscriptions=3, tools="all") as probe:
        client = probe.modern()
        uris = [f"test://nothing/{number}" for number in range(3)] + ["test://watched-resource"]
        async with listening(client, resourceSubscriptions=uris) as ear:
            assert ear.honoured == {}
        assert [event["limit"] for event in probe.events("limit.reached")] == ["max_subscriptions"]
