"""The official Python SDK 1.30.0 on trio and over sockets, with its experimental tasks of 2025-11-25."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import McpError

from ...support.evidence import call_records

pytestmark = [
    # the SDK leaves the event streams that it has read enough of to the garbage collector
    pytest.mark.filterwarnings("ignore:Async generator '(httpx|httpcore|httpx_sse):ResourceWarning"),
    pytest.mark.filterwarnings("ignore:The experimental tasks API is deprecated:DeprecationWarning"),
]

BOUND_S = 30.0
RELATED_TASK = "io.modelcontextprotocol/related-task"
Json: TypeAlias = dict[str, Any]


@dataclass
class Person:
    """Who sits at the client: what is asked is kept, what is to be answered is set beforehand."""

    answer: types.ElicitResult = field(default_factory=lambda: types.ElicitResult(action="decline"))
    asked: list[types.ElicitRequestParams] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params)
        return self.answer

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text="old pond")
        return types.CreateMessageResult(role="assistant", content=content, model="test", stopReason="endTurn")

    async def note(self, message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            self.notes.append(message.root)

    def statuses(self, task_id: str) -> list[str]:
        """The statuses of one task that were announced, without repetitions."""
        told: list[str] = []
        for note in self.notes:
            if isinstance(note, types.TaskStatusNotification) and note.params.taskId == task_id:
                told += [note.params.status] if told[-1:] != [note.params.status] else []
        return told

    def progress(self) -> list[types.ProgressNotificationParams]:
        return [note.params for note in self.notes if isinstance(note, types.ProgressNotification)]


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def session(server: str, person: Person) -> AsyncIterator[ClientSession]:
    callbacks = {
        "elicitation_callback": person.elicit,
        "sampling_callback": person.sample,
        "message_handler": person.note,
    }
    with trio.fail_after(BOUND_S):
        async with (
            streamable_http_client(f"{server}?tools=all") as (read, write, _),
            ClientSession(read, write, **callbacks) as session,
        ):
            await session.initialize()
            yield session


async def begin(session: ClientSession, name: str, /, **arguments: Any) -> str:
    """Start a task; the handle comes at once, and is always `working`."""
    created = await session.experimental.call_tool_as_task(name, arguments)
    assert created.task.status == "working"
    assert created.task.ttl == 60_000
    return created.task.taskId


async def result_of(session: ClientSession, task_id: str) -> types.CallToolResult:
    return await session.experimental.get_task_result(task_id, types.CallToolResult)


async def status_of(session: ClientSession, task_id: str) -> str:
    return (await session.experimental.get_task(task_id)).status


# --- calls without a task


CALLS: list[tuple[str, Json, Json | None]] = [
    ("simple_tool", {"delayMs": 20}, {"message": "Completed after 20ms"}),
    ("sync_with_progress", {"itemCount": 2, "delayPerItemMs": 10}, {"processedItems": 2}),
    ("progress", {"steps": 2, "step_ms": 5}, {"steps": 2, "notified": False, "done": True}),
    ("sampling_demo", {}, {"text": "old pond"}),
    ("long_output", {"blocks": 2}, None),
    ("chatty", {}, None),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CALLS)
async def test_a_tool_answers_a_plain_call(
    session: ClientSession, name: str, arguments: Json, expected: Json | None
) -> None:
    result = await session.call_tool(name, arguments)
    assert (result.isError, result.structuredContent) == (False, expected)


async def test_the_list_says_which_tools_only_run_as_tasks(session: ClientSession) -> None:
    tools = (await session.list_tools()).tools
    required = [tool.name for tool in tools if tool.execution and tool.execution.taskSupport == "required"]
    assert sorted(required) == [
        "cancellable_task",
        "failing_task",
        "multi_stage_task",
        "pausable_task",
        "pure_task",
        "task_with_progress",
    ]


async def test_the_server_declares_its_tasks(session: ClientSession) -> None:
    declared = session.get_server_capabilities()
    assert declared is not None
    assert declared.tasks is not None
    assert None not in (declared.tasks.list, declared.tasks.cancel, declared.tasks.requests)


@pytest.mark.parametrize("name", ["pure_task", "failing_task", "pausable_task"])
async def test_a_task_tool_without_a_task_is_refused(session: ClientSession, name: str) -> None:
    """2025-11-25 basic/utilities/tasks: "Servers MUST return a -32601" if the client does not make it a task."""
    with pytest.raises(McpError) as caught:
        await session.call_tool(name)
    assert caught.value.error.code == types.METHOD_NOT_FOUND


async def test_a_plain_tool_as_a_task_is_refused(session: ClientSession) -> None:
    with pytest.raises(McpError) as caught:
        await session.experimental.call_tool_as_task("simple_tool")
    assert caught.value.error.code == types.METHOD_NOT_FOUND


# --- tasks that complete


TASKS: list[tuple[str, Json, Json]] = [
    ("pure_task", {"durationMs": 1000}, {"message": "Completed after 1000ms"}),
    ("task_with_progress", {"itemCount": 5, "delayPerItemMs": 20}, {"processedItems": 5}),
    ("multi_stage_task", {"stageCount": 2, "msPerStage": 500}, {"stagesCompleted": ["Initializing", "Finalizing"]}),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), TASKS)
async def test_a_task_is_polled_to_its_end_and_gives_the_result_of_the_call(
    session: ClientSession, name: str, arguments: Json, expected: Json
) -> None:
    task_id = await begin(session, name, **arguments)
    seen = [status.status async for status in session.experimental.poll_task(task_id)]
    result = await result_of(session, task_id)
    assert seen[-1] == "completed"
    assert set(seen[:-1]) <= {"working"}
    assert (result.isError, result.structuredContent) == (False, expected)
    assert result.meta is not None
    assert result.meta[RELATED_TASK] == {"taskId": task_id}


async def test_the_result_of_a_running_task_is_waited_for(session: ClientSession, person: Person) -> None:
    """2025-11-25 basic/utilities/tasks: it "MUST block the response until the task reaches a terminal status"."""
    task_id = await begin(session, "multi_stage_task", stageCount=2, msPerStage=500)
    result = await result_of(session, task_id)
    assert result.structuredContent == {"stagesCompleted": ["Initializing", "Finalizing"]}
    assert await status_of(session, task_id) == "completed"
    assert person.statuses(task_id) == ["working", "completed"]


async def test_progress_goes_on_after_the_handle_and_names_its_task(session: ClientSession, person: Person) -> None:
    """2025-11-25 basic/utilities/tasks: the token "remains valid throughout the task lifetime"."""
    arguments, meta = {"itemCount": 4, "delayPerItemMs": 50}, {"progressToken": "p/0"}
    created = await session.experimental.call_tool_as_task("task_with_progress", arguments, meta=meta)
    await result_of(session, created.task.taskId)
    reports = person.progress()
    assert [(report.progressToken, report.progress, report.total) for report in reports] == [
        ("p/0", step, 4.0) for step in (1, 2, 3, 4)
    ]
    assert {str(report.meta and report.meta.model_dump()[RELATED_TASK]["taskId"]) for report in reports} == {
        created.task.taskId
    }


# --- tasks that fail


@pytest.mark.parametrize(("kind", "code"), [("internal", -32603), ("validation", -32602), ("timeout", None)])
async def test_a_failed_task_gives_its_error_instead_of_a_result(
    session: ClientSession, kind: str, code: int | None
) -> None:
    task_id = await begin(session, "failing_task", failAfterMs=1000, errorCode=kind)
    with pytest.raises(McpError, match=f"Simulated {kind} error") as caught:
        await result_of(session, task_id)
    task = await session.experimental.get_task(task_id)
    assert (task.status, task.statusMessage) == ("failed", f"Simulated {kind} error")
    assert caught.value.error.data == {"code": kind}
    assert code is None or caught.value.error.code == code


@pytest.mark.parametrize(
    ("name", "arguments"), [("pure_task", {"durationMs": 1}), ("pausable_task", {"itemCount": 3, "pauseAfterItem": 3})]
)
async def test_wrong_arguments_make_no_task(session: ClientSession, name: str, arguments: Json) -> None:
    with pytest.raises(McpError) as caught:
        await session.experimental.call_tool_as_task(name, arguments)
    assert caught.value.error.code == types.INVALID_PARAMS
    assert (await session.experimental.list_tasks()).tasks == []


# --- tasks that ask


async def test_an_accepted_question_lets_the_task_complete(session: ClientSession, person: Person) -> None:
    person.answer = types.ElicitResult(action="accept", content={"continue": True})
    task_id = await begin(session, "pausable_task", itemCount=2, pauseAfterItem=1)
    result = await result_of(session, task_id)
    assert result.structuredContent == {"processedItems": 2, "pausedAt": 1}
    assert person.statuses(task_id) == ["working", "input_required", "working", "completed"]
    assert [type(asked) for asked in person.asked] == [types.ElicitRequestFormParams]
    assert person.asked[0].meta is not None
    assert person.asked[0].meta.model_dump()[RELATED_TASK] == {"taskId": task_id}


REFUSALS = [
    (types.ElicitResult(action="decline"), "declined"),
    (types.ElicitResult(action="cancel"), "dismissed"),
    (types.ElicitResult(action="accept", content={"continue": False}), "not to continue"),
]


@pytest.mark.parametrize(("answer", "why"), REFUSALS)
async def test_a_refused_question_cancels_the_task_and_says_so(
    session: ClientSession, person: Person, answer: types.ElicitResult, why: str
) -> None:
    person.answer = answer
    task_id = await begin(session, "pausable_task", itemCount=2, pauseAfterItem=1)
    with pytest.raises(McpError, match=why):
        await result_of(session, task_id)
    task = await session.experimental.get_task(task_id)
    assert (task.status, why in (task.statusMessage or "")) == ("cancelled", True)
    assert len(person.asked) == 1


async def test_polling_shows_that_input_is_required_and_the_open_get_stream_carries_the_question(
    session: ClientSession, person: Person
) -> None:
    person.answer = types.ElicitResult(action="accept", content={"continue": True})
    task_id = await begin(session, "pausable_task", itemCount=2, pauseAfterItem=1)
    seen = [status.status async for status in session.experimental.poll_task(task_id)]
    assert seen[-1] == "completed"
    assert len(person.asked) == 1


async def test_a_client_without_elicitation_is_told_at_the_call(server: str) -> None:
    with trio.fail_after(BOUND_S):
        async with (
            streamable_http_client(f"{server}?tools=all") as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            with pytest.raises(McpError, match="elicitation"):
                await session.experimental.call_tool_as_task("pausable_task", {})
            assert (await session.experimental.list_tasks()).tasks == []


# --- tasks that are cancelled


async def test_a_task_cancelled_mid_way_is_cancelled_in_the_answer_and_for_good(
    session: ClientSession, person: Person, server: str
) -> None:
    """2025-11-25 basic/utilities/tasks: "MUST transition [...] to `cancelled` status before sending the response"."""
    task_id = await begin(session, "cancellable_task", durationMs=10_000)
    cancelled = await session.experimental.cancel_task(task_id)
    assert cancelled.status == "cancelled"
    with pytest.raises(McpError, match="cancelled"):
        await result_of(session, task_id)
    assert await status_of(session, task_id) == "cancelled"
    record = next(record for record in call_records(server) if record["task"] == task_id)
    assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "tasks_cancel", False)


@pytest.mark.parametrize("name", ["pure_task", "failing_task"])
async def test_a_task_that_is_over_cannot_be_cancelled(session: ClientSession, name: str) -> None:
    task_id = await begin(session, name, **({"durationMs": 1000} if name == "pure_task" else {"failAfterMs": 1000}))
    over = [status.status async for status in session.experimental.poll_task(task_id)][-1]
    with pytest.raises(McpError, match=over) as caught:
        await session.experimental.cancel_task(task_id)
    assert caught.value.error.code == types.INVALID_PARAMS
    assert await status_of(session, task_id) == over


async def test_a_waiting_result_is_released_by_the_cancellation(session: ClientSession) -> None:
    task_id = await begin(session, "cancellable_task", durationMs=10_000)
    caught: list[McpError] = []

    async def wait() -> None:
        try:
            await result_of(session, task_id)
        except McpError as error:
            caught.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        # this SDK posts the second of two requests twice, and the first not at all, when they are made in one breath
        await trio.testing.wait_all_tasks_blocked(0.05)
        await session.experimental.cancel_task(task_id)
    assert len(caught) == 1


async def test_a_plain_call_cancelled_by_hand_stops_and_is_never_answered(session: ClientSession, server: str) -> None:
    """2025-11-25 basic/utilities/cancellation: receivers SHOULD "Not send a response for the cancelled request"."""
    answered: list[types.CallToolResult] = []
    begun = trio.Event()

    async def begin_call(scope: trio.CancelScope) -> None:
        with scope:
            answered.append(await session.call_tool("progress", {"step_ms": 100}, progress_callback=note))

    async def note(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(begin_call, scope)
        await begun.wait()
        request_id = call_records(server)[0]["request_id"]
        params = types.CancelledNotificationParams(requestId=request_id, reason="enough")
        await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        # the SDK sends nothing more before the notification is accepted, so an answer means that it was heard
        await session.send_ping()
        record = call_records(server)[0]
        scope.cancel()
    assert (record["outcome"], record["cancelled_by"]) == ("cancelled", "notification")
    assert (record["cancel_reason"], record["answered"], answered) == ("enough", False, [])


# --- who sees which tasks


async def test_the_list_holds_the_sessions_tasks_in_order(session: ClientSession) -> None:
    mine = [await begin(session, "cancellable_task", durationMs=10_000) for _ in range(3)]
    listed = (await session.experimental.list_tasks()).tasks
    assert [task.taskId for task in listed] == mine
    assert {task.status for task in listed} == {"working"}


async def test_another_sessions_task_does_not_exist(session: ClientSession, server: str) -> None:
    task_id = await begin(session, "cancellable_task", durationMs=10_000)
    async with (
        streamable_http_client(f"{server}?tools=all") as (read, write, _),
        ClientSession(read, write) as other,
    ):
        await other.initialize()
        assert (await other.experimental.list_tasks()).tasks == []
        for use in (other.experimental.get_task, other.experimental.cancel_task):
            with pytest.raises(McpError) as caught:
                await use(task_id)
            assert caught.value.error.code == types.INVALID_PARAMS
    assert await status_of(session, task_id) == "working"
