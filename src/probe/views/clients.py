"""Clients: their connections, processes, sessions and scopes of ids, and counts of what they did."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct, field
from pydantic_core import from_json

from ..log import events
from ..log.bounded import Newest
from ..log.context import Context
from ..log.event_log import Entry
from ..wire.jsonrpc import RequestId, clip
from .retention import Retention

# Views refer to each other in all directions, by these types alone.
if TYPE_CHECKING:
    from .values import Exchange, Message
    from .work import Call, Stream

_OTHERS: Final = "(others)"


class Scope(Struct, eq=False):
    """A scope of request ids and progress tokens: a legacy session, a pipe, or a modern client over HTTP.

    `requests` are the client's by the numbers of their entries, `ids` the newest of each typed id. `running` have no
    delivered answer; `answered` have one, in the order of the deliveries. `forgot` counts requests let go.
    """

    kind: Literal["session", "pipe", "client"] = "client"
    requests: dict[int, Message] = field(default_factory=dict)
    ids: dict[RequestId, Message] = field(default_factory=dict)
    running: dict[int, Message] = field(default_factory=dict)
    answered: dict[int, Message] = field(default_factory=dict)
    forgot: int = 0


class Client(Struct, eq=False):
    """One client: everything under one label; without a label a session, a pipe, or a modern client by its own label.

    The kind `nothing` holds entries without a known client. Two processes may have one `label`. `newest` is the newest
    entry that named it; those of its sessions and pipes need not.
    """

    kind: Literal["label", "session", "pipe", "client", "nothing"]
    label: str
    began: Entry
    newest: Entry
    sessions: OrderedDict[str, Session] = field(default_factory=OrderedDict)
    connections: OrderedDict[str, Connection] = field(default_factory=OrderedDict)
    processes: OrderedDict[int, Process] = field(default_factory=OrderedDict)
    scope: Scope = field(default_factory=Scope)


class Process(Struct, eq=False):
    """A process: a client run by `mcp-probe judge`, or this one on standard streams. Its changes, oldest first."""

    pid: int
    changes: list[Entry] = field(default_factory=list)

    @property
    def ended(self) -> Entry | None:
        return next((each for each in self.changes if getattr(each.fact, "what", "") in ("exited", "exit")), None)


class Connection(Struct, eq=False):
    """A socket for HTTP, a WebSocket, the standard streams of a process, or the connection of a tool host.

    `label` is that of the context (`tcp4`, `w5`, `i1`, `h3`), `began` the number of its first entry. After a gap
    `opened` may be None. `modern` is the newest sessionless revision named on a pipe; the judge sets it. `upgraded` is
    the HTTP request before a WebSocket.

    Of a pipe: `scope` is the scope of ids outside of sessions. It reads the draft streams of the calls in `reads`; its
    end cancelled the calls in `left`. `frames` are control and refused frames, `changes` those of standard streams,
    `messages` the numbers of its first messages both ways.
    """

    label: str
    began: int
    client: Client | None = None
    opened: Entry | None = None
    closed: Entry | None = None
    upgraded: Exchange | None = None
    session: Session | None = None
    modern: str | None = None
    first: Message | None = None
    scope: Scope | None = None
    reads: dict[str, Call] = field(default_factory=dict)
    left: list[Call] = field(default_factory=list)
    frames: list[Entry] = field(default_factory=list)
    changes: list[Entry] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)

    @property
    def ended_by(self) -> str | None:
        """`client`, or the server's reason to close it."""
        return None if self.closed is None else str(getattr(self.closed.fact, "by", ""))

    def closed_by(self, at: float) -> bool:
        return self.closed is not None and self.closed.mono < at

    def is_over(self, seq: int) -> bool:
        """True if it was seen to close before the entry `seq`, and no request of it is kept."""
        was_closed = self.closed is not None and self.closed.seq < seq
        return was_closed and (self.scope is None or not self.scope.requests)

    def is_open(self, seq: int) -> bool:
        """True if it was seen to open, and not seen to close before the entry `seq`."""
        return self.opened is not None and (self.closed is None or self.closed.seq >= seq)

    @property
    def transport(self) -> Literal["http", "websocket", "stdio"]:
        if self.scope is None:
            return "http"
        return "websocket" if self.label.startswith("w") else "stdio"

    @property
    def revision(self) -> str | None:
        """The session's, else the newest sessionless revision named on a pipe."""
        return self.modern if self.session is None else self.session.revision

    @property
    def seq(self) -> int:
        """0 where the log does not have its opening."""
        return 0 if self.opened is None else self.opened.seq

    @property
    def input_ended(self) -> Entry | None:
        return next((each for each in self.changes if getattr(each.fact, "what", "") == "end_of_input"), None)


