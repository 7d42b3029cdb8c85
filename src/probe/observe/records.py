"""One record per tool call: what was asked, what came of it, and who stopped it (product contract, section 8).

A record is a fold over the event log. `CallRecords.take` is given each entry in order and looks only at those whose
context names a tool call:

    call.started        the record begins: who called what, with which arguments
    call.progressed     how far the work got; a progress notification says the same
    message.emitted     counts in `emitted`, unless it is the answer: the response whose cause is that of call.started
    message.delivered   counts in `delivered` what counts in `emitted`, each message once; or the answer was delivered
    message.dropped     the answer, if it is that, will never be sent
    stream.lost         an answer that is put on the stream afterwards will never be sent
    call.cancelled      who stops the work, if that has an effect
    call.settled        outcome, result, durations

So the records of a saved log are those that the server showed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from pydantic_core import from_json

from ..wire.jsonrpc import ProgressToken, RequestId
from . import events
from .context import Context
from .log import Entry
from .stored import encode_with

APART = frozenset({"arguments", "result"})
"""Not as the other fields of a record: they are JSON."""

# The server itself sends these about a task or a stream; the work of the call has not sent them.
_OF_THE_SERVER: Final = frozenset(
    {
        "notifications/tasks",
        "notifications/tasks/status",
        "notifications/stream/create",
        "notifications/stream/end",
    }
)
_ANSWERS: Final = frozenset({"response", "error"})
# The most runs of one call's neighbouring messages that no socket has taken; one more pushes out the oldest, whose
# messages then never count as delivered. Messages of several tasks that take turns on one stream need more than one.
_MOST_RUNS: Final = 64
# So many calls that made room while they ran are kept after their end: their answers may yet be delivered.
_MOST_OVER: Final = 100


class CallRecord(Struct):
    """A row of the audit. It grows while the call runs, and is complete once `outcome` is set and the answer delivered.

    `outcome`: one of `call_filter.OUTCOMES`; None while running, and never `lost`, which is found in a file. `done` is
    true only when the work came to its own end. `started_at` is seconds since the epoch, durations are in ms. `label`
    is the name that the client was given, None for most. `seq` is that of `call.started`.
    `answered`: whether a response to the call was sent, which for a task is its handle; `answer_delivered`: whether a
    socket took all of it. `emitted` and `delivered` count notifications and requests on the way
    to the client, not the answer. `arguments` and `result` are JSON: as objects they could take a hundred times their
    bound. `result` is what was answered, or what `tasks/result` gives; of a JSON-RPC error `{"error": …}`.
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
        """Unique over restarts of the server; `call` alone is unique within a run."""
        return f"{self.run}.{self.call}"

    def encoded(self) -> bytes:
        """The row in JSON, as the API shows it. The token's JSON type is evidence, so it stands beside the value."""
        token = self.progress_token
        kind = None if token is None else "string" if isinstance(token, str) else "integer"
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in APART}
        members = {"id": self.id, **fields, "progress_token_type": kind}
        return encode_with(members, [("arguments", self.arguments), ("result", self.result or b"null")])


Lane: TypeAlias = tuple[str | None, str] | int | None
"""Messages have positions in a lane: a stream with its session; for an answer in one piece, its exchange."""


def _lane(context: Context) -> Lane:
    return context.exchange if context.stream is None else (context.session, context.stream)


class _Run(NamedTuple):
    """Neighbouring messages of one lane, from `first` to `last`."""

    lane: Lane
    first: int
    last: int


