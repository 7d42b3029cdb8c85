"""Views of the server's work for clients: calls, tasks, tool hosts, and streams with their readers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import Struct, field

from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from .records import CallRecord, CallRow
from .retention import Retention

# Views refer to each other in all directions, by these types alone.
if TYPE_CHECKING:
    from .clients import Connection, Session
    from .values import Exchange, Message


class Call(Struct, eq=False):
    """One call. `row` is its row of the audit, None unless it is a tool call.

    `request` is the message that began it, `cancelled` the cancellation with an effect. `reports` counts the progress
    reports made for the client, `progress` are the kept ones. `has_stream`: with a draft stream, read by the pipe
    `reader`. `host` is the tool host with an answer due. `newest` is the number of the entry that changed its row last.

    `entries` is its evidence in the order of finding: the head of a request is older than the entry that joins it. New
    ones are appended, so a reader can continue where it was. `visiting` counts those of other exchanges. `cut`: there
    were more; `is_forgotten`: they made room for those of other calls.
    """

    name: str
    began: Entry
    row: CallRow | None = None
    exchange: Exchange | None = None
    request: Message | None = None
    task: Task | None = None
    cancelled: Entry | None = None
    ended: Entry | None = None
    has_stream: bool = False
    reader: Connection | None = None
    host: Host | None = None
    reports: int = 0
    progress: list[Message] = field(default_factory=list)
    entries: dict[int, None] = field(default_factory=dict)
    visiting: int = 0
    newest: int = 0
    cut: bool = False
    is_forgotten: bool = False

    @property
    def record(self) -> CallRecord | None:
        return None if self.row is None else self.row.record

    @property
    def tool(self) -> str | None:
        return None if self.row is None else self.row.record.tool

    def in_order(self) -> list[int]:
        return sorted(self.entries)

    def found(self, skip: int) -> list[int]:
        """In the order of finding, from index `skip` on."""
        return [*self.entries][skip:]


class Task(Struct, eq=False):
    """A task. `call` runs it, `changes` are its `task.changed`: the first, and the newest in order.

    `steps` are the progress and total of its call when the call made room.
    """

    id: str
    call: Call | None = None
    session: Session | None = None
    removed: Entry | None = None
    changes: list[Entry] = field(default_factory=list)
    steps: tuple[float | None, float | None] = (None, None)

    @property
    def status(self) -> str | None:
        """The newest status at the server; its client may not have it yet."""
        return getattr(self.changes[-1].fact, "status", None) if self.changes else None


class HostedCall(Struct, eq=False):
    """One call at a tool host, from `dispatch.sent` on. It takes a place there while `is_there`.

    That is until it is settled. A dispatch with `told_to_stop` keeps its place until it has `stopped`; this may come
    long after the answer of the call. `late` counts the messages of its host after the end.
    """

    host: Host
    told_to_stop: bool = False
    settled: bool = False
    stopped: bool = False
    late: int = 0

    @property
    def is_over(self) -> bool:
        """True if its host need not send a message about it any more."""
        return self.settled and (self.stopped or not self.told_to_stop)


class Host(Struct, eq=False):
    """A connection of a tool host. `waiting` are its unanswered calls.

    `registered` has its name, `offer` (the same, or the newest `host.updated`) its tools. `newest` is the number of the
    entry that changed it last, `last_at` the time of its newest message or other entry. `in_flight` counts dispatches
    that take a place, `dispatched` all of them, and `outcomes` the settled ones by outcome.
    """

    label: str
    connected: Entry | None = None
    registered: Entry | None = None
    offer: Entry | None = None
    closed: Entry | None = None
    waiting: dict[str, Call] = field(default_factory=dict)
    newest: int = 0
    last_at: float = 0.0
    in_flight: int = 0
    dispatched: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    late: int = 0
    misuse: int = 0


End: TypeAlias = tuple[str, float]
"""The reason of an end, and its time in seconds since the epoch."""


class Reading(Struct, eq=False):
    """A reader of a stream: an HTTP response or a pipe. `since` is its first entry as a reader.

    `asked` is the request to resume, if it reads because of one. `over` is an end before its response or pipe was
    closed, with reason and time.
    """

    exchange: Exchange | None
    place: Connection | None
    since: Entry
    asked: Message | None = None
    over: End | None = None

    @property
    def label(self) -> str | None:
        return None if self.place is None else self.place.label

    @property
    def number(self) -> int | None:
        """The exchange of the response, or the one that opened the pipe."""
        if self.exchange is not None:
            return self.exchange.number
        opened = None if self.place is None else self.place.opened
        return None if opened is None else opened.context.exchange

    @property
    def closed(self) -> Entry | None:
        if self.exchange is not None:
            return self.exchange.closed
        return None if self.place is None else self.place.closed

    @property
    def end(self) -> End | None:
        closed = None if self.over is not None else self.closed
        return self.over if closed is None else (getattr(closed.fact, "by", ""), closed.at)

    @property
    def is_over(self) -> bool:
        return self.over is not None or self.closed is not None


class Stream(Struct, eq=False):
    """A stream of messages to a client. `request` is the request that opened it, None for a GET.

    `sent` are its newest messages by position, `taken` is the highest delivered position, `made` counts its messages.
    `readings` are its first readers in order, `reading` is the newest; `resumed` counts the readers after the first.
    `left` is the end of the last one, if none reads now. `controls` are priming, retry and comments. `newest` is the
    number of the entry that changed it last, apart from the end of its reader.
    """

    id: str
    opened: Entry
    newest: int
    session: Session | None = None
    request: Message | None = None
    call: Call | None = None
    exchange: Exchange | None = None
    ended: Entry | None = None
    lost: Entry | None = None
    taken: int = 0
    made: int = 0
    resumed: int = 0
    reading: Reading | None = None
    left: End | None = None
    sent: dict[int, Message] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    controls: list[Entry] = field(default_factory=list)

    def reader_by(self, at: float) -> Exchange | None:
        """The newest response that began to read before a time."""
        readers = [each.exchange for each in self.readings if each.since.mono < at and each.exchange is not None]
        return readers[-1] if readers else None

    def was_read_by_another(self, exchange: Exchange, until: float) -> bool:
        """True if another reader came after an exchange, before a time."""
        places = [place for place, reading in enumerate(self.readings) if reading.exchange is exchange]
        later = self.readings[places[-1] + 1 :] if places else self.readings
        return any(reading.since.mono < until for reading in later)

    @property
    def purpose(self) -> str:
        """`response`, `standalone`, `subscription` or `resumable`."""
        return cast("events.StreamOpened", self.opened.fact).purpose

    @property
    def waiting(self) -> int:
        """The number of its messages that no socket has taken; 0 for a lost stream."""
        return max(0, self.made - self.taken) if self.lost is None else 0

    @property
    def was_read(self) -> bool:
        return self.reading is not None or self.left is not None

    def leave(self, why: str, entry: Entry) -> None:
        if self.reading is not None and not self.reading.is_over:
            self.reading.over, self.newest = (why, entry.at), entry.seq

    def forget(self) -> None:
        """Remove its references to other views."""
        self.left, self.reading = self.left if self.reading is None else self.reading.end, None
        self.sent.clear()
        self.readings.clear()
        self.controls.clear()
        self.session = self.request = self.call = self.exchange = None


def row_of(run: str, entry: Entry, fact: events.CallStarted) -> CallRow | None:
    """The row of a tool call that starts with an entry; None for another call."""
    context = entry.context
    # Every call of this server came with an exchange.
    if fact.tool is None or context.exchange is None or context.call is None:
        return None
    record = CallRecord(
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
    return CallRow(record, entry.cause)


class Calls:
    """The kept calls. `listed` are the newest tool calls, in order of their start.

    `named` has by name the listed calls, waiting requests, and tool calls that made room while running. A call of the
    last kind is found for some time after its end: its answer may yet come.
    """

    def __init__(self, retention: Retention) -> None:
        self._most = retention.calls
        self.listed: OrderedDict[str, Call] = OrderedDict()
        self.named: dict[str, Call] = {}
        # Calls that made room while running. The limit lets go of those with a missed end.
        self._older: Newest[str, Call] = Newest(retention.calls)
        self._over: Newest[str, Call] = Newest(retention.ended_calls)
        self._others: Newest[str, Call] = Newest(retention.other_calls)

    def __len__(self) -> int:
        return len(self.listed)

    def get(self, call: str) -> CallRecord | None:
        known = self.listed.get(call)
        return None if known is None else known.record

    def newest_first(self) -> Iterator[CallRecord]:
        """To be read without an `await` in between."""
        return (call.record for call in reversed(self.listed.values()) if call.record is not None)

    def start(self, call: Call) -> Call | None:
        """Returns the call let go for it, if any."""
        self.named[call.name] = call
        if call.record is None:
            return self._gone(self._others.store(call.name, call))
        self.listed[call.name] = call
        if len(self.listed) <= self._most:
            return None
        name, oldest = self.listed.popitem(last=False)
        return self._gone(oldest if oldest.ended is not None else self._older.store(name, oldest))

    def settle(self, call: Call) -> Call | None:
        """Returns the call let go for it, if any."""
        if not self._older or self._older.pop(call.name, None) is None:
            return None
        return self._gone(self._over.store(call.name, call))

    def forget_before(self, first: int, most: int | None) -> list[Call]:
        """Remove the calls that ended before the entry `first`; returns them.

        One without a row stays while its request is kept, which may yet be asked about it. Beyond `most` of these, the
        others go, too.
        """
        gone = list[Call]()
        for call in self.listed.values():
            if call.began.seq >= first:
                break
            if call.ended is not None and call.ended.seq < first:
                gone.append(call)
        for call in gone:
            del self.listed[call.name]
        gone += self._others.sweep(
            lambda each: each.began.seq < first,
            lambda each: each.ended is not None and each.ended.seq < first and each.request is None,
            most,
        )
        for call in gone:
            self._gone(call)
        return gone

    def _gone(self, call: Call | None) -> Call | None:
        if call is not None and self.named.get(call.name) is call:
            del self.named[call.name]
        return call