class Acts(Struct, eq=False):
    """Counts of what was done in a session, or by unknown clients, for the whole life of the server.

    `began` and `newest` are the numbers of its first and newest entry, `opened_at` and `last_at` their times; `refused`
    and `misuse` are its mistakes. `methods`, `tools` and `skills` count by name, such as `tools/call`:
    `names` of each, and the others together.
    """

    began: int
    opened_at: float
    last_at: float
    newest: int
    names: int
    requests: int = 0
    methods: dict[str, int] = field(default_factory=dict)
    tools: dict[str, int] = field(default_factory=dict)
    skills: dict[str, int] = field(default_factory=dict)
    misuse: int = 0
    refused: int = 0

    def received(self, entry: Entry, fact: events.MessageReceived) -> None:
        self.newest, self.last_at = entry.seq, entry.at
        if fact.rpc == "request":
            self.requests += 1
        method = fact.method
        if method is not None:
            self._count(self.methods, method)
            if method == "resources/read" and b"/SKILL.md" in fact.message:
                self._read(fact.message)

    def _read(self, message: bytes) -> None:
        params = from_json(message).get("params")
        uri = params.get("uri") if isinstance(params, dict) else None
        if isinstance(uri, str) and uri.endswith("/SKILL.md"):
            self._count(self.skills, clip(uri))

    def called(self, entry: Entry, tool: str) -> None:
        self.newest = entry.seq
        self._count(self.tools, tool)

    def _count(self, counts: dict[str, int], name: str) -> None:
        if name in counts:
            counts[name] += 1
        else:
            known = name if len(counts) < self.names else _OTHERS
            counts[known] = counts.get(known, 0) + 1


class Session(Struct, eq=False):
    """A legacy session (`s7`), or a modern client as this server labels it (`m7`).

    `opened` is `session.opened` or `client.seen`; `declared` all of its `client.seen`. `initialize` is the request and
    `answered` the delivery of its answer, `initialized` the first such notification, `asked_to_end` the first DELETE.
    `acts` counts what was done in it.
    """

    label: str
    opened: Entry
    is_legacy: bool
    revision: str
    acts: Acts
    client: Client | None = None
    connection: Connection | None = None
    initialize: Message | None = None
    answered: Entry | None = None
    initialized: Message | None = None
    asked_to_end: Exchange | None = None
    closed: Entry | None = None
    declared: list[Entry] = field(default_factory=list)
    streams: OrderedDict[str, Stream] = field(default_factory=OrderedDict)
    scope: Scope = field(default_factory=lambda: Scope("session"))

    @property
    def fact(self) -> events.SessionOpened | events.ClientSeen:
        return self.opened.fact  # type: ignore[return-value]

    @property
    def seq(self) -> int:
        return self.opened.seq

    @property
    def client_name(self) -> str:
        """From its newest declaration."""
        return cast("events.SessionOpened | events.ClientSeen", self.declared[-1].fact).client_name

    def closed_by(self, at: float) -> bool:
        return self.closed is not None and self.closed.mono < at


