"""One faulty tool ends its own call and nothing else: the session, the other sessions and the services go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import TaskSupport, Tool, ToolFailureError, ToolResult, content, structured, text
from probe.engine.tasks import Task
from probe.log.context import Recorder
from probe.wire.errors import McpError

from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import RpcError
from ..support.probe import Probe, running
from ..support.shown import newest


async def _fail(error: BaseException) -> None:
    raise error


async def _fail_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("the cleanup failed")


async def _fails_in_its_cleanup(context: ToolContext) -> ToolResult:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_fail_when_cancelled)
        await context.sleep(1000)
    return content([])


async def _returns_no_json(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    return {"content": [text("x")], "structuredContent": {"x": object()}}


async def _returns_half_a_character(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    return content([text("\ud800")])


async def _fails_with_half_a_character(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    raise ToolFailureError("\ud800")


async def _raises_no_json(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    raise McpError(4711, "wrong", {"x": object()})


async def _reports_no_json(context: ToolContext) -> ToolResult:
    """The first report is sent at once, the second by the pump, while the tool sleeps."""
    context.report_progress(1)
    context.report_progress(2, message="\ud800")
    await context.sleep(20)
    return content([])


async def _fails_twice_in_a_nursery(context: ToolContext) -> ToolResult:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_fail, ToolFailureError("one"))
        nursery.start_soon(_fail, ToolFailureError("two"))
    return content([])


async def _fails_in_a_nursery(context: ToolContext) -> ToolResult:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_fail, ToolFailureError("no luck"))
        await context.sleep(1000)
    return content([])


def _answers_no_json(arguments: Any) -> ToolResult:
    return {"content": [text("x")], "structuredContent": {"x": object()}}


async def _works(context: ToolContext) -> ToolResult:
    await context.sleep(5)
    return structured({"fine": True})


FAULTY: list[Callable[[ToolContext], Awaitable[ToolResult]]] = [
    _returns_no_json,
    _returns_half_a_character,
    _fails_with_half_a_character,
    _raises_no_json,
    _reports_no_json,
    _fails_twice_in_a_nursery,
]


def _tool(run: Any) -> Tool:
    name = run.__name__.strip("_")
    support: TaskSupport = "optional" if run in FAULTY else "forbidden"
    return Tool(name=name, title=name, description=name, run=run, task_support=support)


TOOLSET = Toolset(
    "faulty",
    tuple(map(_tool, [*FAULTY, _fails_in_its_cleanup, _fails_in_a_nursery, _answers_no_json, _works])),
)
TOKEN = {"_meta": {"progressToken": "t"}}
each_fault = pytest.mark.parametrize("run", FAULTY, ids=lambda run: run.__name__.strip("_"))


@pytest.fixture
async def faulty(autojump_clock: MockClock) -> AsyncIterator[Probe]:
    """A probe with these tools; its progress gate lets one report through."""
    async with running(toolsets=[TOOLSET], progress_burst=1, progress_per_second=1) as probe:
        yield probe
        assert {*SERVICES} <= {*engine_tasks()}


@each_fault
async def test_a_result_that_cannot_be_told_is_an_internal_error(
    run: Any, faulty: Probe, autojump_clock: MockClock
) -> None:
    client, other = await faulty.client(), await faulty.client()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other.tool, "works")
        with pytest.raises(RpcError, match=r"^Internal error$") as caught:
            await client.tool(run.__name__.strip("_"), **TOKEN)
    assert caught.value.code == -32603
    records = {record.tool: record for record in newest(faulty.engine.records, 2)}
    assert records.pop("works").outcome == "completed", "the call of another session is not touched"
    (record,) = records.values()
    assert (record.outcome, record.answered, record.done) == ("protocol_error", True, False)
    assert await client.call("ping") == {}


@each_fault
async def test_the_modern_era_is_told_the_same(run: Any, faulty: Probe, autojump_clock: MockClock) -> None:
    client = faulty.modern(capabilities={})
    with pytest.raises(RpcError, match=r"^Internal error$"):
        await client.call("tools/call", {"name": run.__name__.strip("_")}, meta=TOKEN["_meta"])
    assert faulty.record()["outcome"] == "protocol_error"


@each_fault
async def test_a_task_fails_with_it(run: Any, faulty: Probe, autojump_clock: MockClock) -> None:
    client = await faulty.client()
    task = (await client.tool(run.__name__.strip("_"), task={}, **TOKEN))["task"]
    with pytest.raises(RpcError, match=r"^Internal error$"):
        await client.call("tasks/result", {"taskId": task["taskId"]})
    assert (await client.call("tasks/get", {"taskId": task["taskId"]}))["status"] == "failed"


async def test_a_tool_that_is_answered_at_once_is_judged_likewise(faulty: Probe, autojump_clock: MockClock) -> None:
    client = await faulty.client()
    with pytest.raises(RpcError, match=r"^Internal error$"):
        await client.tool("answers_no_json")
    assert faulty.record()["outcome"] == "protocol_error"


async def test_a_cleanup_that_fails_does_not_undo_the_cancellation(
    faulty: Probe, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The group holds the failure beside `Cancelled`: the former is logged, the latter goes on to the call's scope."""
    client = await faulty.client()
    request = client.request("tools/call", {"name": "fails_in_its_cleanup"}, "it")
    async with client.post(request) as answer:
        await answer.first(1)
        await client.cancel("it")
        assert await client.read(answer) == []
    assert (faulty.record()["outcome"], faulty.record()["answered"]) == ("cancelled", False)
    assert "the cleanup failed" in caplog.text
    assert await client.call("ping") == {}


async def test_the_deadline_of_such_a_tool_is_answered_as_any_other(faulty: Probe, autojump_clock: MockClock) -> None:
    client = await faulty.client()
    result = await client.tool("fails_in_its_cleanup")
    assert "no progress for 30 s" in result["content"][0]["text"]
    assert faulty.record()["outcome"] == "timed_out"


async def test_one_failure_out_of_a_nursery_is_that_failure(faulty: Probe, autojump_clock: MockClock) -> None:
    client = await faulty.client()
    assert await client.tool("fails_in_a_nursery") == {"content": [text("no luck")], "isError": True}


async def test_a_job_that_fails_ends_nothing_but_itself(
    faulty: Probe, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    client = await faulty.client()
    (session,) = faulty.engine.sessions

    async def job() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("a defect of this server")

    session.submit(job)
    await wait_all_tasks_blocked()
    assert "a defect of this server" in caplog.text
    assert await client.tool("works") == structured({"fine": True})


async def test_a_task_whose_end_cannot_be_told_ends_nothing_but_itself(
    faulty: Probe, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await faulty.client()
    handle = (await client.tool("returns_no_json", task={}))["task"]
    (task,) = faulty.engine.tasks.everyone()

    def announce(task: Task, recorder: Recorder) -> None:
        raise ValueError("a defect of this server")

    monkeypatch.setattr(task, "plan", replace(task.plan, announce=announce))
    await trio.sleep(2)
    assert "a defect of this server" in caplog.text
    with pytest.raises(RpcError, match="Task not found"):
        await client.call("tasks/get", {"taskId": handle["taskId"]})
    assert await client.tool("works") == structured({"fine": True})
