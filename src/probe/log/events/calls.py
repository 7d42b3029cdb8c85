"""Calls: the work of requests and of tasks."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ...wire.jsonrpc import ProgressToken, RequestId


class CallStarted(Struct, frozen=True, gc=False):
    """A request, or the work of a task, began to run in its own nursery. Cause: its `message.received`.

    `tool` and what follows it describe a tool call; for another request `tool` is None and the others are empty.
    `arguments` is JSON with its secrets hidden, and cut at `record_argument_bytes`. `steps_total` is the number of
    steps with these arguments, if the tool counts steps.
    """

    kind: ClassVar[str] = "call.started"
    request_id: RequestId
    method: str
    tool: str | None
    progress_token: ProgressToken | None
    toolset: str
    era: str
    revision: str
    transport: str
    client_name: str
    client_version: str
    steps_total: float | None
    arguments: bytes


class CallProgressed(Struct, frozen=True, gc=False):
    """The work reported progress, and the client gave no progress token for a notification.

    Cause: the `call.started`. A report with a token is a `message.emitted`.
    """

    kind: ClassVar[str] = "call.progressed"
    progress: float
    total: float | None
    message: str | None


class CallCancelled(Struct, frozen=True, gc=False):
    """The work was asked to stop; it may still run. `effect` is false if it was over already.

    Cause: the `message.received` or the `http.request` of the cancellation, the `dispatch.expired` of a deadline, else
    none.
    """

    kind: ClassVar[str] = "call.cancelled"
    request_id: RequestId
    by: str
    reason: str | None
    effect: bool


class CallSettled(Struct, frozen=True, gc=False):
    """The scope of the work has exited. `scope_exit_ms` is the time from a cancellation to the exit.

    Cause: the `call.cancelled` that had an effect, else the `call.started`. `result` is JSON with its secrets hidden,
    and cut at `record_result_bytes`: the answer, or the result for `tasks/result`; `{"error": ...}` for a JSON-RPC
    error; null without a result, and for requests other than tool calls. `coalesced` is the number of progress reports
    replaced by newer ones.
    """

    kind: ClassVar[str] = "call.settled"
    request_id: RequestId
    outcome: str
    answered: bool
    duration_ms: float
    cancelled_by: str | None
    cancel_reason: str | None
    scope_exit_ms: float | None
    steps_done: float | None
    steps_total: float | None
    sent_after_cancel: int
    coalesced: int
    result: bytes


class TaskChanged(Struct, frozen=True, gc=False):
    """A task has a new status or message. `queued` exists only here, before the protocol's `working`.

    Cause: the `message.received` of the change, else the `call.started`.
    """

    kind: ClassVar[str] = "task.changed"
    tool: str
    status: str
    message: str | None
    ttl_ms: int


class TaskRemoved(Struct, frozen=True, gc=False):
    """A task and its result were removed. `why`: `expired`, `stopped` with the server, or why its session ended."""

    kind: ClassVar[str] = "task.removed"
    why: str
