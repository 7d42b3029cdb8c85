"""Clients: their connections, processes and sessions, and what they did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..log import events
from ..log.bounded import Newest
from ..log.context import Context
from ..log.event_log import Entry
from .clients import Acts, Client, Connection, Process, Scope, Session
from .retention import Retention
from .values import Exchange
from .work import Call


class Peers:
    """The clients of a log: `connections` and `sessions` by the labels of the context, `clients` by kind and label.

    `unattributed` counts the mistakes of clients without a known or kept session; None before the first. `opened` is
    called with each new legacy session and the number of the entry that caused it, once the session is there.
    """

    def __init__(self, retention: Retention, opened: Callable[[Session, int | None], None]) -> None:
        self._keep = retention
        self._opened = opened
        self.connections: Newest[str, Connection] = Newest(retention.connections)
        self.sessions: Newest[str, Session] = Newest(retention.sessions)
        self.clients: Newest[tuple[str, str], Client] = Newest(retention.clients)
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
        """The client in an entry's context, made if new. `Exchange.client` may know one where this does not."""
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
        """The client of a kind and a label, made if new."""
        client = self.clients.get((kind, label))
        if client is None:
            client = Client(kind, label, entry)
            gone = self.clients.store((kind, label), client)
            if gone is not None:
                gone.sessions.clear()
                gone.connections.clear()
                gone.scope.requests.clear()
        return client

    def place(self, context: Context) -> Connection | None:
        """The connection in an entry's context, made if new."""
        label = context.connection
        if label is None:
            return None
        connection = self.connections.get(label)
        if connection is None:
            connection = Connection(label, scope=Scope("pipe") if context.pipe is not None else None)
            gone = self.connections.store(label, connection)
            if gone is not None:
                _leave(gone)
        return connection

    def forget_before(self, first: int) -> None:
        """Let go of sockets closed before the entry `first`."""
        gone = self.connections.sweep(
            lambda each: each.opened is not None and each.opened.seq < first,
            lambda each: each.closed is not None and each.closed.seq < first and each.scope is None,
        )
        for connection in gone:
            _leave(connection)

    def _connected(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        place = self.place(entry.context)
        if place is not None:
            place.opened, place.upgraded = entry, exchange
            client = self.client_of(entry) if entry.context.pipe is not None else None
            if client is not None:
                place.client = client
                client.connections[place.label] = place
                if len(client.connections) > self._keep.history:
                    client.connections.popitem(last=False)

    def _frame(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        place = self.place(entry.context)
        if place is not None and len(place.frames) < self._keep.of_exchange:
            place.frames.append(entry)

    def _stdio_changed(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        place = self.place(entry.context)
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
        """The session of an entry."""
        return None if context.session is None else self.sessions.get(context.session)

    def _session_opened(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        label, known = entry.context.session, self.session(entry.context)
        if label is None:
            return
        if known is not None:
            self._opened_again(entry, known)
            return
        client = self.client_of(entry) if exchange is None or exchange.client is None else exchange.client
        place = self.place(entry.context) if entry.context.pipe is not None else None
        acts = Acts(entry.seq, entry.at, entry.at, entry.seq)
        session = Session(label, entry, events.is_session(label), acts, client, place, declared=[entry])
        gone = self.sessions.store(label, session)
        if gone is not None:
            gone.streams.clear()
            gone.scope.requests.clear()
            gone.client = gone.connection = None
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

    def _opened_again(self, entry: Entry, session: Session) -> None:
        """A modern client declares itself anew, or a forwarding process connects again."""
        if len(session.declared) < self._keep.history:
            session.declared.append(entry)
        else:
            session.declared[-1] = entry
        session.closed, session.acts.newest = None, entry.seq
        if session.is_legacy:
            session.acts.last_at = entry.at

    def _session_closed(self, entry: Entry, fact: Any, exchange: Any, call: Any) -> None:
        session = self.session(entry.context)
        if session is not None:
            session.closed = entry
            session.acts.newest, session.acts.last_at = entry.seq, entry.at

    def _misused(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> None:
        if exchange is not None and exchange.misuse is None:
            exchange.misuse = entry
        self.blamed(entry.context.session, entry.at, entry.seq).misuse += 1

    def blamed(self, label: str | None, at: float, seq: int) -> Acts:
        """The counts of the client that made a mistake, else those without a client."""
        session = None if label is None else self.sessions.get(label)
        if session is not None:
            acts = session.acts
        else:
            acts = self.unattributed = self.unattributed or Acts(seq, at, at, seq)
        acts.newest, acts.last_at = seq, at
        return acts


def _leave(connection: Connection) -> None:
    connection.reads.clear()
    connection.left.clear()
    connection.client = connection.session = connection.upgraded = connection.first = None
