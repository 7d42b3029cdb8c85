"""Cancellation at every await of every tool that waits (product contract, section 3).

Each tool runs again and again; the n-th time it is stopped at the moment when its n-th await begins, before anything
else runs, until it gets through. So nothing here depends on how a tool or the engine arranges its awaits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.core.call import Cause
from probe.engine.engine import Engine
from probe.tools.catalogue import TOOLSETS

from ..support.calls import COUNTING
from ..support.http import Answer, Event
from ..support.inside import CALL, SERVICES, TASK, AtAwait, engine_tasks, receive, until_it_gets_through
from ..support.legacy import Legacy
from ..support.probe import Probe, running
from ..support.shown import newest

FORM = {"username": "ada", "email": "ada@example.org"}
CALLS: dict[str, tuple[dict[str, Any], int]] = {
    # tool: its arguments, and how often its own code waits with them
    "simple_tool": ({"delayMs": 20}, 1),
    "sync_with_progress": ({"itemCount": 4, "delayPerItemMs": 10}, 4),
    "sampling_demo": ({}, 1),
    "progress": ({"steps": 3, "step_ms": 20}, 3),
    "log_levels": ({}, 0),
    "elicit_form": ({}, 1),
    "elicit_simple_form": ({}, 1),
    # the page is declined; waiting for it to be confirmed is cancelled in tests/modern/test_url_elicitation.py
    "elicit_url": ({}, 1),
    "list_roots": ({}, 1),
    "ask_several": ({}, 3),
    "ping_client": ({}, 1),
    "announce_list_change": ({}, 0),
    "silent_call": ({"silentMs": 20}, 1),
    "progress_beyond_ceiling": ({"intervalMs": 50, "durationMs": 150}, 3),
    "progress_gap": ({"reports": 1, "intervalMs": 50, "gapMs": 20}, 3),
    "bulk_export": ({"pages": 3, "pageMs": 20}, 3),
    "test_tool_with_logging": ({}, 2),
    "test_tool_with_progress": ({}, 2),
    "test_sampling": ({"prompt": "?"}, 1),
    "test_elicitation": ({"message": "?"}, 1),
    "test_elicitation_sep1034_defaults": ({}, 1),
    "test_elicitation_sep1330_enums": ({}, 1),
    "test_reconnection": ({}, 1),
}
TASKS: dict[str, tuple[dict[str, Any], int]] = {
    "pure_task": ({"durationMs": 1000}, 1),
    "task_with_progress": ({"itemCount": 3, "delayPerItemMs": 10}, 3),
    "cancellable_task": ({"durationMs": 10000}, 10),
    "multi_stage_task": ({"stageCount": 3, "msPerStage": 500}, 3),
    "failing_task": ({"failAfterMs": 1000}, 1),
    "pausable_task": ({"itemCount": 3, "pauseAfterItem": 1}, 4),
}
TTL_MS = 60_000


def test_the_tables_hold_every_tool_that_waits() -> None:
    every = [tool for toolset in TOOLSETS for tool in toolset.tools]
    tools = [tool for tool in every if tool.waits and tool.since <= "2025-11-25"]
    assert {tool.name for tool in tools if tool.task_support == "required"} == TASKS.keys()
    assert {tool.name for tool in tools if tool.task_support != "required"} == CALLS.keys()


def person(request: dict[str, Any]) -> dict[str, Any]:
    """A client whose person and model answer at once."""
    if request["method"] in ("ping", "roots/list"):
        return {"roots": []} if request["method"] == "roots/list" else {}
    if request["params"].get("mode") == "url":
        return {"action": "decline"}
    if request["method"] == "elicitation/create":
        fields = request["params"]["requestedSchema"]["properties"]
        return {"action": "accept", "content": FORM if "username" in fields else {}}
    return {"role": "assistant", "content": {"type": "text", "text": "leaves"}, "model": "m", "stopReason": "endTurn"}


@dataclass
class Run:
    """One call that was stopped at one await, or got through."""

    probe: Probe
    client: Legacy
    mark: int = 0
    events: list[Event] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)

    def receive(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """A message of the client arrives at this very moment."""
        answer = receive(self.probe.engine, message)
        return [Event(None, sent.body.decode(), None).message for sent in answer or []]

    def stopped(self) -> None:
        self.mark = self.probe.engine.log.last

    def emitted_later(self) -> list[dict[str, Any]]:
        """What was sent after the stop, but for the refusals of further requests of the client, such as a resume."""
        (asked, *_) = [event for event in self.probe.events("message.received") if event["method"] == "tools/call"]
        entries = [event for event in self.probe.events("message.emitted") if event["seq"] > self.mark]
        return [
            entry["message"]
            for entry in entries
            if entry["exchange"] == asked["exchange"] or (entry["rpc"], entry["id"]) != ("error", None)
        ]

    def steps_done(self) -> float | None:
        """The last step that the client heard of; none of those of a tool that counts steps is 0."""
        heard = self.client.noted("notifications/progress")
        record = next(self.probe.engine.records.newest_first())
        return heard[-1]["progress"] if heard else 0 if record.tool in COUNTING else None

    def settled(self) -> list[dict[str, Any]]:
        return self.probe.events("call.settled")


def by_notification(run: Run) -> None:
    run.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "it"}})
    run.stopped()


def by_delete(run: Run) -> None:
    """DELETE, as its handler does it."""
    (session,) = run.probe.engine.sessions
    session.end(Cause.SESSION_END, "deleted")
    run.stopped()


async def call(
    run: Run, tool: str, arguments: dict[str, Any], stop: Callable[[Run], None], n: int, patience_s: float
) -> int:
    """Call a tool and stop it at its n-th await; returns how many awaits there were.

    The client hangs up after `patience_s` and after that reads on with `Last-Event-ID`, to the end of the stream.
    """
    client = run.client
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "token"}}
    with AtAwait(CALL, n, lambda: stop(run)) as instrument:
        async with client.post(client.request("tools/call", params, id="it")) as answer:
            with trio.move_on_after(patience_s):
                await take(run, answer.events())
        await resume(run)
    return instrument.awaits


async def resume(run: Run) -> None:
    """Come back with `Last-Event-ID` until the response has come or the server says that nothing more will."""
    for _ in range(10):
        if responses(run):
            return
        async with run.client.get(run.events[-1].id) as answer:
            if answer.status != 200:
                # 404: the session has ended. 410: the request was cancelled, its stream has been read to the end.
                assert answer.status in (404, 410)
                return
            await take(run, answer.events())
    raise AssertionError("coming back never ends")


async def take(run: Run, events: Any) -> None:
    """Read events, answering what the server asks; by then the session may have ended."""
    async for event in events:
        run.events.append(event)
        if event.data:
            await run.client.hear(event, lambda _: None)
            if event.message.keys() >= {"id", "method"}:
                response = {"jsonrpc": "2.0", "id": event.message["id"], "result": person(event.message)}
                async with run.client.post(response) as answer:
                    assert answer.status in (202, 404)


def responses(run: Run) -> list[dict[str, Any]]:
    return [event.message for event in run.events if event.data and "method" not in event.message]


STOPS = [
    pytest.param(by_notification, "notification", 1000, id="notification"),
    pytest.param(by_notification, "notification", 0.015, id="disconnect, then notification"),
    pytest.param(by_delete, "session_end", 1000, id="DELETE"),
]


@pytest.mark.proves(
    "2025-11-25/cancellation/5", "2025-11-25/cancellation/6", "2025-11-25/cancellation/7", "2025-11-25/cancellation/9"
)
@pytest.mark.parametrize(("stop", "cause", "patience_s"), STOPS)
@pytest.mark.parametrize("tool", CALLS)
async def test_a_call_stopped_at_any_await_is_never_heard_again(
    tool: str, stop: Callable[[Run], None], cause: str, patience_s: float, autojump_clock: MockClock
) -> None:
    """2025-11-25 basic/utilities/cancellation: receivers SHOULD "Stop processing the cancelled request", "Free
    associated resources", "Not send a response for the cancelled request"."""
    arguments, least = CALLS[tool]

    async def once(n: int) -> bool:
        async with running() as probe:
            run = Run(probe, await probe.client())
            before = engine_tasks()
            await call(run, tool, arguments, stop, n, patience_s)
            if responses(run):
                assert probe.record()["outcome"] == "completed"
                return True
            check_silence(run, cause, before)
            return False

    await until_it_gets_through(least, once)


