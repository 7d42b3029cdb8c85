"""A run of a tool or of another request that waits: its facts, its row of the audit, and its evidence.

What each kind of entry does to the row (product contract, section 8):

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

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, field
from pydantic_core import from_json

from ..observe import events
from ..observe.bounded import Newest
from ..observe.context import Context
from ..observe.log import Entry
from ..observe.records import CallRecord
from .retention import Retention
from .values import ANSWERS, Connection, Exchange, Host, Message, Task

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
# So many calls that made room while they ran are kept after their end: their answers may yet be delivered.
_MOST_OVER: Final = 100

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


class Call(Struct, eq=False):
    """One run. `record` is its row of the audit, None for what is no tool call. `ended` is its `call.settled`.

    `request` is the message that began it, `cancelled` the cancellation that had an effect. `progress` are the reports
    that were made for the client. `has_stream` says that it has a stream of the draft extension, `reader` is the pipe
    that reads it. `host` is the connection of the tool host that has still to answer it.
    `entries` is its evidence in the order in which it was found, which does not change for a reader that has read some
    of it: the head of a request is older than the entry that joins it. `visiting` counts those of other exchanges;
    `cut` says that there were more, `is_forgotten` that they made room for those of other calls.
    """

    name: str
    began: Entry
    record: CallRecord | None = None
    exchange: Exchange | None = None
    request: Message | None = None
    task: Task | None = None
    cancelled: Entry | None = None
    ended: Entry | None = None
    has_stream: bool = False
    reader: Connection | None = None
    host: Host | None = None
    progress: list[Message] = field(default_factory=list)
    entries: dict[int, None] = field(default_factory=dict)
    visiting: int = 0
    cut: bool = False
    is_forgotten: bool = False
    _answer: tuple[Lane, int | None] | None = None
    _lost: Lane = None
    _unanswered: bool = False
    _untaken: list[_Run] = field(default_factory=list)

    @property
    def tool(self) -> str | None:
        """The name of its tool; None for what is no tool call."""
        return None if self.record is None else self.record.tool

    def in_order(self) -> list[int]:
        """The numbers of its entries."""
        return sorted(self.entries)

    def found(self, skip: int) -> list[int]:
        """The numbers of its entries in the order in which they were found, from index `skip` on."""
        return [*self.entries][skip:]

    def _step(self, record: CallRecord, progress: float, total: float | None) -> None:
        # A report after the end is no progress of the work.
        if record.outcome is None:
            record.steps_done, record.steps_total = progress, total

    def progressed(self, fact: events.CallProgressed) -> None:
        """The work reported progress that no notification carries."""
        if self.record is not None:
            self._step(self.record, fact.progress, fact.total)

    def emitted(self, entry: Entry, fact: events.MessageEmitted, most_runs: int) -> None:
        """A message was made in it."""
        record, context, position = self.record, entry.context, fact.position
        if record is None:
            return
        if fact.rpc in ANSWERS:
            if entry.cause is not None and entry.cause == self.began.cause:
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

    def delivered(self, entry: Entry, fact: events.MessagesDelivered) -> None:
        """A socket took messages that are about it."""
        record = self.record
        if record is None:
            return
        lane = lane_of(entry.context)
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

    def dropped(self, entry: Entry, fact: events.MessageDropped) -> None:
        """A message of it was not sent."""
        record = self.record
        if record is None:
            return
        if fact.rpc in ANSWERS:
            if entry.cause is not None and entry.cause == self.began.cause:
                self._unanswered, record.answered = True, False
        elif record.cancelled_by is None and fact.method == _PROGRESS:
            # The report is valid, though no stream could carry it.
            self._read_progress(record, fact)

    def stream_lost(self, entry: Entry) -> None:
        """Its stream is gone."""
        self._lost = lane_of(entry.context)

    def was_cancelled(self, entry: Entry, fact: events.CallCancelled) -> None:
        """It was asked to stop."""
        if fact.effect:
            self.cancelled = entry
            if self.record is not None:
                self.record.cancelled_by, self.record.cancel_reason = fact.by, fact.reason

    def settled(self, entry: Entry, fact: events.CallSettled) -> None:
        """Its scope has exited."""
        self.ended, record = entry, self.record
        if record is None:
            return
        record.outcome, record.done = fact.outcome, fact.outcome == "completed"
        record.answered = fact.answered and not self._unanswered
        record.result = None if fact.result == b"null" else fact.result
        record.duration_ms, record.cancel_latency_ms = fact.duration_ms, fact.scope_exit_ms
        record.cancelled_by, record.cancel_reason = fact.cancelled_by, fact.cancel_reason
        record.steps_done, record.steps_total, record.coalesced = fact.steps_done, fact.steps_total, fact.coalesced


def row_of(run: str, entry: Entry, fact: events.CallStarted) -> CallRecord | None:
    """The row that begins with an entry; None where it is no tool call."""
    context = entry.context
    # Every call of this server came with an exchange.
    if fact.tool is None or context.exchange is None or context.call is None:
        return None
    return CallRecord(
        run=run,
        call=context.call,
        exchange=context.exchange,
        tool=fact.tool,
        toolset=fact.toolset,
        arguments=fact.arguments,
        era=fact.era,
        revision=fact.revision,
        transport=fact.transport,
        session=context.session,
        client_name=fact.client_name,
        client_version=fact.client_version,
        label=context.label,
        request_id=fact.request_id,
        progress_token=fact.progress_token,
        task=context.task,
        started_at=entry.at,
        seq=entry.seq,
        steps_done=None if fact.steps_total is None else 0,
        steps_total=fact.steps_total,
    )


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


class Calls:
    """The calls that are kept. `listed` are the newest tool calls, in the order in which they started.

    `named` has those and others by their names: requests that wait, and tool calls that made room while they ran. Such
    a call is found until its end and some time after, as its answer may yet come.
    """

    def __init__(self, retention: Retention) -> None:
        self._most = retention.calls
        self.listed: OrderedDict[str, Call] = OrderedDict()
        self.named: dict[str, Call] = {}
        # Calls that made room while they ran. As many as listed ones, so that those whose end was missed go in the end.
        self._older: Newest[str, Call] = Newest(retention.calls)
        self._over: Newest[str, Call] = Newest(_MOST_OVER)
        self._others: Newest[str, Call] = Newest(retention.other_calls)

    def __len__(self) -> int:
        """The number of tool calls that are listed."""
        return len(self.listed)

    def get(self, call: str) -> CallRecord | None:
        """The row of a call that is listed."""
        known = self.listed.get(call)
        return None if known is None else known.record

    def newest_first(self) -> Iterator[CallRecord]:
        """The rows of all that are listed; to be read without waiting in between."""
        return (call.record for call in reversed(self.listed.values()) if call.record is not None)

    def start(self, call: Call) -> Call | None:
        """One more. Returns the one that is let go, if any."""
        self.named[call.name] = call
        if call.record is None:
            return self._gone(self._others.store(call.name, call))
        self.listed[call.name] = call
        if len(self.listed) <= self._most:
            return None
        name, oldest = self.listed.popitem(last=False)
        return self._gone(oldest if oldest.ended is not None else self._older.store(name, oldest))

    def settle(self, call: Call) -> Call | None:
        """A tool call has ended. Returns one that is let go, if any."""
        if not self._older or self._older.pop(call.name, None) is None:
            return None
        return self._gone(self._over.store(call.name, call))

    def _gone(self, call: Call | None) -> Call | None:
        if call is not None and self.named.get(call.name) is call:
            del self.named[call.name]
        return call
