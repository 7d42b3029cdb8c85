"""The client goes at every await of every tool that waits (product contract, section 3, column "modern HTTP").

Each tool runs again and again; the n-th time its client goes at the moment when its n-th await begins, until it gets
through. So nothing here depends on how a tool or the engine arranges its awaits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.core.call import Cause
from probe.tools.catalogue import TOOLSETS
from probe.wire.revisions import V2026_07_28

from ..support.calls import COUNTING, check_disconnected, emitted_after, heard, tool_call
from ..support.http import Answer
from ..support.inside import MODERN_CALL, SERVICES, TASK, AtAwait, engine_tasks, until_it_gets_through
from ..support.legacy import ALL_CAPABILITIES
from ..support.modern import WITH_TASKS, Modern
from ..support.probe import Probe, running
from ..support.shown import newest

FORM = {"username": "ada", "email": "ada@example.org", "name": "Ada", "color": "red", "count": 3, "ok": True}
CAPABILITIES = {**ALL_CAPABILITIES, "elicitation": {"form": {}, "url": {}}}
CALLS: dict[str, tuple[dict[str, Any], int]] = {
    # tool: its arguments, and how often its own code waits with them, all rounds together
    "simple_tool": ({"delayMs": 20}, 1),
    "sync_with_progress": ({"itemCount": 4, "delayPerItemMs": 10}, 4),
    "sampling_demo": ({}, 0),
    "progress": ({"steps": 3, "step_ms": 20}, 3),
    "log_levels": ({}, 0),
    "elicit_form": ({}, 0),
    "elicit_simple_form": ({}, 0),
    "elicit_url": ({}, 1),
    "list_roots": ({}, 0),
    "ask_several": ({}, 0),
    "announce_list_change": ({}, 0),
    "silent_call": ({"silentMs": 20}, 1),
    "progress_beyond_ceiling": ({"intervalMs": 50, "durationMs": 150}, 3),
    "progress_gap": ({"reports": 1, "intervalMs": 50, "gapMs": 20}, 3),
    "bulk_export": ({"pages": 3, "pageMs": 20}, 3),
    "test_tool_with_logging": ({}, 2),
    "test_tool_with_progress": ({}, 2),
    "test_sampling": ({"prompt": "?"}, 0),
    "test_elicitation": ({"message": "?"}, 0),
    "test_elicitation_sep1034_defaults": ({}, 0),
    "test_elicitation_sep1330_enums": ({}, 0),
    "test_streaming_elicitation": ({}, 2),
    "test_logging_tool": ({}, 1),
    "test_trigger_tool_change": ({}, 0),
    "test_trigger_prompt_change": ({}, 0),
    "test_input_required_result_elicitation": ({}, 0),
    "test_input_required_result_sampling": ({}, 0),
    "test_input_required_result_list_roots": ({}, 0),
    "test_input_required_result_request_state": ({}, 0),
    "test_input_required_result_multiple_inputs": ({}, 0),
    "test_input_required_result_multi_round": ({}, 0),
    "test_input_required_result_tampered_state": ({}, 0),
    "test_input_required_result_capabilities": ({}, 0),
    "slow_compute": ({"seconds": 2.5}, 3),
}
TASKS: dict[str, tuple[dict[str, Any], int]] = {
    "pure_task": ({"durationMs": 1000}, 1),
    "task_with_progress": ({"itemCount": 3, "delayPerItemMs": 10}, 3),
    "cancellable_task": ({"durationMs": 10000}, 10),
    "multi_stage_task": ({"stageCount": 3, "msPerStage": 500}, 3),
    "failing_task": ({"failAfterMs": 1000}, 1),
    "pausable_task": ({"itemCount": 3, "pauseAfterItem": 1}, 4),
    "slow_compute": ({"seconds": 2.5}, 3),
    "failing_job": ({}, 1),
    "protocol_error_job": ({}, 1),
    "confirm_delete": ({"filename": "notes.txt"}, 1),
    "multi_input": ({}, 1),
    "test_tool_with_task": ({}, 1),
}


def test_the_tables_hold_every_tool_that_waits() -> None:
    tools = [tool for toolset in TOOLSETS for tool in toolset.tools if tool.waits and tool.is_defined(V2026_07_28)]
    assert {tool.name for tool in tools if tool.task_support != "forbidden"} == TASKS.keys()
    assert {tool.name for tool in tools if tool.task_support != "required"} == CALLS.keys()


def person(request: dict[str, Any]) -> dict[str, Any]:
    """A client whose person and model answer at once."""
    if request["method"] == "roots/list":
        return {"roots": []}
    if request["params"].get("mode") == "url":
        return {"action": "accept"}
    if request["method"] == "elicitation/create":
        fields = request["params"]["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: FORM[name] for name in fields if name in FORM}}
    return {"role": "assistant", "content": {"type": "text", "text": "leaves"}, "model": "m", "stopReason": "endTurn"}


@dataclass
class Run:
    """One call, in as many rounds as it takes, whose client goes at one await, or which gets through."""

    probe: Probe
    client: Modern
    gone: trio.Event = field(default_factory=trio.Event)
    received: list[dict[str, Any]] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)

    def steps_done(self) -> float | None:
        """How far the last round was, as far as the server told."""
        heard = [event["message"] for event in self.probe.events("message.emitted")]
        in_this_round = heard[max((n + 1 for n, message in enumerate(heard) if "id" in message), default=0) :]
        values = [note["params"]["progress"] for note in in_this_round if note["method"] == "notifications/progress"]
        record = next(self.probe.engine.records.newest_first())
        return values[-1] if values else 0 if record.tool in COUNTING else None


def by_connection(run: Run) -> None:
    """The connection closes; whoever watches it learns of that in the next turn of the scheduler."""
    run.gone.set()


def at_this_very_moment(run: Run) -> None:
    """The watcher of the connection is through before anything else runs."""
    for call in run.probe.engine.modern.running:
        call.cancel(Cause.DISCONNECT, "the client closed the response stream")
    run.gone.set()


async def call(run: Run, tool: str, arguments: dict[str, Any], stop: Callable[[Run], None], n: int) -> int:
    """Call a tool, in rounds, until it has a result or its client goes at the n-th await; the number of awaits."""
    meta = {"progressToken": "token", "io.modelcontextprotocol/logLevel": "debug"}
    retry: dict[str, Any] = {}
    with AtAwait(MODERN_CALL, n, lambda: stop(run)) as instrument:
        for _ in range(10):
            request = tool_call(run.client, tool, arguments, **meta)
            request["params"] |= retry
            async with trio.open_nursery() as nursery:
                nursery.start_soon(confirm_pages, run, retry)
                async with run.client.post(request, gone=run.gone) as answer:
                    messages = [] if answer.status == 0 else await read(run, answer)
                nursery.cancel_scope.cancel()
            result = messages[-1].get("result") if messages else None
            if run.gone.is_set() or result is None or result["resultType"] != "input_required":
                break
            asked = result["inputRequests"]
            run.pages += [str(question["params"].get("url", "")) for question in asked.values()]
            retry = {"inputResponses": {key: person(question) for key, question in asked.items()}}
            retry["requestState"] = result["requestState"]
    return instrument.awaits


async def confirm_pages(run: Run, retry: dict[str, Any]) -> None:
    """A second after the client has accepted to open a page, its person confirms it."""
    if retry:
        await trio.sleep(1)
        for url in run.pages:
            run.probe.engine.services.interactions.confirm(url.rpartition("/")[2])


async def read(run: Run, answer: Answer) -> list[dict[str, Any]]:
    messages = await heard(run.client, answer)
    run.received += messages
    return messages


@pytest.mark.proves(
    "2026-07-28/streamable-http/15",
    "2026-07-28/streamable-http/16",
    "2026-07-28/streamable-http/17",
    "2026-07-28/cancellation/3",
    "2026-07-28/cancellation/12",
)
@pytest.mark.parametrize(
    ("stop", "tool"),
    [
        *((by_connection, tool) for tool in CALLS),
        # Tools that do not wait themselves differ in what they ask, and not in their awaits.
        *((at_this_very_moment, tool) for tool, (_, waits) in CALLS.items() if waits),
        *((at_this_very_moment, tool) for tool in ("elicit_form", "ask_several", "announce_list_change")),
    ],
)
async def test_a_call_whose_client_goes_at_any_await_is_never_heard_again(
    stop: Callable[[Run], None], tool: str, autojump_clock: MockClock
) -> None:
    arguments, least = CALLS[tool]

    async def once(n: int) -> bool:
        async with running() as probe:
            run = Run(probe, probe.modern(capabilities=CAPABILITIES))
            await call(run, tool, arguments, stop, n)
            assert engine_tasks() == SERVICES
            assert probe.engine.modern.running == set()
            if not run.gone.is_set():
                assert "result" in run.received[-1]
                assert probe.record()["outcome"] == "completed"
                return True
            check_end(run, "message.emitted" if stop is at_this_very_moment else "message.")
            return False

    await until_it_gets_through(least, once)


def check_end(run: Run, ended: str) -> None:
    """The call in which the client went was silenced, or had come to its end: it left one truth, and nothing else.

    `ended` is the kind of events that there are none of after the cancellation.
    """
    probe, record = run.probe, run.probe.record()
    sent = [event["message"] for event in probe.events("message.emitted")]
    assert run.received == sent[: len(run.received)], "what was sent may be lost, but nothing else is"
    if record["outcome"] == "disconnected":
        assert "method" in sent[-1] if record["emitted"] else len(sent) == len(newest(probe.engine.records, 99)) - 1
        check_disconnected(probe, steps_done=run.steps_done(), latency_ms=0)
        (cancelled,) = [event for event in probe.events("call.cancelled") if event["effect"]]
        assert [event for event in emitted_after(probe, cancelled["seq"]) if event["kind"].startswith(ended)] == []
    else:
        assert (record["outcome"], record["cancelled_by"]) in (("completed", None), ("input_required", None))
        assert "result" in sent[-1]
        assert [event for event in probe.events("call.cancelled") if event["effect"]] == []


async def test_a_subscription_whose_client_goes_at_any_await_is_never_heard_again(autojump_clock: MockClock) -> None:
    """basic/patterns/subscriptions: the client cancels it by closing the SSE stream."""
    asked = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}}

    async def once(n: int) -> bool:
        async with running() as probe, trio.open_nursery() as nursery:
            client, gone = probe.modern(), trio.Event()
            nursery.start_soon(end_after, probe, 10)
            with AtAwait(MODERN_CALL, n, gone.set):
                async with client.post(client.request("subscriptions/listen", asked, id="L"), gone=gone) as answer:
                    if answer.status:
                        await heard_on(client, answer)
            nursery.cancel_scope.cancel()
            assert len(probe.engine.modern.listeners) == 0
            assert engine_tasks() == SERVICES
            (settled,) = probe.events("call.settled")
            assert settled["sent_after_cancel"] == 0
            if settled["outcome"] == "disconnected":
                (cancelled,) = probe.events("call.cancelled")
                assert emitted_after(probe, cancelled["seq"]) == []
            return not gone.is_set()

    await until_it_gets_through(1, once)


async def end_after(probe: Probe, seconds: float) -> None:
    await trio.sleep(seconds)
    probe.engine.modern.listeners.end_all()


async def heard_on(client: Modern, answer: Answer) -> None:
    async for event in answer.events():
        if "method" in event.message:
            client.check(event.message)
        else:
            client.result(event.message, "subscriptions/listen", "L")


# Tasks: their client's going means nothing to them, `tasks/cancel` everything.


async def make(run: Run, tool: str, arguments: dict[str, Any]) -> str:
    """Have a task made, with the answers that it wants before; its id."""
    params = {"name": tool, "arguments": arguments}
    handle, _ = await run.client.rounds("tools/call", params, lambda key, question: person(question))
    assert handle["resultType"] == "task"
    return str(handle["taskId"])


async def attend(run: Run, task_id: str) -> dict[str, Any]:
    """Poll a task and answer what it asks until it is over."""
    for _ in range(1000):
        task = await run.client.get_task(task_id)
        if task["status"] == "input_required":
            answers = {key: person(question) for key, question in task["inputRequests"].items()}
            await run.client.call("tasks/update", {"taskId": task_id, "inputResponses": answers})
        elif task["status"] != "working":
            return task
        await trio.sleep(0.5)
    raise AssertionError("the task never ends")


@pytest.mark.parametrize("tool", TASKS)
async def test_a_task_cancelled_at_any_await_stays_cancelled(tool: str, autojump_clock: MockClock) -> None:
    """Product contract, section 3: `tasks/cancel` makes the task `cancelled`, and that it stays for good."""
    arguments, least = TASKS[tool]

    async def once(n: int) -> bool:
        async with running(task_ttl_ms=60_000) as probe:
            run = Run(probe, probe.modern(capabilities=WITH_TASKS))
            with AtAwait(TASK, n, lambda: cancel_task(run)):
                task_id = await make(run, tool, arguments)
                before_the_end = await attend(run, task_id)
                await trio.sleep(30)
                task = await run.client.get_task(task_id)
            assert task == before_the_end, "a final status is final"
            if not run.gone.is_set():
                assert task["status"] in ("completed", "failed")
                return True
            check_cancelled_task(run, task)
            return False

    await until_it_gets_through(least, once)


def cancel_task(run: Run) -> None:
    """`tasks/cancel` arrives for the task; not when it is over, which is no cancellation any more."""
    (task,) = run.probe.engine.tasks.everyone()
    if not task.machine.terminal:
        run.probe.engine.tasks.cancel(task, Cause.TASKS_CANCEL, "The task was cancelled by request.")
        run.gone.set()


def check_cancelled_task(run: Run, task: dict[str, Any]) -> None:
    assert (task["status"], task["statusMessage"]) == ("cancelled", "The task was cancelled by request.")
    record = run.probe.record()
    assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "tasks_cancel", False)
    (cancelled,) = [event for event in run.probe.events("call.cancelled") if event["effect"]]
    (settled,) = [event for event in run.probe.events("call.settled") if event["call"] == record["call"]]
    assert (settled["sent_after_cancel"], settled["scope_exit_ms"]) == (0, 0)
    statuses = [event["status"] for event in run.probe.events("task.changed")]
    assert (statuses[-1], statuses.count("cancelled")) == ("cancelled", 1)
    sent = [event["message"] for event in run.probe.events("message.emitted") if event["seq"] > cancelled["seq"]]
    assert all("id" in message for message in sent), "only what was asked is answered"