def check_silence(run: Run, cause: str, before: list[str]) -> None:
    """A stopped call left one truthful record and nothing else."""
    assert run.emitted_later() == []
    (record,) = newest(run.probe.engine.records, 10)
    assert (record.outcome, record.done, record.answered) == ("cancelled", False, False)
    assert (record.cancelled_by, record.steps_done) == (cause, run.steps_done())
    (settled,) = run.settled()
    assert (settled["sent_after_cancel"], settled["answered"], settled["cancelled_by"]) == (0, False, cause)
    left = engine_tasks()
    assert left == (before if cause == "notification" else SERVICES)


@pytest.mark.parametrize("tool", ["progress", "sampling_demo", "test_tool_with_logging"])
async def test_a_call_stopped_by_the_shutdown_at_any_await_is_told_so(tool: str, autojump_clock: MockClock) -> None:
    """The client did not ask for the end, so it is owed an answer; nothing else follows the stop."""
    arguments, least = CALLS[tool]

    async def once(n: int) -> bool:
        async with running(grace_s=0) as probe, trio.open_nursery() as nursery:
            run = Run(probe, await probe.client())
            shut = trio.Event()
            nursery.start_soon(drain_when, probe.engine, shut)
            await call(run, tool, arguments, lambda _: shut.set(), n, 1000)
            nursery.cancel_scope.cancel()
            (response,) = responses(run)
            assert run.events[-1].message == response
            if "error" not in response:
                return True
            assert response["error"]["code"] == -32000
            record = probe.record()
            assert (record["outcome"], record["done"], record["answered"]) == ("cancelled", False, True)
            assert (record["cancelled_by"], record["steps_done"]) == ("shutdown", run.steps_done())
            assert [settled["sent_after_cancel"] for settled in run.settled()] == [0]
            return False

    await until_it_gets_through(least, once)


