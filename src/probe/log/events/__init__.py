"""The vocabulary of the event log. Each class is one kind of fact; its docstring says when it is recorded.

A fact has no ids: its connection, exchange, session, call, task and stream are the context of its entry (`context.py`).
Its cause is the entry that made it happen, named in each docstring.

The `rpc`, `method` and `id` of a message are stored beside it, so that a reader can find a message without parsing it.

    connections.py  HTTP requests and responses; connections with all messages both ways, and processes at their ends
    messages.py     messages of JSON-RPC and their essentials for searches; streams of messages
    clients.py      sessions, modern clients, and their mistakes
    calls.py        calls and tasks
    hosts.py        tool hosts, and tool calls with deadlines, here or at a tool host
    server.py       the server as a whole, forwarded logs, and kinds that only a newer version has

The classes are immutable structs of msgspec, made in C. A call has seven facts with 59 fields, and a frozen dataclass
sets each field slowly. With `gc=False` the garbage collector does not visit them: a log has 20,000 entries, and each
full collection would look at every one. No fact can be a part of a cycle, as its fields are numbers, texts and tuples
of these.

Add a new class to one of these modules, and below to the imports, `__all__` and `Event`.
"""

from __future__ import annotations

from typing import TypeAlias

from .calls import CallCancelled, CallProgressed, CallSettled, CallStarted, TaskChanged, TaskRemoved
from .clients import ClientMisuse, ClientSeen, SessionClosed, SessionOpened, is_session
from .connections import (
    ClientChange,
    ClientProcess,
    ConnectionClosed,
    ConnectionOpened,
    Direction,
    HttpClosed,
    HttpRequest,
    HttpResponse,
    Opcode,
    SocketClosed,
    SocketOpened,
    SocketRefused,
    StdioChange,
    StdioChanged,
    WebSocketFrame,
)
from .hosts import (
    DispatchCancelled,
    DispatchExpired,
    DispatchExtended,
    DispatchLate,
    DispatchSent,
    DispatchSettled,
    DispatchStopped,
    HostClosed,
    HostConnected,
    HostMessage,
    HostMisuse,
    HostRegistered,
    HostUpdated,
)
from .messages import (
    Control,
    MessageDropped,
    MessageEmitted,
    MessageReceived,
    MessageRefused,
    MessagesDelivered,
    MessageUnreadable,
    RequestRepeated,
    StreamControl,
    StreamEnded,
    StreamLost,
    StreamOpened,
    StreamResumed,
    UnreadableFault,
    essentials,
    subject,
)
from .server import (
    AuditState,
    ForwardingBegun,
    ForwardingEnded,
    ForwardingMissed,
    LimitReached,
    ServerState,
    UnknownEvent,
)

__all__ = [
    "AnyEvent",
    "AuditState",
    "CallCancelled",
    "CallProgressed",
    "CallSettled",
    "CallStarted",
    "ClientChange",
    "ClientMisuse",
    "ClientProcess",
    "ClientSeen",
    "ConnectionClosed",
    "ConnectionOpened",
    "Control",
    "Direction",
    "DispatchCancelled",
    "DispatchExpired",
    "DispatchExtended",
    "DispatchLate",
    "DispatchSent",
    "DispatchSettled",
    "DispatchStopped",
    "Event",
    "ForwardingBegun",
    "ForwardingEnded",
    "ForwardingMissed",
    "HostClosed",
    "HostConnected",
    "HostMessage",
    "HostMisuse",
    "HostRegistered",
    "HostUpdated",
    "HttpClosed",
    "HttpRequest",
    "HttpResponse",
    "LimitReached",
    "MessageDropped",
    "MessageEmitted",
    "MessageReceived",
    "MessageRefused",
    "MessageUnreadable",
    "MessagesDelivered",
    "Opcode",
    "RequestRepeated",
    "ServerState",
    "SessionClosed",
    "SessionOpened",
    "SocketClosed",
    "SocketOpened",
    "SocketRefused",
    "StdioChange",
    "StdioChanged",
    "StreamControl",
    "StreamEnded",
    "StreamLost",
    "StreamOpened",
    "StreamResumed",
    "TaskChanged",
    "TaskRemoved",
    "UnknownEvent",
    "UnreadableFault",
    "WebSocketFrame",
    "essentials",
    "is_session",
    "subject",
]

Event: TypeAlias = (
    HttpRequest
    | HttpResponse
    | HttpClosed
    | ConnectionOpened
    | ConnectionClosed
    | MessageReceived
    | MessageUnreadable
    | RequestRepeated
    | MessageRefused
    | MessageEmitted
    | MessagesDelivered
    | MessageDropped
    | SessionOpened
    | SessionClosed
    | ClientSeen
    | CallStarted
    | CallProgressed
    | CallCancelled
    | CallSettled
    | DispatchSent
    | DispatchExtended
    | DispatchExpired
    | DispatchSettled
    | DispatchCancelled
    | DispatchLate
    | DispatchStopped
    | HostConnected
    | HostRegistered
    | HostUpdated
    | HostMessage
    | HostMisuse
    | HostClosed
    | TaskChanged
    | TaskRemoved
    | StreamOpened
    | StreamEnded
    | StreamResumed
    | StreamLost
    | StreamControl
    | SocketOpened
    | SocketClosed
    | SocketRefused
    | WebSocketFrame
    | StdioChanged
    | ClientProcess
    | ForwardingBegun
    | ForwardingMissed
    | ForwardingEnded
    | ClientMisuse
    | LimitReached
    | AuditState
    | ServerState
)
"""The vocabulary: all kinds of this version."""

AnyEvent: TypeAlias = Event | UnknownEvent
"""The fact of an entry. A saved log may be of a newer version."""