class _Call:
    """One record, and what its next entries are compared with. `asked` is the cause of its `call.started`."""

    __slots__ = ("_answer", "_asked", "_lost", "_unanswered", "_untaken", "record")

    def __init__(self, record: CallRecord, asked: int | None) -> None:
        self.record = record
        self._asked = asked
        self._answer: tuple[Lane, int | None] | None = None
        self._lost: Lane = None
        self._unanswered = False
        self._untaken: list[_Run] = []

    def progressed(self, entry: Entry, fact: events.CallProgressed) -> None:
        self._step(fact.progress, fact.total)

    def _step(self, progress: float, total: float | None) -> None:
        # A report after the end is no progress of the work.
        if self.record.outcome is None:
            self.record.steps_done, self.record.steps_total = progress, total

    def emitted(self, entry: Entry, fact: events.MessageEmitted) -> None:
        lane, position = _lane(entry.context), fact.position
        if fact.rpc in _ANSWERS:
            if self._is_answer(entry):
                self._answer = lane, position
                self._unanswered = self._lost is not None and lane == self._lost
                self.record.answered = self.record.answered and not self._unanswered
        elif fact.method not in _OF_THE_SERVER:
            self.record.emitted += 1
            if position is not None:
                self._await_taking(lane, position)
            self._read_progress(fact)

    def _is_answer(self, entry: Entry) -> bool:
        return entry.cause is not None and entry.cause == self._asked

    def _read_progress(self, fact: events.MessageEmitted | events.MessageDropped) -> None:
        step = _progress(fact.message) if fact.method == "notifications/progress" else None
        if step is not None:
            self._step(*step)

    def _await_taking(self, lane: Lane, position: int) -> None:
        newest = self._untaken[-1] if self._untaken else None
        if newest is not None and newest.lane == lane and newest.last + 1 == position:
            self._untaken[-1] = _Run(lane, newest.first, position)
        else:
            self._untaken.append(_Run(lane, position, position))
            del self._untaken[:-_MOST_RUNS]

    def delivered(self, entry: Entry, fact: events.MessagesDelivered) -> None:
        lane = _lane(entry.context)
        if self._answer is not None and self._answer[0] == lane:
            position = self._answer[1]
            if position is None or fact.first <= position <= fact.last:
                self.record.answer_delivered = True
        if self._untaken == [(lane, fact.first, fact.last)]:
            # So it is where a client reads a stream as it is written.
            self.record.delivered += fact.last - fact.first + 1
            self._untaken.clear()
        elif self._untaken:
            self._untaken = [rest for run in self._untaken for rest in self._rest(run, lane, fact)]

    def _rest(self, run: _Run, lane: Lane, fact: events.MessagesDelivered) -> Iterator[_Run]:
        """The parts of a run that are left after a delivery, which counts the others."""
        first, last = max(run.first, fact.first), min(run.last, fact.last)
        if run.lane != lane or first > last:
            yield run
            return
        self.record.delivered += last - first + 1
        if run.first < first:
            yield _Run(lane, run.first, first - 1)
        if last < run.last:
            yield _Run(lane, last + 1, run.last)

    def dropped(self, entry: Entry, fact: events.MessageDropped) -> None:
        if fact.rpc in _ANSWERS:
            if self._is_answer(entry):
                self._unanswered, self.record.answered = True, False
        elif self.record.cancelled_by is None:
            # The report is valid, though no stream could carry it.
            self._read_progress(fact)

    def stream_lost(self, entry: Entry, fact: events.StreamLost) -> None:
        self._lost = _lane(entry.context)

    def cancelled(self, entry: Entry, fact: events.CallCancelled) -> None:
        if fact.effect:
            self.record.cancelled_by, self.record.cancel_reason = fact.by, fact.reason

    def settled(self, entry: Entry, fact: events.CallSettled) -> None:
        record = self.record
        record.outcome, record.done = fact.outcome, fact.outcome == "completed"
        record.answered = fact.answered and not self._unanswered
        record.result = None if fact.result == b"null" else fact.result
        record.duration_ms, record.cancel_latency_ms = fact.duration_ms, fact.scope_exit_ms
        record.cancelled_by, record.cancel_reason = fact.cancelled_by, fact.cancel_reason
        record.steps_done, record.steps_total, record.coalesced = fact.steps_done, fact.steps_total, fact.coalesced


_TAKERS: Mapping[type, Callable[[_Call, Entry, Any], None]] = MappingProxyType(
    {
        events.CallProgressed: _Call.progressed,
        events.MessageEmitted: _Call.emitted,
        events.MessagesDelivered: _Call.delivered,
        events.MessageDropped: _Call.dropped,
        events.StreamLost: _Call.stream_lost,
        events.CallCancelled: _Call.cancelled,
        events.CallSettled: _Call.settled,
    }
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


class CallRecords:
    """The newest records of one run, in the order in which the calls started. The oldest makes room.

    A call that makes room while it runs is followed to its end, for the holder of its record.
    """

    def __init__(self, run: str, max_records: int) -> None:
        self._run = run
        self._max_records = max_records
        self._newest: OrderedDict[str, _Call] = OrderedDict()
        # Calls that made room while they ran. As many as records, so that those whose end was missed go in the end.
        self._older: OrderedDict[str, _Call] = OrderedDict()
        self._over: deque[str] = deque()

    def __len__(self) -> int:
        """The number of records that are kept."""
        return len(self._newest)

    def take(self, entry: Entry) -> None:
        """Bring the records up to date with the next entry."""
        name = entry.context.call
        if name is None:
            return
        fact = entry.fact
        if type(fact) is events.CallStarted:
            self._start(name, entry, fact)
            return
        taker = _TAKERS.get(type(fact))
        if taker is None:
            return
        call = self._newest.get(name) or self._older.get(name)
        if call is not None:
            taker(call, entry, fact)
            if self._older and type(fact) is events.CallSettled and name in self._older:
                self._keep_a_while(name)

    def _start(self, name: str, entry: Entry, fact: events.CallStarted) -> None:
        context = entry.context
        # Every call of this server came with an exchange.
        if fact.tool is None or context.exchange is None:
            return
        record = CallRecord(
            run=self._run,
            call=name,
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
        self._newest[name] = _Call(record, entry.cause)
        if len(self._newest) > self._max_records:
            self._make_room()

    def _make_room(self) -> None:
        name, oldest = self._newest.popitem(last=False)
        if oldest.record.outcome is None:
            self._older[name] = oldest
            if len(self._older) > self._max_records:
                self._older.popitem(last=False)

    def _keep_a_while(self, name: str) -> None:
        self._over.append(name)
        if len(self._over) > _MOST_OVER:
            self._older.pop(self._over.popleft(), None)

    def get(self, call: str) -> CallRecord | None:
        """The record of a call; None where it made room, or there never was one."""
        known = self._newest.get(call)
        return None if known is None else known.record

    def newest_first(self) -> Iterator[CallRecord]:
        """All of them; to be read without waiting in between."""
        return (call.record for call in reversed(self._newest.values()))
