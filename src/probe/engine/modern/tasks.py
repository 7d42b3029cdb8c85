"""`tools/call` and tasks of the modern era. The server decides which call becomes a task.

    the tool                     with the tasks extension        without it
    taskSupport absent           runs                            runs
    taskSupport "required"       a task                          -32021
    taskSupport "optional"       a task                          runs

Before any of these its `inputs` are asked (tasks extension, Task Creation: servers "SHOULD resolve all MRTR exchanges
synchronously before responding with a `CreateTaskResult`").

Any client that knows the id of a task may use it ("A server MAY use task IDs as bearer tokens"). The ids cannot be
guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.call import Cause, Report
from ...core.subscription import Change
from ...core.task import Status, TaskInput
from ...log.context import Recorder
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip, notification
from ...wire.v2026.codec import TaskTimes, describe_task, detailed_task, modern_error
from ...wire.v2026.meta import TASKS_EXTENSION, RequestMeta, required_capabilities
from ...wire.v2026.registry import CallToolParams, TaskParams, UpdateTaskParams, offers
from ..calls.context import LEVELS, Channel, ToolContext
from ..calls.outcome import Outcome
from ..calls.scope import CallScope
from ..calls.tool_runs import Start, ToolCallRequest, ToolPlan, ToolRuns
from ..catalogue.tool import ArgumentsError, Ask, ClientRequestError, ListKind, LogLevel, Tool, ToolFailureError
from ..clock import iso
from ..services import ConfirmationPage, Services
from ..streams.stream import Stream
from ..tasks import Task, TaskPlan, TaskService, failure_text
from .listeners import Listener, Listeners
from .rounds import Incoming, Rounds, RoundTrips, check_answers, check_declared


@dataclass(eq=False)
class _ModernChannel(Channel):
    call: CallScope
    incoming: Incoming
    rounds: Rounds
    listeners: Listeners
    services: Services

    @property
    def resumed(self) -> bool:
        return self.rounds.resumed

    def declares(self, method: str) -> bool:
        return offers(self.incoming.meta.capabilities, method)

    @contextmanager
    def open_page(self, key: str) -> Iterator[ConfirmationPage]:
        """A request that stops without an answer leaves the page: its state may come back in another one."""
        context, interactions = self.incoming.context, self.services.interactions
        make = partial(interactions.open, context.origin, context.holder, self.call.recorder)
        id = self.rounds.keep(key, make)
        try:
            yield interactions.page(id, context.origin)
        except ClientRequestError:
            interactions.answer(id)
            raise
        interactions.answer(id)

    async def wait_confirmed(self, page: ConfirmationPage) -> None:
        await self.services.interactions.wait_confirmed(page, self.services.settings.client_request_s)

    def announce(self, changed: ListKind) -> None:
        """Notify the subscriptions with the same selection; the lists of others have not changed."""
        self.listeners.publish_list(changed, self.incoming.offer.selection, self.call.recorder.cause)


@dataclass(eq=False)
class ModernCallChannel(_ModernChannel):
    """The channel of a call: all messages are notifications on the stream of its response."""

    stream: Stream

    def notify(self, method: str, params: Json) -> bool:
        return self.call.emit(self.stream, notification(method, params)) is not None

    def stop_comments(self) -> None:
        self.stream.comments = False

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        return self.rounds.answers(asks)

    def wants_log(self, level: LogLevel) -> bool:
        """2026-07-28 server/utilities/logging: without a level in the request "the server MUST NOT send" any."""
        wanted = self.incoming.meta.log_level
        return wanted is not None and LEVELS.index(level) >= LEVELS.index(wanted)


@dataclass(eq=False)
class ModernTaskChannel(_ModernChannel):
    """The channel of a task, with the capabilities in the call that became it."""

    task: Task
    tasks: TaskService

    def notify(self, method: str, params: Json) -> bool:
        return False

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Show the questions in `tasks/get` and wait until `tasks/update` has answered the last of them."""
        check_declared(asks, self.incoming.meta.capabilities)
        task = self.task
        task.inputs.ask({key: {"method": ask.method, "params": ask.params} for key, ask in asks.items()})
        wanted = [str(ask.params.get("message", ask.method)) for ask in asks.values()]
        self.tasks.ask(task, f"Input required: {' '.join(wanted)}", len(asks))
        try:
            while (answers := task.inputs.answers(asks)) is None:
                await task.wait_changed()
        finally:
            self.tasks.answered(task, task.inputs.withdraw(asks))
        return answers

    def show_progress(self, report: Report) -> None:
        step = f"{report.progress:g}" if report.total is None else f"{report.progress:g} of {report.total:g}"
        self.tasks.note(self.task, report.message or f"Step {step}")

    def set_status(self, message: str) -> None:
        self.tasks.note(self.task, message)

    def wants_log(self, level: LogLevel) -> bool:
        return False


