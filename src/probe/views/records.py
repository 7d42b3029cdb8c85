"""The row of the audit for one tool call, and the effect of each kind of entry (product contract, section 8).

call.started        the row begins: client, tool, arguments
call.progressed     the progress of the work; a progress notification carries the same
message.emitted     counts in `emitted`, unless it is the answer: the response whose cause is that of call.started
message.delivered   counts in `delivered`, each message once, except the answer: it sets `answer_delivered`
message.dropped     if it is the answer: it will never be sent
stream.lost         an answer made for the stream afterwards will never be sent
call.cancelled      the origin of the cancellation, if it has an effect
call.settled        outcome, result, durations
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..log import events
from ..log.redaction import encode_with
from ..wire.jsonrpc import ProgressToken, RequestId

APART = frozenset({"arguments", "result"})
"""The fields of a record that hold JSON."""


class CallRecord(Struct):
    """A row of the audit. It grows while the call runs, and is complete once `outcome` is set and the answer delivered.

    `outcome`: one of `call_filter.OUTCOMES`; None while running. Never `lost`: only a reader of a file finds that.
    `done` is true only when the work came to its own end. `started_at` is seconds since the epoch, durations are in ms.
    `label` is the name given to the client (`?client=NAME`), None for most. `seq` is that of `call.started`.
    `answered`: whether a response to the call was sent (for a task: its handle). `answer_delivered`: whether a socket
    took all of it. `emitted` and `delivered` count notifications and requests on the way to the client, not the answer.
    `arguments` and `result` are JSON: as objects they could take a hundred times their bound. `result` is the result of
    the answer or of `tasks/result`; for a JSON-RPC error it is `{"error": …}`.
    """

    run: str
    call: str
    exchange: int
    tool: str
    toolset: str
    arguments: bytes
    era: str
    revision: str
    transport: str
    session: str | None
    client_name: str
    client_version: str
    label: str | None
    request_id: RequestId
    progress_token: ProgressToken | None
    task: str | None
    started_at: float
    seq: int = 0
    result: bytes | None = None
    outcome: str | None = None
    done: bool = False
    steps_done: float | None = None
    steps_total: float | None = None
    emitted: int = 0
    delivered: int = 0
    coalesced: int = 0
    duration_ms: float | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None
    cancel_latency_ms: float | None = None
    answered: bool = False
    answer_delivered: bool = False

    @property
    def id(self) -> str:
        """`call` alone is unique within a run only."""
        return f"{self.run}.{self.call}"

    def encoded(self) -> bytes:
        """The row in JSON, as the API shows it: with the JSON type of the token, and `cancelled_by` in words."""
        token = self.progress_token
        kind = None if token is None else "string" if isinstance(token, str) else "integer"
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in APART}
        how = None if self.cancelled_by is None else cancelled_how(self.cancelled_by)
        members = {"id": self.id, **fields, "cancelled_how": how, "progress_token_type": kind}
        return encode_with(members, [("arguments", self.arguments), ("result", self.result or b"null")])


ANSWERS: Final = frozenset({"response", "error"})
# About a task or a stream: no messages of the work.
_OF_THE_SERVER: Final = frozenset(
    {
        "notifications/tasks",
        "notifications/tasks/status",
        "notifications/stream/create",
        "notifications/stream/end",
    }
)
_PROGRESS: Final = "notifications/progress"


_HOW: Final[Mapping[str, str]] = {
    "notification": "by the client",
    "tasks_cancel": "by the client with tasks/cancel",
    "deadline": "by a deadline",
    "ttl": "because the time to live of its task had passed",
    "session_end": "because its session ended",
    "shutdown": "by the shutdown of the server",
    "disconnect": "by the client, which was gone",
}


def cancelled_how(by: str) -> str:
    """The cause of a cancellation in words after `cancelled`: `by the client` for `notification`."""
    return _HOW.get(by, f"by {by}")


class CallRow(Struct, eq=False):
    """The row of one tool call, `record`; the message `asked` began the call."""

    record: CallRecord
    asked: int | None
    _unanswered: bool = False

    def progressed(self, fact: events.CallProgressed) -> None:
        """The work reported progress without a notification."""
        self._step(fact.progress, fact.total)

    def emitted(self, cause: int | None, fact: events.MessageEmitted, *, lost: bool) -> None:
        """`lost` is the state of the stream for the message."""
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
        """Called once for each message."""
        record = self.record
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                record.answer_delivered = True
        elif fact.position is not None and fact.method not in _OF_THE_SERVER:
            record.delivered += 1

    def took(self, messages: int) -> None:
        """A socket took messages that are too old to be known one by one."""
        record = self.record
        record.delivered = min(record.emitted, record.delivered + messages)

    def dropped(self, cause: int | None, fact: events.MessageDropped) -> None:
        record = self.record
        if fact.rpc in ANSWERS:
            if cause is not None and cause == self.asked:
                self._unanswered, record.answered = True, False
        elif record.cancelled_by is None and fact.method == _PROGRESS:
            # The report is valid, though no stream could carry it.
            self._read_progress(fact.message)

    def cancelled(self, fact: events.CallCancelled) -> None:
        self.record.cancelled_by, self.record.cancel_reason = fact.by, fact.reason

    def settled(self, fact: events.CallSettled) -> None:
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
            # A log of another program may have any content here.
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
    params: _Params


_REPORT: Final = msgspec.json.Decoder(_Report)
