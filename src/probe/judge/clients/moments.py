"""What a rule can be asked about beside the views of the log: small facts that the log has once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from msgspec import Struct
from pydantic_core import from_json

from ...log import events
from ...log.event_log import Entry
from ...log.events.messages import UnreadableFault
from ...views.clients import Connection, Session
from ...views.retention import members
from ...views.values import Exchange
from ...views.work import Stream, Task


class Moment(Struct, eq=False):
    """Something that an entry says."""

    entry: Entry

    @property
    def seq(self) -> int:
        """The number of its entry."""
        return self.entry.seq

    @property
    def at(self) -> float:
        """When it happened."""
        return self.entry.mono


class Unreadable(Moment, eq=False):
    """Bytes of the client that were not read as JSON: see `events.MessageUnreadable`."""

    exchange: Exchange | None
    pipe: Connection | None

    @property
    def fact(self) -> events.MessageUnreadable:
        """What was wrong with them."""
        return cast("events.MessageUnreadable", self.entry.fact)

    @property
    def fault(self) -> UnreadableFault:
        """Such as `syntax`."""
        return self.fact.fault

    @property
    def revision(self) -> str | None:
        """The revision of its pipe; None without one."""
        return None if self.pipe is None else self.pipe.revision


class Control(Moment, eq=False):
    """A part of an event stream beside messages: see `events.StreamControl`."""

    stream: Stream
    exchange: Exchange

    @property
    def fact(self) -> events.StreamControl:
        """What it was."""
        return cast("events.StreamControl", self.entry.fact)


class Frame(Moment, eq=False):
    """A control frame or a refused frame of a WebSocket: see `events.WebSocketFrame`."""

    pipe: Connection

    @property
    def fact(self) -> events.WebSocketFrame:
        """What it was."""
        return cast("events.WebSocketFrame", self.entry.fact)

    @property
    def revision(self) -> str | None:
        """The revision of its pipe."""
        return self.pipe.revision


class ProcessChange(Moment, eq=False):
    """Something happened to the server on standard streams, or to the client that `mcp-probe judge` started."""

    of: Literal["server", "client"]
    pipe: Connection | None

    @property
    def fact(self) -> events.StdioChanged | events.ClientProcess:
        """What it was."""
        return cast("events.StdioChanged | events.ClientProcess", self.entry.fact)

    @property
    def revision(self) -> str | None:
        """The revision of its pipe; None without one."""
        return None if self.pipe is None else self.pipe.revision


class TaskNews(Moment, eq=False):
    """A status of a task at the server; the client need not know it yet."""

    task: Task

    @property
    def id(self) -> str:
        """The task."""
        return self.task.id

    @property
    def status(self) -> str:
        """The new status."""
        return cast("events.TaskChanged", self.entry.fact).status


class ClientEnd(Struct, frozen=True):
    """The end of a client at a time of the log; `words` are such as "the client ended".

    `sent_all` is True if all that it sent before has come, so that nothing is on its way any more. `seq` is the newest
    entry by then.
    """

    at: float
    words: str
    sent_all: bool
    seq: int


def declared_in(session: Session) -> Mapping[str, Any]:
    """The capabilities that a client declared when it opened a session."""
    return members(from_json(session.fact.capabilities))