OWNER = "modern"
"""The owner of every modern task; no session has this label."""


class ModernTools:
    """`tools/call`, and the methods of tasks in the modern era: get, update and cancel."""

    def __init__(
        self, services: Services, tasks: TaskService, listeners: Listeners, trips: RoundTrips, runs: ToolRuns
    ) -> None:
        self.tasks = tasks
        self._services = services
        self._settings = services.settings
        self._listeners = listeners
        self._trips = trips
        self._runs = runs

    def call(self, incoming: Incoming, params: CallToolParams) -> Outcome | Start:
        asked = ToolCallRequest(incoming.request.id, params.name, params.arguments or {}, incoming.meta.progress_token)
        return self._runs.call(incoming.context, incoming.offer, asked, partial(self._judge, incoming, asked))

    def _judge(self, incoming: Incoming, asked: ToolCallRequest) -> ToolPlan:
        """The plan of a call that may run. Raises the reason of a refusal, or the questions before the work."""
        offer, meta = incoming.offer, incoming.meta
        tool = offer.tool(asked.tool)
        tool.check_revision(offer.revision)
        _check_capabilities(tool, meta)
        try:
            arguments = tool.read_arguments(asked.arguments)
        except ArgumentsError as error:
            raise ToolFailureError(f"Invalid arguments: {error}") from None
        rounds = self._trips.open(incoming)
        answers = rounds.answers(tool.inputs)

        def channel(call: CallScope, stream: Stream) -> ModernCallChannel:
            return ModernCallChannel(call, incoming, rounds, self._listeners, self._services, stream)

        if tool.task_support == "forbidden" or not meta.tasks:
            return ToolPlan(tool, arguments, answers, channel)
        self.tasks.check_room(None, incoming.context)
        create_task = partial(self._create, incoming, tool, arguments, answers, rounds)
        return ToolPlan(tool, arguments, answers, channel, create_task)

    def _create(
        self,
        incoming: Incoming,
        tool: Tool,
        arguments: Mapping[str, Any],
        answers: Mapping[str, Json],
        rounds: Rounds,
        call: CallScope,
    ) -> Json:
        """Store the task, have it started, and describe it for the `CreateTaskResult`.

        "A server MUST NOT return `CreateTaskResult` until the task is durably created".
        """

        def context(task: Task) -> ToolContext:
            channel = ModernTaskChannel(call, incoming, rounds, self._listeners, self._services, task, self.tasks)
            # The extension has no progress notifications, so the token is dropped. Without a token, `ToolContext` gives
            # each report to `show_progress` of the channel, which sets the status message.
            return self._runs.context(call, channel, arguments, None, answers)

        plan = TaskPlan(
            owner=OWNER,
            holder=incoming.context.holder,
            tool=tool,
            ttl_ms=self.tasks.ttl(None),
            message="The task has begun.",
            announce=self._announce,
            ending=ending,
            context=context,
        )
        return self._describe(self.tasks.create(call, plan))

    def get(self, incoming: Incoming, params: TaskParams) -> Json:
        return self.detailed(self._found(incoming, params.task_id))

    def update(self, incoming: Incoming, params: UpdateTaskParams) -> Json:
        """Take the answers to open questions, all of them or, if one has the wrong form, none."""
        task = self._found(incoming, params.task_id)
        if not task.machine.terminal:
            asked = {key: ask["method"] for key, ask in task.inputs.outstanding.items()}
            check_answers(asked, params.input_responses)
            self.tasks.answered(task, task.inputs.update(params.input_responses), incoming.context.recorder)
        return {}

    def cancel(self, incoming: Incoming, params: TaskParams) -> Json:
        task = self._found(incoming, params.task_id)
        if not task.machine.terminal:
            message = "The task was cancelled by request."
            self.tasks.cancel(task, Cause.TASKS_CANCEL, message, incoming.context.recorder)
        return {}

    def knows(self, id: str) -> bool:
        return self.tasks.find(id, OWNER) is not None

    def detailed(self, task: Task) -> Json:
        return detailed_task(self._describe(task), _detail(task))

    def publish(self, id: str, listener: Listener) -> None:
        task = self.tasks.find(id, OWNER)
        if task is not None:
            recorder = task.call.recorder.caused_by(listener.call.recorder.cause)
            self._listeners.offer(listener, Change("task", id), self.detailed(task), recorder)

    def _announce(self, task: Task, recorder: Recorder) -> None:
        self._listeners.publish(Change("task", task.id), lambda: self.detailed(task), recorder)

    def _found(self, incoming: Incoming, task_id: str) -> Task:
        task = self.tasks.find(task_id, OWNER)
        if task is None:
            raise McpError(Code.INVALID_PARAMS, f"Task not found: {clip(task_id)} is unknown or has expired")
        incoming.context.concerns(task.call.recorder)
        return task

    def _describe(self, task: Task) -> Json:
        machine = task.machine
        created, updated = iso(machine.created_at), iso(machine.updated_at)
        times = TaskTimes(created, updated, task.plan.ttl_ms, self._settings.task_poll_ms)
        return describe_task(task.id, machine.status.value, machine.message, times)


