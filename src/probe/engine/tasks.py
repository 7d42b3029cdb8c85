"""Tasks and the service that owns them: the only work that outlives its request.

    TaskService.serve     one nursery for all tasks, for the life of the engine
      _live(task)         one trio task per MCP task, from its creation until its `ttl` has passed
        calls.run         the work, in its own nursery and scope

A task has three ends. Its *status* is final (`completed`, `failed` or `cancelled`). Its *work* has ended, and the call
is settled. It is *removed*, after its `ttl`, with its session, or at shutdown. `tasks/cancel` makes the status final at
once; the work may clean up for some seconds after that.

    created ──► working ◄──► input_required         `ask` and `answered` count the open questions
                   │ the outcome, by `plan.ending`
                   ▼
            completed, failed ──► removed            cancelled: from each state before, by `cancel` or the removal
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf

import trio

from ..core.call import Cause
from ..core.task import TaskInput, TaskInputs, TaskMachine
from ..log.context import Recorder
from ..log.events import LimitReached, TaskChanged, TaskRemoved
from .calls.context import ToolContext
from .calls.outcome import Outcome, contain
from .calls.scope import CallScope, run
from .catalogue.tool import Tool
from .messages import RequestContext
from .services import Limit, LimitError, Services


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The plan of a call that becomes a task.

    `owner` is its session, or its era if that has no sessions; `holder` is the client address for its share of limits.
    `announce` sends a change of status to the client, with the recorder of that. `ending` is the step that an outcome
    makes in this era. `message` is its first status message.
    """

    owner: str
    holder: str | None
    tool: Tool
    ttl_ms: int
    message: str
    announce: Callable[[Task, Recorder], None]
    ending: Callable[[Outcome], tuple[TaskInput, str]]
    context: Callable[[Task], ToolContext]


@dataclass(slots=True, eq=False)
class Task:
    """One MCP task.

    `outcome` is set once it is completed or failed. `inputs` are questions that wait for `tasks/update`; a legacy task
    sends its questions itself.
    """

    id: str
    ordinal: int
    machine: TaskMachine
    call: CallScope
    plan: TaskPlan
    outcome: Outcome | None = None
    inputs: TaskInputs = field(default_factory=TaskInputs)
    asking: int = 0
    removed: str | None = None
    life: trio.CancelScope = field(default_factory=trio.CancelScope)
    _changed: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    def wake(self) -> None:
        self._changed.unpark_all()

    async def wait_changed(self) -> None:
        await self._changed.park()

    async def wait_terminal(self) -> None:
        while not self.machine.terminal and self.removed is None:
            await self._changed.park()

    async def wait_over(self) -> None:
        """Wait until the work has ended, which may be long after the status is final."""
        while not self.call.machine.settled:
            await self._changed.park()


_TOO_MANY = "Too many tasks: the limit {name} is {most}; a task counts until its ttl"


