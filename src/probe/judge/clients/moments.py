"""Small facts that the log has once, beside its views, and the era of a message."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct
from pydantic_core import from_json

from ...core.inbound import HttpHead
from ...core.modern_inbound import era_of_head
from ...log import events
from ...log.event_log import Entry
from ...log.events.messages import UnreadableFault
from ...views.clients import Connection, Session
from ...views.retention import members
from ...views.values import Exchange, Message
from ...views.work import Stream, Task
from ...wire.jsonrpc import is_id
from ...wire.revisions import LEGACY, MODERN, negotiate
from ...wire.v2026.meta import PROTOCOL_VERSION


class Moment(Struct, eq=False):
    """The fact of one entry."""

    entry: Entry

    @property
    def seq(self) -> int:
        return self.entry.seq

    @property
    def at(self) -> float:
        return self.entry.mono


class Unreadable(Moment, eq=False):
    """Bytes of the client that were not read as JSON: see `events.MessageUnreadable`."""

    exchange: Exchange | None
    pipe: Connection | None

    @property
    def fact(self) -> events.MessageUnreadable:
        return cast("events.MessageUnreadable", self.entry.fact)

    @property
    def fault(self) -> UnreadableFault:
        return self.fact.fault

    @property
    def revision(self) -> str | None:
        return None if self.pipe is None else self.pipe.revision


class Control(Moment, eq=False):
    """A part of an event stream beside messages: see `events.StreamControl`."""

    stream: Stream
    exchange: Exchange

    @property
    def fact(self) -> events.StreamControl:
        return cast("events.StreamControl", self.entry.fact)


class Frame(Moment, eq=False):
    """A control frame or a refused frame of a WebSocket: see `events.WebSocketFrame`."""

    pipe: Connection

    @property
    def fact(self) -> events.WebSocketFrame:
        return cast("events.WebSocketFrame", self.entry.fact)

    @property
    def revision(self) -> str | None:
        return self.pipe.revision


class ProcessChange(Moment, eq=False):
    """A change of the server on standard streams, or of the client that `mcp-probe judge` started."""

    of: Literal["server", "client"]
    pipe: Connection | None

    @property
    def fact(self) -> events.StdioChanged | events.ClientProcess:
        return cast("events.StdioChanged | events.ClientProcess", self.entry.fact)

    @property
    def revision(self) -> str | None:
        return None if self.pipe is None else self.pipe.revision


class TaskNews(Moment, eq=False):
    """A status of a task at the server; the client need not know it yet."""

    task: Task

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def status(self) -> str:
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
    """The capabilities that a client declared with `initialize`."""
    return members(from_json(session.fact.capabilities))


Era: TypeAlias = Literal["legacy", "modern"]

_VERSION_HEADER: Final = "mcp-protocol-version"


def era_of(revision: str | None) -> Era | None:
    """The era of a revision that this server knows."""
    if revision in LEGACY:
        return "legacy"
    return "modern" if revision in MODERN else None


@lru_cache(maxsize=64)
def era_by_head(head: HttpHead) -> Era | None:
    """The era of an HTTP request by its head alone; equal heads are one object (`Exchange.fields`)."""
    return era_of_head(head)


def lacks_session(message: Message) -> bool:
    """True for a message in a legacy session whose opening the log lacks."""
    label = message.entry.context.session
    return message.session is None and label is not None and events.is_session(label)


# Answers and notifications without a session name no revision themselves.
_ERALESS: Final = frozenset({"notification", "response", "error"})


def note_speech(message: Message) -> None:
    """Note the era, the revision, `_meta` and the progress token of a message of the client, in their order.

    An `initialize` has the revision that it asks for until its session is open.
    """
    value, pipe = message.value, message.pipe
    session = message.opened or message.session
    if session is None or not session.is_legacy:
        session = None if pipe is None else pipe.session
    era, revision = _spoken(message.method, value, message.exchange, session)
    label = message.entry.context.session
    # The log may lack the opening of a session, and over HTTP the head of a request in one.
    is_legacy = label is not None and events.is_session(label)
    if pipe is None:
        if era == "modern" and is_legacy and message.post is None:
            era, revision = (None, None) if session is None else ("legacy", session.revision)
    elif era == "modern":
        pipe.modern = revision or pipe.modern
    elif era is None and message.rpc in _ERALESS and pipe.modern is not None and not is_legacy:
        era, revision = "modern", pipe.modern
    message.era, message.revision = era, revision
    if era == "modern":
        message.in_session = None
    if message.method is None:
        return
    meta = message.meta
    message.has_meta = bool(meta)
    if meta and message.rpc == "request":
        token = meta.get("progressToken")
        if is_id(token) and not message.hides("/params/_meta/progressToken"):
            message.token = token


def _spoken(
    method: str | None, value: Any, exchange: Exchange | None, session: Session | None
) -> tuple[Era | None, str | None]:
    params = members(members(value).get("params"))
    if method == "initialize":
        asked = params.get("protocolVersion")
        return "legacy", negotiate(asked) if isinstance(asked, str) else LEGACY[-1]
    version = members(params.get("_meta")).get(PROTOCOL_VERSION)
    named = () if exchange is None else exchange.fields.each(_VERSION_HEADER)
    by_head = None if exchange is None else era_by_head(exchange.fields)
    if isinstance(version, str) and by_head != "legacy" and (era_of(version) == "modern" or by_head != "modern"):
        return "modern", version if era_of(version) == "modern" else None
    if by_head == "modern":
        return "modern", next(each for each in named if each in MODERN)
    if session is not None:
        return "legacy", session.revision
    return next(((era_of(each), each) for each in named[:1] if era_of(each) is not None), (None, None))