def _detail(task: Task) -> Json | None:
    match task.machine.status:
        case Status.INPUT_REQUIRED:
            return dict(task.inputs.outstanding)
        case Status.COMPLETED:
            assert task.outcome is not None, "a task completes with its outcome"
            return task.outcome.result or {}
        case Status.FAILED:
            assert task.outcome is not None, "a task fails with its outcome"
            error = task.outcome.error or McpError(Code.INTERNAL_ERROR, "Internal error")
            return modern_error(error.body())
        case _:
            return None


def ending(outcome: Outcome) -> tuple[TaskInput, str]:
    """The step of a task's machine that an outcome causes.

    Tasks extension, Task Execution Errors: "The `failed` status MUST NOT be used to represent non-JSON-RPC errors, such
    as a tool result that completed with `isError: true`."
    """
    match outcome.kind:
        case "completed":
            return TaskInput.COMPLETE, "The task is completed."
        case "tool_error":
            return TaskInput.COMPLETE, failure_text(outcome)
        case "given_up":
            return TaskInput.CANCEL, failure_text(outcome)
        case _:
            return TaskInput.FAIL, failure_text(outcome)


_REQUESTS: Mapping[str, tuple[str, str]] = {
    "elicitation": ("elicitation/create", "form"),
    "elicitation.url": ("elicitation/create", "url"),
    "sampling": ("sampling/createMessage", ""),
    "roots": ("roots/list", ""),
}
"""The request that a client capability stands for, and its mode."""


def _check_capabilities(tool: Tool, meta: RequestMeta) -> None:
    missing = [name for name in tool.requires if not offers(meta.capabilities, *_REQUESTS[name])]
    if tool.task_support == "required" and not meta.tasks:
        missing.append(TASKS_EXTENSION)
    if missing:
        why = f"Missing required client capability: tool {tool.name} needs {', '.join(missing)}"
        raise McpError(Code.MISSING_CLIENT_CAPABILITY, why, required_capabilities(missing))
