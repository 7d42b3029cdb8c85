"""The context of log entries, and the recorder that is bound to one.

A fact is what happened, such as `call.started`. Its context is where: the connection, exchange, client, session, call,
task and stream. Its cause is the entry that made it happen: for an answer, the request. The code that learns one of
these binds it:

    exchange = recorder.bind(connection="tcp4", exchange=7)
    request = exchange.having(MessageReceived(...))
    call = request.bind(call="c3")
    call = call.having(CallStarted(...))
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Protocol, TypedDict, Unpack

from msgspec import Struct, structs

# The first letters of labels of connections with all messages both ways, such as `w5`.
_PIPES: Final = "wir"


# `gc=False`: see `events`.
class Context(Struct, frozen=True, gc=False):
    """The ids of everything a fact is about. None: there is none, or it is not known.

    `connection` is the label of a connection: `tcp4` carries HTTP, `w5` is a WebSocket, `i1` are standard streams,
    `r17` are those of another process that forwards its log here, `h3` is the connection of a tool host. `exchange` is
    the number of one HTTP request with its response; on a WebSocket and on standard streams, of one message of the
    client with what answers it. `label` is the client's name from `?client=NAME` or `MCP_PROBE_CLIENT`. `session` is
    the label of a legacy session (`s7`) or of a modern client (`m7`). The id of a `stream` is unique within its session
    only.
    """

    connection: str | None = None
    exchange: int | None = None
    label: str | None = None
    session: str | None = None
    call: str | None = None
    task: str | None = None
    stream: str | None = None

    @property
    def pipe(self) -> str | None:
        """The connection, where it carries all messages both ways: a WebSocket or standard streams."""
        label = self.connection
        return label if label and label[0] in _PIPES else None

    @property
    def is_forwarded(self) -> bool:
        label = self.connection
        return label is not None and label.startswith("r")


class Parts(TypedDict, total=False):
    """The members of a context, for `Recorder.bind`."""

    connection: str | None
    exchange: int | None
    label: str | None
    session: str | None
    call: str | None
    task: str | None
    stream: str | None


NO_CONTEXT: Final = Context()
"""The context of facts about the server as a whole."""


class Fact(Protocol):
    """A class of `events`, as far as a recorder knows it."""

    kind: ClassVar[str]


class Appends(Protocol):
    """The methods of the event log that a recorder needs. `event_log` imports this module, not the reverse."""

    def append(self, fact: Any, context: Context, cause: int | None) -> int: ...


class Recorder:
    """Appends facts to one log with its own context and cause. Immutable; never waits."""

    __slots__ = ("_log", "cause", "context")

    def __init__(self, log: Appends, context: Context = NO_CONTEXT, cause: int | None = None) -> None:
        self._log = log
        self.context = context
        self.cause = cause

    def bind(self, **parts: Unpack[Parts]) -> Recorder:
        """Return a recorder with these parts of the context, the others, and the cause."""
        return Recorder(self._log, structs.replace(self.context, **parts), self.cause)

    def caused_by(self, seq: int | None) -> Recorder:
        return Recorder(self._log, self.context, seq)

    def about_call_of(self, other: Recorder) -> Recorder:
        own, others = self.context, other.context
        # Most messages of a stream are about one call, and a new context costs more than the rest of this.
        same = own.call == others.call and own.task == others.task
        context = own if same else structs.replace(own, call=others.call, task=others.task)
        return Recorder(self._log, context, other.cause)

    def has_log_of(self, other: Recorder) -> bool:
        return self._log is other._log

    def having(self, fact: Fact) -> Recorder:
        """Record a fact. Returns a recorder with this fact as its cause."""
        return Recorder(self._log, self.context, self._log.append(fact, self.context, self.cause))

    def append(self, fact: Fact, cause: int | None = None) -> int:
        """Record a fact; returns its sequence number. `cause` stands in for the bound one."""
        return self._log.append(fact, self.context, self.cause if cause is None else cause)
