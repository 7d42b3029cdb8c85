"""One call: a nursery for its work, a cancel scope around it, and a machine that decides how it ends.

Its handler, the client, a deadline and the end of the server all want to end a call. If two of them could, a client got
an answer after its cancellation, or none at all. So each of them asks the machine (`core/call.py`), and no `await`
stands between its decision and the mark: exactly one wins, and the others find a call that is over.

    cancel ──► RUNNING to CANCELLING (shutdown: EXPIRING) ──► scope.cancel ──► the work raises `trio.Cancelled`
    deadline ─► trio cancels the scope ──► `expire`: RUNNING to EXPIRING, at the time of the deadline
    the work returns ──► `expire` ──► settle: the result (ANSWERED), the deadline's error (ANSWERED), or no answer

`run` opens the nursery inside the scope. trio reports a deadline only when the scope exits, and work that cleans up
under a shield delays that. So each method that depends on the state of the call calls `expire` first.

The idle deadline moves with each report, and to change the deadline of a scope costs trio an update of its table. So
the scope gets the ceiling, and an alarm compares the idle deadline with the clock: about every 30 s for one of 30 s.

A call that is still in cleanup when the server stops is given up: `give_up` settles it, with an answer unless the
client cancelled it.

For example, a call with an idle deadline of 2 s whose work cleans up under a shield for half a second:

    0.0   started: deadline 2.0
    1.5   a report: idle deadline 3.5, the scope keeps the ceiling
    3.5   the alarm finds that 3.5 has passed and gives it to the scope, which trio cancels: the clean-up begins
    3.7   `notifications/cancelled`: `cancel` calls `expire`, the call is EXPIRING since 3.5, so this has no effect
    4.0   the work returns: `settle` gives the error of the deadline, and the client gets this one answer
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

import trio

from ...core.call import CallMachine, CallState, Cause, Deadlines, ProgressGate, Report
from ...core.callbacks import nothing
from ...log.bounded import Newest
from ...log.context import Recorder
from ...log.events import (
    CallCancelled,
    CallProgressed,
    CallSettled,
    CallStarted,
    DispatchExpired,
    DispatchExtended,
    DispatchSettled,
)
from ...wire.errors import SHUTTING_DOWN, Code, McpError
from ...wire.jsonrpc import Json, Notification, RequestId, clip, is_id, shown_id
from ..catalogue.tool import ToolResult
from ..clock import Alarm, Clock
from ..messages import RequestContext
from ..streams.stream import Stream, drop, send
from .outcome import Outcome, attempt_async, deadline_failure

MAX_REASON = 500
"""The characters of a cancellation's reason that are kept, in each call record."""

_KINDS = {Cause.DISCONNECT: "disconnected", Cause.DEADLINE: "timed_out"}
"""The outcome of a call by its cause; `cancelled` for other causes."""


