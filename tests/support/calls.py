"""Calls of both eras that tests ask for again and again, tools with bad manners, and what became of a call."""

from __future__ import annotations

from typing import Any

import trio

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolFailureError, ToolResult, structured

from .http import Answer
from .legacy import Legacy
from .modern import VERSION, Modern
from .probe import Probe
from .shown import newest

COUNTING = frozenset({"progress", "sync_with_progress", "task_with_progress", "cancellable_task"}) | {
    "multi_stage_task", "pausable_task", "progress_beyond_ceiling", "progress_gap", "bulk_export"
}  # fmt: skip
"""The tools whose records say 0 before their first step."""

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
ERAS = [LEGACY[-1], VERSION]
"""The newest revision of each era."""


def tool_call(
    client: Legacy | Modern, name: str, arguments: dict[str, Any] | None = None, id: Any = "it", **meta: Any
) -> dict[str, Any]:
    """A `tools/call` request; `meta` is added to its `_meta`."""
    return client.request("tools/call", {"name": name, "arguments": arguments or {}}, id=id, meta=meta)


def slow(client: Legacy | Modern, id: Any = "it", *, steps: int = 10, token: Any = "token") -> dict[str, Any]:
    """A request for one step per second, each of them reported."""
    return tool_call(client, "progress", {"steps": steps, "step_ms": 1000}, id, progressToken=token)


def silent(client: Legacy | Modern, id: Any = "it") -> dict[str, Any]:
    """A request that is answered after five seconds and says nothing before."""
    return tool_call(client, "simple_tool", {"delayMs": 5000}, id)


async def heard(client: Legacy | Modern, answer: Answer) -> list[dict[str, Any]]:
    """The messages of a whole response, or of what is left of it, each of them checked."""
    if answer.headers.get("content-type") == "application/json":
        messages = [await answer.json()]
    else:
        messages = [event.message async for event in answer.events() if event.data]
    for message in messages:
        if "method" in message:
            client.notes.append(client.check(message))
        elif isinstance(client, Legacy):
            client.check(message)
        elif "result" in message:
            client.result(message, "tools/call", message["id"])
    return messages


def steps(messages: list[dict[str, Any]]) -> list[Any]:
    """The progress values among messages; None for any other message."""
    return [message.get("params", {}).get("progress") for message in messages]


def misuses(probe: Probe) -> list[str]:
    """What the clients did wrong."""
    return [event["what"] for event in probe.events("client.misuse")]


def outcome(probe: Probe, request_id: Any = "it") -> tuple[Any, ...]:
    """What the record of a request says: outcome, by whom, steps, answered."""
    (record,) = [record for record in newest(probe.engine.records, 50) if record.request_id == request_id]
    return record.outcome, record.cancelled_by, record.steps_done, record.answered


def emitted_after(probe: Probe, seq: int) -> list[dict[str, Any]]:
    """What the server sent, or handed to a socket, after an event of its log."""
    return [event for event in probe.events("message.emitted", "message.delivered") if event["seq"] > seq]


def check_disconnected(probe: Probe, *, steps_done: Any, latency_ms: float = 1) -> dict[str, Any]:
    """The newest call was ended by its client's going, and nothing was sent afterwards; its record."""
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"]) == ("disconnected", "disconnect")
    assert (record["done"], record["answered"], record["steps_done"]) == (False, False, steps_done)
    assert record["cancel_latency_ms"] <= latency_ms
    asked = [event for event in probe.events("call.cancelled") if event["call"] == record["call"]]
    (cancelled,) = [event for event in asked if event["effect"]]
    assert (cancelled["by"], cancelled["reason"]) == ("disconnect", record["cancel_reason"])
    (settled,) = [event for event in probe.events("call.settled") if event["call"] == record["call"]]
    assert (settled["outcome"], settled["answered"]) == ("disconnected", False)
    assert (settled["sent_after_cancel"], settled["steps_done"]) == (0, steps_done)
    own = [event for event in emitted_after(probe, cancelled["seq"]) if event["call"] == record["call"]]
    assert [event for event in own if event["kind"] == "message.emitted"] == []
    return record


# Tools with bad manners: the work goes on for a while after it was told to stop.


async def _linger(context: ToolContext) -> ToolResult:
    context.report_progress(1)
    try:
        await context.sleep(1000)
    finally:
        with trio.CancelScope(shield=True):
            await context.sleep(0.5)
        context.log("info", "cleaned up")
        context.set_status("cleaned up")
        context.report_progress(2, 2, "cleaned up")
    return structured({})


async def _insist(context: ToolContext) -> ToolResult:
    context.report_progress(1)
    with trio.CancelScope(shield=True):
        await context.sleep(5)
        context.report_progress(2)
        context.log("info", "finished")
    return structured({"finished": True})


async def _stumble(context: ToolContext) -> ToolResult:
    context.report_progress(1)
    try:
        await context.sleep(1000)
        return structured({})
    finally:
        raise ToolFailureError("could not clean up")


RUDE = Toolset(
    "rude",
    (
        Tool("linger", "Linger", "Takes half a second to stop", _linger),
        Tool("insist", "Insist", "Finishes whatever happens", _insist),
        Tool("stumble", "Stumble", "Fails when it is stopped", _stumble),
    ),
)
RUDE_LATENCY_S = {"linger": 0.5, "insist": 4.0, "stumble": 0.0}
"""How long each of them goes on when it is stopped after one second."""