class Peers:
    """The clients of a log: `connections` and `sessions` by the labels of the context, `clients` by kind and label.

    `unattributed` counts the mistakes of clients without a known session. `opened` is called with each new legacy
    session and the number of the entry that caused it.
    """

    def __init__(self, retention: Retention, opened: Callable[[Session, int | None], None]) -> None:
        self._keep = retention
        self._opened = opened
        self.connections: Newest[str, Connection] = Newest(retention.connections)
        self.sessions: Newest[str, Session] = Newest(retention.sessions)
        self.clients: Newest[tuple[str, str], Client] = Newest(retention.clients)
        # Of `sessions` the closed ones, in the order of their ends, each with the number of its newest end; and the
        # modern clients, in the order of their newest entries.
        self._ended: OrderedDict[str, int] = OrderedDict()
        self._modern: OrderedDict[str, Session] = OrderedDict()
        self.unattributed: Acts | None = None
        self.takers: Mapping[type, Callable[[Entry, Any, Exchange | None, Call | None], None]] = {
            events.SocketOpened: self._connected,
            events.ConnectionOpened: self._connected,
            events.WebSocketFrame: self._frame,
            events.StdioChanged: self._stdio_changed,
            events.ClientProcess: self._process,
            events.ClientMisuse: self._misused,
            events.SessionOpened: self._session_opened,
            events.ClientSeen: self._session_opened,
            events.SessionClosed: self._session_closed,
        }

    # -- clients and connections

    def client_of(self, entry: Entry) -> Client | None:
        """The client in an entry's context, made if new. Only `Exchange.client` may know some."""
        context = entry.context
        if context.label is not None:
            return self.named("label", context.label, entry)
        if context.pipe is not None:
            known = self.connections.get(context.pipe)
            if known is not None and known.client is not None:
                return known.client
            return self.named("pipe", context.pipe, entry)
        label = context.session
        if label is None and type(entry.fact) is events.HttpRequest:
            label = entry.fact.named
        if label is None:
            return None
        session = self.sessions.get(label)
        if session is not None and session.client is not None:
            return session.client
        return self.named("session" if events.is_session(label) else "client", label, entry)

    def named(self, kind: Any, label: str, entry: Entry) -> Client:
        """Made if new."""
        client = self.clients.get((kind, label))
        if client is None:
            client = Client(kind, label, entry, entry)
            gone = self.clients.store((kind, label), client)
            if gone is not None:
                gone.sessions.clear()
                gone.connections.clear()
                gone.scope.requests.clear()
        client.newest = entry
        return client

    def place(self, entry: Entry) -> Connection | None:
        """Made if new."""
        context = entry.context
        label = context.connection
        if label is None:
            return None
        connection = self.connections.get(label)
        if connection is None:
            connection = Connection(label, entry.seq, scope=Scope("pipe") if context.pipe is not None else None)
            gone = self.connections.store(label, connection)
            if gone is not None:
                _leave(gone)
                gone.session = gone.upgraded = gone.first = None
        return connection

    def forget_before(self, first: int, *, all_over: bool) -> None:
        """Let go of sockets closed before the entry `first`, and of those that a gap left without their opening.

        With `all_over` also of pipes, of sessions except the newest `ended_sessions`, of modern clients silent since
        then except `modern_clients`, and of clients that have nothing any more.
        """
        gone = self.connections.sweep(
            lambda each: each.began < first,
            lambda each: not each.is_open(first) if each.scope is None else all_over and each.is_over(first),
        )
        for connection in gone:
            _leave(connection)
        if not all_over:
            return
        while len(self._ended) > self._keep.ended_sessions:
            label, end = next(iter(self._ended.items()))
            if end >= first:
                break
            self._forget(self.sessions[label])
        while len(self._modern) > self._keep.modern_clients:
            session = next(iter(self._modern.values()))
            if session.acts.newest >= first:
                break
            self._forget(session)
        self.clients.sweep(
            lambda each: each.newest.seq < first,
            lambda each: not each.sessions and not each.connections and not each.scope.requests and not each.processes,
        )

    def used(self, session: Session) -> None:
        """Called with each change of `acts.newest`."""
        if not session.is_legacy:
            self._modern.move_to_end(session.label)

    def _forget(self, session: Session) -> None:
        self.sessions.pop(session.label, None)
        self._ended.pop(session.label, None)
        self._modern.pop(session.label, None)
        if session.client is not None:
            session.client.sessions.pop(session.label, None)
        session.client = session.connection = None

    def _connected(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        place = self.place(entry)
        if place is not None:
            place.opened, place.upgraded = entry, exchange
            client = self.client_of(entry) if entry.context.pipe is not None else None
            if client is not None:
                place.client = client
                client.connections[place.label] = place
                if len(client.connections) > self._keep.history:
                    client.connections.popitem(last=False)

    def _frame(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        place = self.place(entry)
        if place is not None and len(place.frames) < self._keep.of_exchange:
            place.frames.append(entry)

    def _stdio_changed(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        place = self.place(entry)
        if place is not None and len(place.changes) < self._keep.history:
            place.changes.append(entry)
        self._process(entry, fact, exchange, call)

    def _process(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        client = self.client_of(entry)
        if client is None:
            return
        process = client.processes.get(fact.pid)
        if process is None:
            process = client.processes[fact.pid] = Process(fact.pid)
            if len(client.processes) > self._keep.history:
                client.processes.popitem(last=False)
        if len(process.changes) < self._keep.history:
            process.changes.append(entry)

    # -- sessions

    def session(self, context: Context) -> Session | None:
        return None if context.session is None else self.sessions.get(context.session)

    def _session_opened(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        label, known = entry.context.session, self.session(entry.context)
        if label is None:
            return
        if known is not None:
            self._opened_again(entry, known)
            return
        client = self.client_of(entry) if exchange is None or exchange.client is None else exchange.client
        place = self.place(entry) if entry.context.pipe is not None else None
        acts = Acts(entry.seq, entry.at, entry.at, entry.seq, self._keep.names)
        about = label, entry, events.is_session(label), fact.revision, acts
        session = Session(*about, client, place, declared=[entry])
        gone = self.sessions.store(label, session)
        if gone is not None:
            gone.streams.clear()
            gone.scope.requests.clear()
            self._forget(gone)
        if exchange is not None and exchange.session is None:
            exchange.session = session
        if client is not None:
            client.sessions[label] = session
            if len(client.sessions) > self._keep.history:
                client.sessions.popitem(last=False)
        if session.is_legacy:
            # Its `initialize` came before the session, and counts in it.
            acts.requests, acts.methods = 1, {"initialize": 1}
            if place is not None:
                place.session = session
            self._opened(session, entry.cause)
        else:
            self._modern[label] = session

    def _opened_again(self, entry: Entry, session: Session) -> None:
        """A modern client declares itself anew, or a forwarding process connects again."""
        if len(session.declared) < self._keep.history:
            session.declared.append(entry)
        else:
            session.declared[-1] = entry
        self._ended.pop(session.label, None)
        session.closed, session.acts.newest = None, entry.seq
        self.used(session)
        if session.is_legacy:
            session.acts.last_at = entry.at

    def _session_closed(self, entry: Entry, fact: Any, exchange: Any, call: Any) -> None:
        session = self.session(entry.context)
        if session is not None:
            session.closed, self._ended[session.label] = entry, entry.seq
            self._ended.move_to_end(session.label)
            session.acts.newest, session.acts.last_at = entry.seq, entry.at
            self.used(session)

    def _misused(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        if exchange is not None and exchange.misuse is None:
            exchange.misuse = entry
        self.blamed(entry.context.session, entry.at, entry.seq).misuse += 1

    def blamed(self, label: str | None, at: float, seq: int) -> Acts:
        """The counts of the client that made a mistake, else those without a client."""
        session = None if label is None else self.sessions.get(label)
        if session is not None:
            acts = session.acts
            self.used(session)
        else:
            acts = self.unattributed = self.unattributed or Acts(seq, at, at, seq, self._keep.names)
        acts.newest, acts.last_at = seq, at
        return acts


def _leave(connection: Connection) -> None:
    if connection.client is not None:
        connection.client.connections.pop(connection.label, None)
    connection.reads.clear()
    connection.left.clear()
    connection.client = None