class CallScope:
    """The machine and the trio scope of one call. Made by the engine, run once by `run`.

    `request` is the recorder of its request, bound to the call and its task; `recorder` has the `call.started` as
    cause. `working` is False once the work has ended: the engine sends the messages from then on, up to the answer.
    `answer` sends the client the outcome of a call that is given up. `take_back` drops messages of the call that still
    wait for the writer of a pipe. `deadlines` are those of a dispatch, None for a task and for a request other than a
    tool call. `steps_done` and `steps_total` are None for a tool without steps. With `max_result_bytes` 0 the result is
    not recorded.
    """

    def __init__(self, request: Recorder, started: CallStarted, clock: Clock, max_result_bytes: int = 0) -> None:
        self.request = request
        self.request_id = started.request_id
        self.method = started.method
        self.progress_token = started.progress_token
        self.recorder = request.having(started)
        self.machine = CallMachine()
        self._scope: trio.CancelScope | None = None
        self.deadlines: Deadlines | None = None
        self.expiry_cause = Cause.DEADLINE
        self.working = True
        self.answer: Callable[[Outcome | None], None] = nothing
        self.take_back: Callable[[], None] = nothing
        self.started = clock.now()
        self.steps_total = started.steps_total
        self.steps_done: float | None = None if started.steps_total is None else 0
        # The number of messages after the cancellation is measured, not assumed.
        self._emitted = self._emitted_at_cancel = 0
        self._coalesced = self.reports_sent = 0
        self._cancelled: int | None = None
        self._gate: ProgressGate | None = None
        self._idle_alarm: Alarm | None = None
        self._clock = clock
        self._max_result_bytes = max_result_bytes

    @property
    def scope(self) -> trio.CancelScope:
        if self._scope is None:
            self._scope = trio.CancelScope()
        return self._scope

    @property
    def task(self) -> str | None:
        return self.recorder.context.task

    def visited_by(self, request: Recorder) -> Recorder:
        """The recorder of facts of this call that another message causes: their exchange is that message's."""
        own = self.recorder.context
        return request.bind(session=own.session, call=own.call, task=own.task)

    def dispatch(self, deadlines: Deadlines, gate: ProgressGate) -> None:
        self._gate = gate
        self.deadlines = deadlines
        self.scope.deadline = deadlines.at

    def progressed(self, report: Report, coalesced: int, now: float) -> None:
        """Take a valid report of a call that is not over: the idle deadline moves.

        `coalesced` reports were replaced by newer ones.
        """
        self.steps_done, self.steps_total, self._coalesced = report.progress, report.total, coalesced
        if self.deadlines is not None:
            moved, news = self.deadlines.progress(now)
            self.deadlines = moved
            if self._idle_alarm is None:
                self._await_deadline(moved)
            if news:
                self.recorder.append(DispatchExtended(moved.progress_count, moved.which, moved.at_ms))

    def _await_deadline(self, deadlines: Deadlines) -> None:
        self._idle_alarm = self._clock.timer.at(deadlines.at, self._look_at_deadline)
        self.scope.deadline = deadlines.at if self._idle_alarm is None else deadlines.latest

    def _look_at_deadline(self) -> None:
        if self.deadlines is not None and not self._note_passed():
            self._await_deadline(self.deadlines)

    def _note_passed(self) -> bool:
        deadlines = self.deadlines
        if deadlines is None or self._clock.now() < deadlines.at:
            return False
        self.scope.deadline = deadlines.at
        return True

    def note_progress(self, report: Report) -> None:
        if not self.is_over:
            self.recorder.append(CallProgressed(report.progress, report.total, report.message))

    def cancel(self, cause: Cause, reason: str | None = None, by: Recorder | None = None) -> bool:
        """Stop the work; returns True if this is the first cause. Never waits: the scope exits later.

        `by` is the recorder of the message or HTTP request that caused it.
        """
        self.expire()
        asked = self.recorder.caused_by(None) if by is None else self.visited_by(by)
        return self._cancel(cause, self._clock.now(), reason, asked)

    def expire(self) -> None:
        """Mark that the deadline of the scope has passed, if it has. Called before each use of the call's state."""
        machine, scope = self.machine, self._scope
        if self._idle_alarm is not None:
            self._note_passed()
        if machine.state is CallState.RUNNING and scope is not None and scope.cancel_called:
            expired = None if self.deadlines is None else self._record_expired(self.deadlines)
            self._cancel(self.expiry_cause, scope.deadline, None, self.recorder.caused_by(expired))

    def _record_expired(self, over: Deadlines) -> int:
        return self.recorder.append(
            DispatchExpired(
                deadline=over.which,
                elapsed_ms=over.at_ms,
                idle_ms=over.idle_ms,
                ceiling_ms=over.ceiling_ms,
                reports=over.progress_count,
            )
        )

    def _cancel(self, cause: Cause, at: float, reason: str | None, asked: Recorder) -> bool:
        effect = self.machine.cancel(cause, at, reason)
        if effect:
            self._emitted_at_cancel = self._emitted
            self.scope.cancel(reason=cause.value)
        seq = asked.append(CallCancelled(self.request_id, cause.value, reason, effect))
        if effect:
            self._cancelled = seq
        return effect

    def emit(
        self, stream: Stream, message: Json, *, by_work: bool = True, recorder: Recorder | None = None
    ) -> Recorder | None:
        """Send a message of the call on a stream if that is allowed; otherwise drop and record it.

        After the cancellation of a call, its deadline, or its end, no message is sent, with two exceptions. A call past
        its deadline is answered: before that, the engine withdraws open questions and sends the last report that came
        in time. The questions of a task are withdrawn for any cause: its client still expects messages of the protocol.

        With `by_work=False` the engine sends the message, such as a withdrawal. `recorder` is the message's, where its
        cause is another entry than the `call.started`. Returns what `send` returns, None for a dropped message.
        """
        recorder, by_work = recorder or self.recorder, by_work and self.working
        if self.is_over:
            answered = self.machine.cause is Cause.DEADLINE or self.task is not None
            if by_work or self.machine.settled or not answered:
                drop(recorder, message, "the task has ended" if self.task else "the call was cancelled")
                return None
        self._emitted += by_work
        return send(recorder, stream, message)

    @property
    def is_over(self) -> bool:
        """True if the call was cancelled, is past its deadline, or has ended. Its reports then no longer count."""
        self.expire()
        return self.machine.state is not CallState.RUNNING

    def settle(self, outcome: Outcome | None) -> Outcome | None:
        """End the call with `outcome`, None if its scope ended the work. Returns the answer, None for no answer."""
        # Both refer to the call: a cycle, which the garbage collector would free much later.
        self.answer, self.take_back = nothing, nothing
        if self._idle_alarm is not None:
            self._idle_alarm.cancel()
        now = self._clock.now()
        if not self.machine.settle(now):
            self._record_silence()
            return None
        if self.machine.cause is not None:
            outcome = self._expiry(now)
        assert outcome is not None, "work that nobody cancelled has an outcome"
        own = "cancelled" if outcome.kind == "given_up" else outcome.kind
        self._record(_KINDS.get(self.machine.cause, "cancelled") if self.machine.cause else own, outcome, answered=True)
        return outcome

    def give_up(self) -> None:
        """The server stops while cancelled work still runs: settle the call and answer it."""
        if self.machine.cause is not None and not self.machine.settled:
            answer = self.answer
            answer(self.settle(None))

    def abandon(self) -> None:
        """Record that the engine is torn down around the call. There is no answer."""
        if self._idle_alarm is not None:
            self._idle_alarm.cancel()
        if not self.machine.settled:
            now = self._clock.now()
            self.machine.cancel(Cause.SHUTDOWN, now, "the server stopped")
            self.machine.settle(now)
            self._record_silence()

    def _expiry(self, now: float) -> Outcome:
        if self.machine.cause is Cause.DEADLINE and self.deadlines is not None:
            return Outcome("tool_error", result=deadline_failure(*self.deadlines.error(now)))
        why = self.machine.reason or SHUTTING_DOWN
        error = McpError(Code.BUSY, f"{why[0].upper()}{why[1:]}; the request was cancelled")
        return Outcome("protocol_error", error=error)

    def _record_silence(self) -> None:
        assert self.machine.cause is not None, "only what was cancelled is not answered"
        # A task's call was answered with the task's handle before the task began.
        self._record(_KINDS.get(self.machine.cause, "cancelled"), None, answered=self.task is not None)

    def _record(self, kind: str, outcome: Outcome | None, *, answered: bool) -> None:
        machine = self.machine
        duration = _ms(self.started, machine.settled_at)
        if (gate := self._gate) is not None:
            self.recorder.append(
                DispatchSettled(
                    outcome=kind,
                    elapsed_ms=round(duration),
                    reports=gate.reported,
                    sent=self.reports_sent,
                    coalesced=gate.coalesced,
                    invalid=gate.invalid,
                )
            )
        most = self._max_result_bytes
        self.recorder.append(
            CallSettled(
                request_id=self.request_id,
                outcome=kind,
                answered=answered,
                duration_ms=duration,
                cancelled_by=machine.cause.value if machine.cause else None,
                cancel_reason=machine.reason,
                scope_exit_ms=None if machine.cancelled_at is None else _ms(machine.cancelled_at, machine.settled_at),
                steps_done=self.steps_done,
                steps_total=self.steps_total,
                sent_after_cancel=self._emitted - self._emitted_at_cancel if machine.cause else 0,
                coalesced=self._coalesced,
                result=outcome.kept(most) if outcome is not None and most else b"null",
            ),
            self._cancelled,
        )


