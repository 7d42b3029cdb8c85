"""One call = one nursery = one cancel scope = one record.

    await run(call, work)

opens the call's nursery under its scope, runs the work in it and settles the machine. Whoever wants the work stopped
calls `CallScope.cancel`; whether it was heard in time is decided by `core.call` and by nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import trio

from ..core.call import Call, Cause
from ..core.deadline import Deadlines
from ..core.progress import ProgressGate, Report
from ..observe.events import (
    CallCancelled,
    CallProgressed,
    CallSettled,
    CallStarted,
    DispatchExpired,
    DispatchExtended,
    DispatchSettled,
)
from ..observe.log import EventLog
from ..observe.records import CallRecord
from ..wire.errors import Code, McpError
from ..wire.jsonrpc import RequestId
from .clock import Clock
from .failures import deadline_failure
from .outcome import Outcome, attempt_async
from .tool import ToolResult

MAX_REASON = 500
"""Characters of a cancellation's reason that are kept: a sentence or two, in every one of the call records."""

_KINDS = {Cause.DISCONNECT: "disconnected", Cause.DEADLINE: "timed_out"}
"""The outcome of a call by what ended it; `cancelled` for other causes."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What identifies a call in the log."""

    id: str
    exchange: int
    request_id: RequestId
    method: str
    session: str | None
    task: str | None = None


def _nobody(_outcome: Outcome | None) -> None:
    pass


