"""What the server does for its clients: calls, tasks, tool hosts, and streams with their readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import Struct, field

from ..log import events
from ..log.event_log import Entry
from .call_row import CallRow
from .records import CallRecord

if TYPE_CHECKING:
    from .values import Connection, Exchange, Message, Session


class Call(Struct, eq=False):
    """One run. `row` is that of the audit, None for what is no tool call. `ended` is its `call.settled`.

    `request` is the message that began it, `cancelled` the cancellation that had an effect. `reports` counts the
    reports of progress that were made for the client, `progress` are those that are kept. `has_stream` says that it has
    a stream of the draft extension, `reader` is the pipe that reads it. `host` is the connection of the tool host that
    has still to answer it.

    `entries` is its evidence in the order in which it was found, which does not change for a reader that has read some
    of it: the head of a request is older than the entry that joins it. `visiting` counts those of other exchanges;
    `cut` says that there were more, `is_forgotten` that they made room for those of other calls.
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
    cut: bool = False
    is_forgotten: bool = False

    @property
    def record(self) -> CallRecord | None:
        """What the audit keeps of it; None for what is no tool call."""
        return None if self.row is None else self.row.record

    @property
    def tool(self) -> str | None:
        """The name of its tool; None for what is no tool call."""
        return None if self.row is None else self.row.record.tool

    def in_order(self) -> list[int]:
        """The numbers of its entries."""
        return sorted(self.entries)

    def found(self, skip: int) -> list[int]:
        """The numbers of its entries in the order in which they were found, from index `skip` on."""
        return [*self.entries][skip:]


class Task(Struct, eq=False):
    """A task. `call` runs it, `changes` are its `task.changed`, the oldest first."""

    id: str
    call: Call | None = None
    session: Session | None = None
    removed: Entry | None = None
    changes: list[Entry] = field(default_factory=list)

    @property
    def status(self) -> str | None:
        """The newest status at the server, which its client may not know yet."""
        return getattr(self.changes[-1].fact, "status", None) if self.changes else None


class Host(Struct, eq=False):
    """A connection of a tool host. `waiting` are the calls that it has not answered, `history` what else it is about.

    `registered` has the newest list of its tools, `updated` those after it.
    """

    label: str
    connected: Entry | None = None
    registered: Entry | None = None
    closed: Entry | None = None
    waiting: dict[str, Call] = field(default_factory=dict)
    history: list[Entry] = field(default_factory=list)


class Reading(Struct, eq=False):
    """A reader of a stream: an HTTP response or a pipe. `since` is the entry by which it began to read."""

    exchange: Exchange | None
    place: Connection | None
    since: Entry


class Stream(Struct, eq=False):
    """A stream of messages to a client. `request` is what it was opened for, None for a GET.

    `sent` are its newest messages by position, `taken` is the highest position that was delivered. `readings` are its
    readers in order; `resumed` the `stream.resumed` among them. `controls` are priming, retry and comments.
    """

    id: str
    opened: Entry
    session: Session | None = None
    request: Message | None = None
    call: Call | None = None
    exchange: Exchange | None = None
    ended: Entry | None = None
    lost: Entry | None = None
    taken: int = 0
    sent: dict[int, Message] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    controls: list[Entry] = field(default_factory=list)

    def reader_by(self, at: float) -> Exchange | None:
        """The newest response that read it before a time."""
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