def _ms(start: float, end: float | None) -> float:
    return round(((end or start) - start) * 1000, 3)


async def run(
    call: CallScope, work: Callable[[], Awaitable[ToolResult]], beside: Callable[[], Awaitable[None]]
) -> Outcome | None:
    """Run the work of a call in its own nursery; `beside` runs next to it and ends with it.

    Returns the outcome before it is settled, None if the call's scope ended it. Cancellation from outside the scope
    passes through, after `CallScope.abandon`.
    """
    outcome: Outcome | None = None
    try:
        with call.scope:
            outcome = await attempt_async(work, beside)
    except BaseException:
        call.abandon()
        raise
    call.working = False
    call.expire()
    return outcome if call.machine.cause is None else None


# A client cancels one of its latest requests, even if it does so too late.
_MOST = 100


class FinishedCalls(Newest[RequestId, Recorder]):
    """The latest finished calls of one client, by the ids of their requests."""

    def __init__(self) -> None:
        super().__init__(_MOST)


def take_cancellation(
    message: Notification,
    clause: str,
    context: RequestContext,
    running: Mapping[RequestId, CallScope],
    finished: FinishedCalls,
    tasks: Iterable[CallScope],
    initialize: RequestId | None = None,
) -> None:
    """Cancel the running call that a `notifications/cancelled` names, and drop its messages that wait for a pipe.

    `clause` is the rule of the client's revision. One without effect is recorded: it is malformed, or names a task, the
    `initialize` request, or a request that is finished or unknown.
    """
    params = message.params or {}
    id, reason = params.get("requestId"), params.get("reason", "")
    if not is_id(id) or not isinstance(reason, str):
        context.misuse("malformed cancellation", clause, "requestId or reason has the wrong type")
        return
    call = running.get(id)
    if call is not None:
        context.concerns(call.recorder)
        if call.cancel(Cause.NOTIFICATION, clip(reason, MAX_REASON) or None, context.recorder):
            call.take_back()
        return
    named, task = f"request {shown_id(id)}", next((call for call in tasks if call.request_id == id), None)
    about = finished.get(id) if task is None else task.recorder
    if about is not None:
        context.concerns(about)
    if task is not None:
        context.misuse("notifications/cancelled for a task", clause, f"{named} made a task: use tasks/cancel")
    elif id == initialize:
        context.misuse("notifications/cancelled for initialize", clause, named)
    else:
        context.misuse("cancellation without effect", clause, f"{named} is unknown or finished")