class CallScope:
    """The machine, the trio scope and the record of one call. Made by the engine, run once by `run`.

    `emitted` counts messages that the work sent, so that "nothing after the cancellation" is measured, not assumed.
    `working` is false once the work has ended: what is sent then, up to the answer, is the engine's own.
    `answer` tells the client what became of a call that is given up. `deadlines` are those of a dispatch; a task, and
    a request that is no tool call, has none. `reports_sent` counts the progress that went on to the client.
    """

    def __init__(self, facts: CallFacts, record: CallRecord | None, log: EventLog, clock: Clock) -> None:
        self.facts = facts
        self.record = record
        self.machine = Call()
        self.scope = trio.CancelScope()
        self.deadlines: Deadlines | None = None
        self.expiry_cause = Cause.DEADLINE
        self.emitted = self.reports_sent = 0
        self.working = True
        self.answer: Callable[[Outcome | None], None] = _nobody
        self.started = clock.now()
        self._emitted_at_cancel = 0
        self._gate: ProgressGate | None = None
        self._log = log
        self._clock = clock
        seq = log.append(
            CallStarted(
                call=facts.id,
                exchange=facts.exchange,
                session=facts.session,
                task=facts.task,
                request_id=facts.request_id,
                method=facts.method,
                tool=record.tool if record else None,
                progress_token=record.progress_token if record else None,
            )
        )
        if record is not None:
            record.seq = seq

    def dispatch(self, deadlines: Deadlines, gate: ProgressGate) -> None:
        """The call is a dispatch, with these deadlines from now on; its progress passes through `gate`."""
        self._gate = gate
        self._bound(deadlines)

    def _bound(self, deadlines: Deadlines) -> None:
        # They are the scope's own, so expiry and cancellation are one mechanism.
        self.deadlines = deadlines
        self.scope.deadline = deadlines.at

    def progressed(self) -> None:
        """A valid progress report arrived: the idle deadline moves, unless it has passed or the call is over."""
        self.expire()
        if self.deadlines is not None and self.machine.cause is None and not self.machine.settled:
            moved, news = self.deadlines.progress(self._clock.now())
            self._bound(moved)
            if news:
                facts = self.facts
                self._log.append(
                    DispatchExtended(facts.id, facts.session, moved.progress_count, moved.which, moved.at_ms)
                )

    def note_untold(self, report: Report) -> None:
        """Record progress that nobody asked to hear; after a cancellation it is none."""
        if self.audible:
            facts = self.facts
            self._log.append(
                CallProgressed(
                    facts.id, facts.session, facts.task, report.progress, report.total, report.message
                )
            )

    def cancel(self, cause: Cause, reason: str | None = None) -> bool:
        """Ask the work to stop; returns whether this is what stops it. Never waits: the scope exits later."""
        self.expire()
        return self._cancel(cause, self._clock.now(), reason)

    def expire(self) -> None:
        """Mark that the deadline of the scope has passed, if it has.

        trio decides that at the deadline and tells nobody until the scope exits, which work that cleans up in a shield
        can put off. Whoever asks how the call stands asks here first, so nothing comes between decision and mark.
        """
        if self.machine.cause is None and not self.machine.settled and self.scope.cancel_called:
            if self.deadlines is not None:
                self._note_expired(self.deadlines)
            self._cancel(self.expiry_cause, self.scope.deadline, None)

    def _note_expired(self, over: Deadlines) -> None:
        self._log.append(
            DispatchExpired(
                call=self.facts.id,
                session=self.facts.session,
                deadline=over.which,
                elapsed_ms=over.at_ms,
                idle_ms=over.idle_ms,
                ceiling_ms=over.ceiling_ms,
                reports=over.progress_count,
            )
        )

    def _cancel(self, cause: Cause, at: float, reason: str | None) -> bool:
        effect = self.machine.cancel(cause, at, reason)
        if effect:
            self._emitted_at_cancel = self.emitted
            self.scope.cancel(reason=cause.value)
        facts = self.facts
        self._log.append(
            CallCancelled(facts.id, facts.session, facts.task, facts.request_id, cause.value, reason, effect)
        )
        return effect

    def count_emitted(self, *, by_work: bool = True) -> None:
        """A message was sent for the call. The withdrawal of a question is not sent by the work."""
        self.emitted += by_work and self.working
        if self.record is not None:
            self.record.emitted += 1

    def count_delivered(self) -> None:
        """A socket took a message of the call."""
        if self.record is not None:
            self.record.delivered += 1

    def answer_delivered(self) -> None:
        """A socket took the whole answer."""
        if self.record is not None:
            self.record.answer_delivered = True

    def answer_lost(self) -> None:
        """There was an answer, and nobody can have it."""
        if self.record is not None:
            self.record.answered = False

    @property
    def audible(self) -> bool:
        """Whether what is said now may be sent: not after the call's cancellation, its deadline, or its end."""
        return self.may_send(by_work=self.working)

    def may_send(self, *, by_work: bool) -> bool:
        """Whether a message may be sent for this call.

        A call whose deadline has passed will be answered. Before that the engine withdraws what the work has asked, and
        sends the last report that came in time; the work itself is heard no more.
        """
        self.expire()
        told = self.machine.cause is Cause.DEADLINE and not by_work
        return not self.machine.settled and (self.machine.cause is None or told)

    def settle(self, outcome: Outcome | None) -> Outcome | None:
        """The work has ended with `outcome`, or by its scope (None). Returns what to answer, None for silence."""
        # What would answer knows the call: a cycle, for the collector to find much later.
        self.answer = _nobody
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

        What the work comes to later is for nobody.
        """
        if self.machine.cause is not None and not self.machine.settled:
            answer = self.answer
            answer(self.settle(None))

    def abandon(self) -> None:
        """The whole engine is being torn down around the call: record it, answer nothing."""
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
        self._record(_KINDS.get(self.machine.cause, "cancelled"), None, answered=self.facts.task is not None)

    def _record(self, kind: str, outcome: Outcome | None, *, answered: bool) -> None:
        machine, record, facts = self.machine, self.record, self.facts
        duration = _ms(self.started, machine.settled_at)
        latency = None if machine.cancelled_at is None else _ms(machine.cancelled_at, machine.settled_at)
        sent_after = self.emitted - self._emitted_at_cancel if machine.cause else 0
        if record is not None:
            record.outcome, record.answered, record.duration_ms = kind, answered, duration
            record.done = kind == "completed"
            record.cancelled_by = machine.cause.value if machine.cause else None
            record.cancel_reason, record.cancel_latency_ms = machine.reason, latency
            record.result = None if outcome is None else outcome.kept(record.max_result_bytes)
        if self._gate is not None:
            self._note_over(self._gate, kind, duration)
        self._log.append(
            CallSettled(
                call=facts.id,
                session=facts.session,
                task=facts.task,
                request_id=facts.request_id,
                outcome=kind,
                answered=answered,
                duration_ms=duration,
                cancelled_by=machine.cause.value if machine.cause else None,
                scope_exit_ms=latency,
                steps_done=record.steps_done if record else None,
                steps_total=record.steps_total if record else None,
                sent_after_cancel=sent_after,
            )
        )

    def _note_over(self, gate: ProgressGate, kind: str, duration_ms: float) -> None:
        self._log.append(
            DispatchSettled(
                call=self.facts.id,
                session=self.facts.session,
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
            outcome = await attempt_async(partial(_together, work, beside))
    except BaseException:
        call.abandon()
        raise
    call.working = False
    call.expire()
    return outcome if call.machine.cause is None else None


async def _together(work: Callable[[], Awaitable[ToolResult]], beside: Callable[[], Awaitable[None]]) -> ToolResult:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(beside)
        # Work that was cancelled before it began does not even take its first step.
        await trio.lowlevel.checkpoint_if_cancelled()
        result = await work()
        nursery.cancel_scope.cancel()
    return result
