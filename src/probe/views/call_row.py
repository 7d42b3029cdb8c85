"""The row of the audit that a tool call has: what each kind of entry does to it (product contract, section 8).

call.started        the row begins: who called what, with which arguments
call.progressed     how far the work got; a progress notification says the same
message.emitted     counts in `emitted`, unless it is the answer: the response whose cause is that of call.started
message.delivered   counts in `delivered` what counts in `emitted`, each message once; or the answer was delivered
message.dropped     the answer, if it is that, will never be sent
stream.lost         an answer that is put on the stream afterwards will never be sent
call.cancelled      who stops the work, if that has an effect
call.settled        outcome, result, durations
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, field
from pydantic_core import from_json

from ..log import events
from ..log.context import Context
from .records import CallRecord

ANSWERS: Final = frozenset({"response", "error"})
# The server itself sends these about a task or a stream; the work of the call has not sent them.
_OF_THE_SERVER: Final = frozenset(
    {
        "notifications/tasks",
        "notifications/tasks/status",
        "notifications/stream/create",
        "notifications/stream/end",
    }
)
_PROGRESS: Final = "notifications/progress"

Lane: TypeAlias = tuple[str | None, str] | int | None
"""Messages have positions in a lane: a stream with its session; for an answer in one piece, its exchange."""


def lane_of(context: Context) -> Lane:
    """The lane of an entry."""
    return context.exchange if context.stream is None else (context.session, context.stream)


class _Run(NamedTuple):
    """Neighbouring messages of one lane, from `first` to `last`."""

    lane: Lane
    first: int
    last: int


class CallRow(Struct, eq=False):
    """The row of one tool call, `record`, which the message `asked` began. `_untaken` are what no socket has taken."""

    record: CallRecord
    asked: int | None
    _answer: tuple[Lane, int | None] | None = None
    _lost: Lane = None
    _unanswered: bool = False
    _untaken: list[_Run] = field(default_factory=list)

    def _step(self, record: CallRecord, progress: float, total: float | None) -> None:
        # A report after the end is no progress of the work.
        if record.outcome is None:
            record.steps_done, record.steps_total = progress, total

    def progressed(self, fact: events.CallProgressed) -> None:
        """The work reported progress that no notification carries."""
        self._step(self.record, fact.progress, fact.total)

    def emitted(self, context: Context, cause: int | None, fact: events.MessageEmitted, most_runs: int) -> None:
        """A message was made in it."""
        record, position = self.record, fact.position
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                lane = lane_of(context)
                self._answer = lane, position
                self._unanswered = self._lost is not None and lane == self._lost
                record.answered = record.answered and not self._unanswered
        elif fact.method not in _OF_THE_SERVER:
            record.emitted += 1
            if position is not None:
                self._await_taking(lane_of(context), position, most_runs)
            if fact.method == _PROGRESS:
                self._read_progress(record, fact)

    def _read_progress(self, record: CallRecord, fact: events.MessageEmitted | events.MessageDropped) -> None:
        step = _progress(fact.message)
        if step is not None:
            self._step(record, *step)

    def _await_taking(self, lane: Lane, position: int, most_runs: int) -> None:
        newest = self._untaken[-1] if self._untaken else None
        if newest is not None and newest.last + 1 == position and newest.lane == lane:
            self._untaken[-1] = _Run(lane, newest.first, position)
        else:
            self._untaken.append(_Run(lane, position, position))
            del self._untaken[:-most_runs]

    def delivered(self, context: Context, fact: events.MessagesDelivered) -> None:
        """A socket took messages that are about it."""
        record = self.record
        lane = lane_of(context)
        if self._answer is not None and self._answer[0] == lane:
            position = self._answer[1]
            if position is None or fact.first <= position <= fact.last:
                record.answer_delivered = True
        if self._untaken == [(lane, fact.first, fact.last)]:
            # So it is where a client reads a stream as it is written.
            record.delivered += fact.last - fact.first + 1
            self._untaken.clear()
        elif self._untaken:
            self._untaken = [rest for run in self._untaken for rest in self._rest(record, run, lane, fact)]

    def _rest(self, record: CallRecord, run: _Run, lane: Lane, fact: events.MessagesDelivered) -> Iterator[_Run]:
        """The parts of a run that are left after a delivery, which counts the others."""
        first, last = max(run.first, fact.first), min(run.last, fact.last)
        if run.lane != lane or first > last:
            yield run
            return
        record.delivered += last - first + 1
        if run.first < first:
            yield _Run(lane, run.first, first - 1)
        if last < run.last:
            yield _Run(lane, last + 1, run.last)

    def dropped(self, cause: int | None, fact: events.MessageDropped) -> None:
        """A message of it was not sent."""
        record = self.record
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                self._unanswered, record.answered = True, False
        elif record.cancelled_by is None and fact.method == _PROGRESS:
            # The report is valid, though no stream could carry it.
            self._read_progress(record, fact)

    def stream_lost(self, context: Context) -> None:
        """Its stream is gone."""
        self._lost = lane_of(context)

    def cancelled(self, fact: events.CallCancelled) -> None:
        """It was asked to stop, with an effect."""
        self.record.cancelled_by, self.record.cancel_reason = fact.by, fact.reason

    def settled(self, fact: events.CallSettled) -> None:
        """Its scope has exited."""
        record = self.record
        record.outcome, record.done = fact.outcome, fact.outcome == "completed"
        record.answered = fact.answered and not self._unanswered
        record.result = None if fact.result == b"null" else fact.result
        record.duration_ms, record.cancel_latency_ms = fact.duration_ms, fact.scope_exit_ms
        record.cancelled_by, record.cancel_reason = fact.cancelled_by, fact.cancel_reason
        record.steps_done, record.steps_total, record.coalesced = fact.steps_done, fact.steps_total, fact.coalesced


def _progress(message: bytes) -> tuple[float, float | None] | None:
    """The progress that a notification tells; None where it tells none, as in a log from elsewhere."""
    value = from_json(message)
    params = value.get("params") if isinstance(value, dict) else None
    if not isinstance(params, dict):
        return None
    progress, total = _number(params.get("progress")), _number(params.get("total"))
    return None if progress is None else (progress, total)


def _number(value: Any) -> float | None:
    return value if type(value) is int or type(value) is float else None