class TaskService:
    """All tasks of one engine. `serve` owns them; the other methods never wait."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._settings = services.settings
        self._limit = Limit("max_tasks", _TOO_MANY, services.shares)
        self._tasks: dict[str, Task] = {}
        self._count = 0
        self.worked_at = -inf
        """When the latest task was over, by the monotonic clock; a task that works is not over."""
        # A job waits here until the service's next turn, so the bound is the largest number of tasks.
        self._inbox, self._jobs = trio.open_memory_channel[Callable[[], Awaitable[None]]](services.limits.max_tasks)

    def check_room(self, owner: str | None, context: RequestContext) -> None:
        """Raise `LimitError` if the session `owner`, the server, or the client's address has its most tasks."""
        most = self._settings.limits.max_tasks_per_session
        if sum(task.plan.owner == owner for task in self._tasks.values()) >= most:
            context.recorder.append(LimitReached("max_tasks_per_session", most))
            raise LimitError(_TOO_MANY.format(name="max_tasks_per_session", most=most))
        self._limit.check(context.holder, context.recorder)

    def ttl(self, requested: int | None) -> int:
        """The lifetime granted, in milliseconds.

        2025-11-25 basic/utilities/tasks: "Receivers MAY override the requested `ttl` duration."
        """
        settings = self._settings
        wanted = settings.task_ttl_ms if requested is None else requested
        return max(1000, min(wanted, settings.task_ttl_max_ms))

    def create(self, call: CallScope, plan: TaskPlan) -> Task:
        """Store a task before any client gets its id, and have its work started."""
        id = call.task or ""
        self._count += 1
        machine = TaskMachine(self._clock.wall(), plan.message)
        task = Task(id, self._count, machine, call, plan)
        self._tasks[id] = task
        self._limit.take(plan.holder)
        call.recorder.append(TaskChanged(plan.tool.name, "queued", None, plan.ttl_ms))
        self._record_change(task, call.recorder)

        async def job() -> None:
            await self._live(task, plan.context(task))

        self._inbox.send_nowait(job)
        return task

    def find(self, id: str, owner: str) -> Task | None:
        task = self._tasks.get(id)
        return task if task is not None and task.plan.owner == owner else None

    def of(self, owner: str) -> list[Task]:
        return [task for task in self._tasks.values() if task.plan.owner == owner]

    def everyone(self) -> list[Task]:
        return list(self._tasks.values())

    @property
    def any_works(self) -> bool:
        return any(not task.machine.terminal for task in self._tasks.values())

    def note(self, task: Task, message: str) -> None:
        if task.machine.allows(TaskInput.NOTE):
            self._move(task, TaskInput.NOTE, message)

    def ask(self, task: Task, message: str, questions: int = 1) -> None:
        task.asking += questions
        if task.machine.allows(TaskInput.ASK):
            self._move(task, TaskInput.ASK, message)

    def answered(self, task: Task, questions: int = 1, by: Recorder | None = None) -> None:
        """Count `questions` less, answered by the message `by` or withdrawn: at zero the task works again.

        The status stays if its work is being stopped.
        """
        task.asking -= questions
        task.wake()
        if not questions or task.call.scope.cancel_called or not task.machine.allows(TaskInput.RESUME):
            return
        if task.asking:
            self._move(task, TaskInput.ANSWER, task.machine.message or "TaskInput required", by)
        else:
            self._move(task, TaskInput.RESUME, "Working again after input.", by)

    def cancel(self, task: Task, cause: Cause, message: str, by: Recorder | None = None) -> None:
        """Make the status `cancelled`, then stop the work. `by` is the message that caused it, if there is one.

        The caller has checked that the task is not terminal.

        2025-11-25 basic/utilities/tasks: receivers "MUST transition the task to `cancelled` status before sending the
        response", and it "MUST remain in `cancelled` status even if execution continues to completion or fails".
        """
        self._move(task, TaskInput.CANCEL, message, by)
        task.call.cancel(cause, message, by)

    def end_owner(self, owner: str, cause: Cause, why: str, by: Recorder | None = None) -> None:
        for task in self.of(owner):
            if not task.machine.terminal:
                self.cancel(task, cause, f"The task was cancelled: {why}", by)
            task.removed = why
            task.life.cancel()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for job in self._jobs:
                nursery.start_soon(contain, job, name=job)

    async def _live(self, task: Task, context: ToolContext) -> None:
        expires = self._clock.now() + task.machine.created_at - self._clock.wall() + task.plan.ttl_ms / 1000
        task.call.expiry_cause = Cause.TTL
        task.call.scope.deadline = expires
        try:
            with task.life:
                # The scope of the work ends it at the ttl; the lines below it do not wait before.
                outcome = await run(task.call, partial(task.plan.tool.run_waiting, context), context.pump_progress)
                self._finish(task, context, outcome)
                await trio.sleep_until(expires)
                task.removed = "expired"
        finally:
            self._remove(task)

    def _finish(self, task: Task, context: ToolContext, outcome: Outcome | None) -> None:
        if outcome is not None and not task.machine.terminal:
            context.finish_progress()
            task.outcome = outcome
            self._move(task, *task.plan.ending(outcome))
        if not task.call.machine.settled:
            task.call.settle(outcome)
        task.wake()

    def _remove(self, task: Task) -> None:
        task.removed = task.removed or "stopped"
        if not task.machine.terminal:
            expired = task.removed == "expired"
            self._move(task, TaskInput.CANCEL, "The task's ttl has passed." if expired else "The server stopped.")
        if not task.call.machine.settled:
            task.call.abandon()
        del self._tasks[task.id]
        self._limit.release(task.plan.holder)
        task.call.recorder.append(TaskRemoved(task.removed))
        task.wake()

    def _move(self, task: Task, event: TaskInput, message: str, by: Recorder | None = None) -> None:
        task.machine.move(event, self._clock.wall(), message)
        if task.machine.terminal:
            self.worked_at = self._clock.now()
        call = task.call
        seq = self._record_change(task, call.recorder if by is None else call.visited_by(by))
        task.plan.announce(task, call.recorder.caused_by(seq))
        task.wake()

    def _record_change(self, task: Task, recorder: Recorder) -> int:
        status, message = task.machine.status.value, task.machine.message
        return recorder.append(TaskChanged(task.plan.tool.name, status, message, task.plan.ttl_ms))


def failure_text(outcome: Outcome) -> str:
    """The error's words, or the first text of the result."""
    if outcome.error is not None:
        return outcome.error.message
    texts = [block["text"] for block in (outcome.result or {}).get("content", ()) if block.get("type") == "text"]
    return texts[0] if texts else "The tool reported an error."
