"""One call = one nursery = one cancel scope.

    await run(call, work)

opens the call's nursery under its scope, runs the work in it and settles the machine. To stop the work, call
`CallScope.cancel`; whether it was heard in time is decided by `core.call` and by nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ...core.call import Call, Cause, State
from ...core.deadline import Deadlines
from ...core.progress import ProgressGate, Report
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
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json
from ..catalogue.tool import ToolResult
from ..clock import Clock
from ..streams.outbox import drop, send
from ..streams.stream import Stream
from ..timer import Alarm
from .failures import deadline_failure
from .outcome import Outcome, attempt_async

MAX_REASON = 500
"""Characters of a cancellation's reason that are kept: a sentence or two, in every one of the call records."""

_KINDS = {Cause.DISCONNECT: "disconnected", Cause.DEADLINE: "timed_out"}
"""The outcome of a call by what ended it; `cancelled` for other causes."""


def _nobody(_outcome: Outcome | None) -> None:
    pass


def _nothing() -> None:
    pass


class CallScope:
    """The machine and the trio scope of one call. Made by the engine, run once by `run`.

    `request` is the recorder of its request, bound to the call and its task; `recorder` is the same for what happens
    because of the `call.started`. `working` is false once the work has ended: what is sent then, up to the answer, is
    the engine's own. `answer` sends the client the outcome of a call that is given up. `take_back` drops the messages
    of the call that nobody has written yet; only connections that carry everything can. `deadlines` are those of a
    dispatch; a task, and a request that is no tool call, has none. `reports_sent` counts the progress that went on to
    the client. `steps_done` and `steps_total` are None where the tool counts none. At most `max_result_bytes` of the
    result are recorded, and with 0 nothing of it.
    """

    def __init__(self, request: Recorder, started: CallStarted, clock: Clock, max_result_bytes: int = 0) -> None:
        self.request = request
        self.request_id = started.request_id
        self.method = started.method
        self.progress_token = started.progress_token
        self.recorder = request.having(started)
        self.machine = Call()
        self._scope: trio.CancelScope | None = None
        self.deadlines: Deadlines | None = None
        self.expiry_cause = Cause.DEADLINE
        self.working = True
        self.answer: Callable[[Outcome | None], None] = _nobody
        self.take_back: Callable[[], None] = _nothing
        self.started = clock.now()
        self.steps_total = started.steps_total
        self.steps_done: float | None = None if started.steps_total is None else 0
        # Messages that the work sent, so that "nothing after the cancellation" is measured, not assumed.
        self._emitted = self._emitted_at_cancel = 0
        self._coalesced = self.reports_sent = 0
        self._cancelled: int | None = None
        self._gate: ProgressGate | None = None
        # Looks whether the idle deadline has passed, once a report has moved that.
        self._idle_alarm: Alarm | None = None
        self._clock = clock
        self._max_result_bytes = max_result_bytes

    @property
    def scope(self) -> trio.CancelScope:
        """The scope of the work, which a call that is answered at once has none of."""
        if self._scope is None:
            self._scope = trio.CancelScope()
        return self._scope

    @property
    def id(self) -> str:
        """Its id in the event log."""
        return self.recorder.context.call or ""

    @property
    def task(self) -> str | None:
        """The id of its task, where it became one."""
        return self.recorder.context.task

    def visited_by(self, request: Recorder) -> Recorder:
        """The recorder of facts of this call that happen because of another message: the exchange is that one's."""
        own = self.recorder.context
        return request.bind(session=own.session, call=own.call, task=own.task)

    def dispatch(self, deadlines: Deadlines, gate: ProgressGate) -> None:
        """The call is a dispatch, with these deadlines from now on; its progress passes through `gate`."""
        self._gate = gate
        self.deadlines = deadlines
        # The scope's own deadline, so that expiry and cancellation are one mechanism.
        self.scope.deadline = deadlines.at

    def progressed(self, report: Report, coalesced: int, now: float) -> None:
        """A valid report of a call that is not over said how far the work is, so the idle deadline moves.

        So many reports made room for newer ones.
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
        """Have the scope expire at the deadline, however far reports move that until then.

        To move the deadline of a scope with each report is a change of trio's table of deadlines for each. So the scope
        has the latest one there can be, and gets the earlier one when that has come.
        """
        self._idle_alarm = self._clock.timer.at(deadlines.at, self._look_at_deadline)
        self.scope.deadline = deadlines.at if self._idle_alarm is None else deadlines.latest

    def _look_at_deadline(self) -> None:
        if self.deadlines is not None and not self._note_passed():
            self._await_deadline(self.deadlines)

    def _note_passed(self) -> bool:
        """Whether the deadline has passed, which is then the scope's: so trio knows it as well.

        A tool that computes goes on behind it before trio looks at deadlines.
        """
        deadlines = self.deadlines
        if deadlines is None or self._clock.now() < deadlines.at:
            return False
        self.scope.deadline = deadlines.at
        return True

    def _drop_alarm(self) -> None:
        if self._idle_alarm is not None:
            self._idle_alarm.cancel()

    def note_progress(self, report: Report) -> None:
        """Record progress that the client gave no token for; after a cancellation it is none."""
        if not self.is_over:
            self.recorder.append(CallProgressed(report.progress, report.total, report.message))

    def cancel(self, cause: Cause, reason: str | None = None, by: Recorder | None = None) -> bool:
        """Ask the work to stop; returns whether this is what stops it. Never waits: the scope exits later.

        `by` is the recorder of the message, or of the HTTP request, that asks for it, if one does.
        """
        self.expire()
        asked = self.recorder.caused_by(None) if by is None else self.visited_by(by)
        return self._cancel(cause, self._clock.now(), reason, asked)

    def expire(self) -> None:
        """Mark that the deadline of the scope has passed, if it has.

        trio decides that at the deadline and tells nobody until the scope exits, which work that cleans up in a shield
        can put off. Every question about the state of the call comes here first, so nothing comes between decision and
        mark.
        """
        machine, scope = self.machine, self._scope
        if self._idle_alarm is not None:
            self._note_passed()
        if machine.state is State.RUNNING and scope is not None and scope.cancel_called:
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
        """Send a message of the call on a stream, if it may still be sent; otherwise it is dropped.

        Nothing is sent after the cancellation of the call, its deadline, or its end, with two exceptions. A call whose
        deadline has passed will be answered: before that the engine withdraws what the work has asked, and sends the
        last report that came in time; the work itself can send no more. The questions of a task are withdrawn whatever
        ended it: its client has asked for the end of the task, not for silence.

        The withdrawal of a question is not sent by the work. `recorder` is that of the message, where another entry
        than the `call.started` brings it about. Returns what `outbox.send` returns; None for a message that is dropped.
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
        """Whether the call was cancelled, its deadline has passed, or it has ended: its reports count no more."""
        self.expire()
        return self.machine.state is not State.RUNNING

    def settle(self, outcome: Outcome | None) -> Outcome | None:
        """The work has ended with `outcome`, or by its scope (None). Returns what to answer, None for silence."""
        # The object that would answer knows the call: a cycle, which the collector would find much later.
        self.answer, self.take_back = _nobody, _nothing
        self._drop_alarm()
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
        """The server ends, and work that was told to stop goes on: settle the call, and answer for it.

        A later result of the work is dropped.
        """
        if self.machine.cause is not None and not self.machine.settled:
            answer = self.answer
            answer(self.settle(None))

    def abandon(self) -> None:
        """The whole engine is being torn down around the call: record it, answer nothing."""
        self._drop_alarm()
        if not self.machine.settled:
            now = self._clock.now()
            self.machine.cancel(Cause.SHUTDOWN, now, "the server stopped")
            self.machine.settle(now)
            self._record_silence()

    def _expiry(self, now: float) -> Outcome:
        if self.machine.cause is Cause.DEADLINE and self.deadlines is not None:
            return Outcome("tool_error", result=deadline_failure(*self.deadlines.error(now)))
        error = McpError(Code.BUSY, "The server is shutting down; the request was cancelled")
        return Outcome("protocol_error", error=error)

    def _record_silence(self) -> None:
        assert self.machine.cause is not None, "only what was cancelled is not answered"
        # A task's call was answered, with its handle, before the task began.
        self._record(_KINDS.get(self.machine.cause, "cancelled"), None, answered=self.task is not None)

    def _record(self, kind: str, outcome: Outcome | None, *, answered: bool) -> None:
        machine = self.machine
        duration = _ms(self.started, machine.settled_at)
        if self._gate is not None:
            self._record_dispatch(self._gate, kind, duration)
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
                result=self._kept(outcome),
            ),
            self._cancelled,
        )

    def _kept(self, outcome: Outcome | None) -> bytes:
        most = self._max_result_bytes
        return outcome.kept(most) if outcome is not None and most else b"null"

    def _record_dispatch(self, gate: ProgressGate, kind: str, duration_ms: float) -> None:
        self.recorder.append(
            DispatchSettled(
                outcome=kind,
                elapsed_ms=round(duration_ms),
                reports=gate.reported,
                sent=self.reports_sent,
                coalesced=gate.coalesced,
                invalid=gate.invalid,
            )
        )


def _ms(start: float, end: float | None) -> float:
    return round(((end or start) - start) * 1000, 3)


async def run(
    call: CallScope, work: Callable[[], Awaitable[ToolResult]], beside: Callable[[], Awaitable[None]]
) -> Outcome | None:
    """Run the work of a call in a nursery of its own; `beside` runs next to it and ends with it.

    Returns the outcome before it is settled; None when the call's scope ended it. Cancellation from outside the scope
    (the engine is torn down) passes through, after `CallScope.abandon`.
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