async def drain_when(engine: Engine, shut: trio.Event) -> None:
    await shut.wait()
    await engine.drain()


def by_tasks_cancel(run: Run) -> None:
    """`tasks/cancel` for the only task."""
    (task,) = run.probe.engine.tasks.everyone()
    request = run.client.request("tasks/cancel", {"taskId": task.id}, id="stop")
    (answer,) = run.receive(request)
    run.answers.append(answer)
    run.stopped()


def by_notification_for_the_maker(run: Run) -> None:
    run.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "it"}})
    run.stopped()


async def as_task(
    run: Run, tool: str, arguments: dict[str, Any], stop: Callable[[Run], None], n: int
) -> dict[str, Any]:
    """Run a task that is stopped at its n-th await; returns it as it is just before its ttl."""
    params = {"name": tool, "arguments": arguments, "task": {"ttl": TTL_MS}, "_meta": {"progressToken": "token"}}
    with AtAwait(TASK, n, lambda: stop(run)):
        handle = await run.client.call("tools/call", params, id="it")
        await trio.sleep(TTL_MS / 1000 - 1)
    return await run.client.call("tasks/get", {"taskId": handle["task"]["taskId"]})


@pytest.mark.proves("2025-11-25/tasks/36", "2025-11-25/tasks/37", "2025-11-25/tasks/38")
@pytest.mark.parametrize("tool", TASKS)
async def test_a_task_cancelled_at_any_await_stays_cancelled(tool: str, autojump_clock: MockClock) -> None:
    arguments, least = TASKS[tool]

    async def once(n: int) -> bool:
        async with running() as probe, trio.open_nursery() as nursery:
            run = Run(probe, await probe.client())
            await nursery.start(run.client.listen, person)
            before = engine_tasks()
            task = await as_task(run, tool, arguments, by_tasks_cancel, n)
            through = not run.answers or "error" in run.answers[0]
            if not through:
                check_cancelled_task(run, task)
                await trio.sleep(2)
                assert probe.engine.tasks.everyone() == []
                assert engine_tasks() == before
            nursery.cancel_scope.cancel()
        return through

    await until_it_gets_through(least, once)


