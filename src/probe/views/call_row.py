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

from typing import Any, Final

import msgspec
from msgspec import Struct

from ..log import events
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


class CallRow(Struct, eq=False):
    """The row of one tool call, `record`, which the message `asked` began."""

    record: CallRecord
    asked: int | None
    _unanswered: bool = False

    def progressed(self, fact: events.CallProgressed) -> None:
        """The work reported progress that no notification carries."""
        self._step(fact.progress, fact.total)

    def emitted(self, cause: int | None, fact: events.MessageEmitted, *, lost: bool) -> None:
        """A message was made in it, for a stream that is `lost` or not."""
        record = self.record
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                self._unanswered = lost
                record.answered = record.answered and not lost
        elif fact.method not in _OF_THE_SERVER:
            record.emitted += 1
            if fact.method == _PROGRESS:
                self._read_progress(fact.message)

    def delivered(self, cause: int | None, fact: events.MessageEmitted) -> None:
        """A socket took a message of it for the first time."""
        record = self.record
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                record.answer_delivered = True
        elif fact.position is not None and fact.method not in _OF_THE_SERVER:
            record.delivered += 1

    def took(self, messages: int) -> None:
        """A socket took so many messages that are too old to be known one by one."""
        record = self.record
        record.delivered = min(record.emitted, record.delivered + messages)

    def dropped(self, cause: int | None, fact: events.MessageDropped) -> None:
        """A message of it was not sent."""
        record = self.record
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                self._unanswered, record.answered = True, False
        elif record.cancelled_by is None and fact.method == _PROGRESS:
            # The report is valid, though no stream could carry it.
            self._read_progress(fact.message)

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

    def _read_progress(self, message: bytes) -> None:
        try:
            params = _REPORT.decode(message).params
        except msgspec.DecodeError:
            # A log from elsewhere may have anything.
            return
        self._step(params.progress, params.total if type(params.total) in (int, float) else None)

    def _step(self, progress: float, total: float | None) -> None:
        # A report after the end is no progress of the work.
        if self.record.outcome is None:
            self.record.steps_done, self.record.steps_total = progress, total


class _Params(Struct):
    progress: int | float
    total: Any = None


class _Report(Struct):
    """The members of a progress notification that a row has; others are skipped."""

    params: _Params


_REPORT: Final = msgspec.json.Decoder(_Report)
