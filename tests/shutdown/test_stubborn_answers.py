"""Work that goes on when its time to clean up is over: the drain answers for it, ends its stream, and records it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..streams.links import END, linked, shape
from ..support.calls import ERAS, heard, tool_call
from ..support.http import messages
from ..support.inside import SERVICES, engine_tasks
from ..support.probe import Probe, running

LASTS_S = 60
CLEANUP_S = 5


async def _stubborn(context: ToolContext) -> ToolResult:
    context.report_progress(1)
    with trio.CancelScope(shield=True):
        await trio.sleep(LASTS_S)
        context.report_progress(2)
    return structured({})


CALL = {"name": "stubborn", "arguments": {}, "_meta": {"progressToken": "t"}}
STUBBORN = Toolset(
    "stubborn",
    tuple(
        Tool(name=name, title="T", exercises="", shows="", description="D", run=_stubborn, task_support=support)
        for name, support in (("stubborn", "forbidden"), ("task", "required"))
    ),
)


@pytest.fixture(autouse=True)
def nothing_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """That the work ends late is no defect, and nothing is logged as one."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def judge(probe: Probe) -> None:
    """What the audit has of the only call, before its work has ended and after."""
    row = probe.record()
    assert (row["outcome"], row["cancelled_by"], row["answered"]) == ("cancelled", "shutdown", True)
    assert len(probe.events("call.settled")) == 1


async def ends(probe: Probe, began: float) -> None:
    """The drain took as long as work may clean up, and nothing changes when the work is over."""
    assert trio.current_time() - began == pytest.approx(CLEANUP_S)
    judge(probe)
    emitted = len(probe.events("message.emitted"))
    await trio.sleep(LASTS_S)
    judge(probe)
    assert len(probe.events("message.emitted")) == emitted
    assert engine_tasks() == SERVICES


@pytest.mark.parametrize(("revision", "code"), list(zip(ERAS, (-32000, 1002), strict=True)))
async def test_a_call_is_answered(revision: str, code: int, autojump_clock: MockClock) -> None:
    async with running(toolsets=[STUBBORN], grace_s=0) as probe:
        client = await probe.of(revision)
        async with client.post(tool_call(client, "stubborn", progressToken=1)) as answer:
            await answer.first(1)
            began = trio.current_time()
            await probe.engine.drain()
            *_, last = await heard(client, answer)
            assert (last["id"], last["error"]["code"]) == ("it", code)
            assert "shutting down" in last["error"]["message"]
            await ends(probe, began)


@pytest.mark.parametrize("transport", ["http", "pipe"])
async def test_a_draft_stream_has_its_end(transport: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[STUBBORN], grace_s=0) as probe, linked(probe, transport) as link:
        await link.start("stubborn", {}, id="it", token="t")
        began = trio.current_time()
        await probe.engine.drain()
        assert shape(last := await link.now())[-2:] == ["it", END]
        assert "shutting down" in last[-2]["error"]["message"]
        await ends(probe, began)


async def test_a_task(autojump_clock: MockClock) -> None:
    async with running(toolsets=[STUBBORN], grace_s=0) as probe:
        client = probe.modern()
        await client.tool("task")
        await trio.sleep(1)
        began = trio.current_time()
        await probe.engine.drain()
        assert trio.current_time() - began == pytest.approx(CLEANUP_S)
        judge(probe)
        await trio.sleep(LASTS_S)
        judge(probe)


async def test_what_its_client_has_cancelled_stays_silent(autojump_clock: MockClock) -> None:
    async with running(toolsets=[STUBBORN], grace_s=0) as probe:
        client = await probe.client()
        async with client.post(client.request("tools/call", CALL, "it")) as answer:
            await answer.first(1)
            await client.notify("notifications/cancelled", {"requestId": "it"})
            await probe.engine.drain()
            assert [message for message in messages(await client.read(answer)) if "id" in message] == []
        row = probe.record()
        assert (row["outcome"], row["cancelled_by"], row["answered"]) == ("cancelled", "notification", False)
        await trio.sleep(LASTS_S)