def check_cancelled_task(run: Run, task: dict[str, Any]) -> None:
    """A cancelled task left one truthful record, and the client heard nothing more of it."""
    (answer,) = run.answers
    assert (task["status"], task) == ("cancelled", run.client.result(answer))
    statuses = [note["status"] for note in run.client.noted("notifications/tasks/status")]
    assert (statuses[-1], statuses.count("cancelled")) == ("cancelled", 1)
    # A question that waits for a person is withdrawn; nothing else may follow.
    earlier = [event for event in run.probe.events("message.received", "message.emitted") if event["seq"] <= run.mark]
    answered = [event for event in earlier if event["kind"] == "message.received" and "result" in event["message"]]
    asked = [event for event in earlier if event["message"].get("method") == "elicitation/create"]
    withdrawn = ["notifications/cancelled"] * (len(asked) - len(answered))
    assert [message["method"] for message in run.emitted_later() if "method" in message] == withdrawn
    (record,) = newest(run.probe.engine.records, 10)
    assert (record.outcome, record.done, record.answered) == ("cancelled", False, True)
    assert (record.cancelled_by, record.steps_done) == ("tasks_cancel", run.steps_done())
    (settled,) = run.settled()
    assert (settled["sent_after_cancel"], settled["cancelled_by"]) == (0, "tasks_cancel")


async def hold_get(run: Run, *, task_status: trio.TaskStatus[Answer]) -> None:
    """Keep a GET stream open."""
    async with run.client.get() as answer:
        task_status.started(answer)
        await trio.sleep_forever()


@pytest.mark.parametrize("tool", ["task_with_progress", "pausable_task"])
async def test_a_task_goes_with_its_session_at_any_await(tool: str, autojump_clock: MockClock) -> None:
    """Product contract, section 3: every task of a deleted session is cancelled and recorded as such."""
    arguments, least = TASKS[tool]

    async def once(n: int) -> bool:
        async with running() as probe, trio.open_nursery() as nursery:
            run = Run(probe, await probe.client())
            standalone = await nursery.start(hold_get, run)
            nursery.start_soon(take, run, standalone.events())
            params = {"name": tool, "arguments": arguments, "task": {"ttl": TTL_MS}, "_meta": {"progressToken": 1}}
            with AtAwait(TASK, n, lambda: by_delete(run)):
                async with run.client.post(run.client.request("tools/call", params)):
                    await trio.sleep(TTL_MS / 1000 - 1)
            (record,) = newest(probe.engine.records, 10)
            through = record.outcome == "completed"
            if not through:
                assert (record.outcome, record.cancelled_by, record.done) == ("cancelled", "session_end", False)
                assert (record.answered, record.steps_done) == (True, run.steps_done())
                assert [settled["sent_after_cancel"] for settled in run.settled()] == [0]
                assert [event["status"] for event in probe.events("task.changed")][-1] == "cancelled"
                assert probe.engine.tasks.everyone() == []
                assert engine_tasks() == SERVICES
            nursery.cancel_scope.cancel()
            return through

    await until_it_gets_through(least, once)


async def test_waiting_for_a_task_can_be_stopped_at_any_await(autojump_clock: MockClock) -> None:
    """2025-11-25 basic/utilities/tasks: requestors go on "if their previous `tasks/result` request failed or was
    cancelled"; the task notices nothing."""

    async def once(n: int) -> bool:
        async with running() as probe:
            run = Run(probe, await probe.client())
            handle = await run.client.tool("pure_task", {"durationMs": 1000}, task={})
            named = {"taskId": handle["task"]["taskId"]}
            with AtAwait(CALL, n, lambda: by_notification(run)):
                async with run.client.post(run.client.request("tasks/result", named, "it")) as answer:
                    await take(run, answer.events())
            assert (await run.client.call("tasks/result", named))["structuredContent"]
            assert probe.record()["outcome"] == "completed"
            return responses(run) != []

    await until_it_gets_through(1, once)


@pytest.mark.proves("2025-11-25/cancellation/4")
async def test_a_task_survives_the_cancellation_of_its_request_at_any_await(autojump_clock: MockClock) -> None:
    arguments, least = TASKS["task_with_progress"]

    async def once(n: int) -> bool:
        async with running() as probe:
            run = Run(probe, await probe.client())
            task = await as_task(run, "task_with_progress", arguments, by_notification_for_the_maker, n)
            assert task["status"] == "completed"
            assert len(probe.events("client.misuse")) == (run.mark > 0)
            return run.mark == 0

    await until_it_gets_through(least, once)
