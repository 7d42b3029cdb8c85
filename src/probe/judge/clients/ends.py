"""How the server of one log and its clients end, as far as entries say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ...log import events
from ...log.event_log import Entry
from ...views.fold import Views
from .clients import Clients
from .moments import ClientEnd
from .subject import Subject

_Taker: TypeAlias = Callable[[Entry, Any], None]


class Ends:
    """Fed with the entries of the kinds of `takers`, before `views` have them."""

    def __init__(self, views: Views, clients: Clients) -> None:
        self._views = views
        self._clients = clients
        self._stopped = False
        self._closed_input: float | None = None
        # The connections that are open, and how the server's end looks to a client that has not ended before.
        self._connections: set[str] = set()
        self._end_of_server: ClientEnd | None = None
        self.takers: Mapping[type, _Taker] = {
            events.ServerState: self._server,
            events.StdioChanged: self._streams,
            events.SocketOpened: self._opened,
            events.ConnectionOpened: self._opened,
            events.SocketClosed: self._closed,
            events.ConnectionClosed: self._closed,
            events.ClientProcess: self._process,
        }

    def of(self, subject: Subject, now: float, last: int, *, over: bool) -> ClientEnd | None:
        """The end of a client as a complete log has it, whose entry `last` was the newest; None where it may go on."""
        if subject.ends:
            return subject.ends[-1]
        if over:
            return ClientEnd(now, "the client ended", True, last)
        if not self._stopped:
            return None
        if self._closed_input is not None:
            return ClientEnd(self._closed_input, "the client ended", True, last)
        return self._end_of_server

    def _opened(self, entry: Entry, fact: Any) -> None:
        self._connections.add(entry.context.connection or "")

    def _closed(self, entry: Entry, fact: Any) -> None:
        self._connections.discard(entry.context.connection or "")

    def _server(self, entry: Entry, fact: events.ServerState) -> None:
        if fact.state == "ready":
            return
        self._stopped |= fact.state == "stopped"
        if self._end_of_server is not None:
            return
        # A client that holds no connection has sent all that it wanted to; another one may be cut off.
        self._end_of_server = ClientEnd(entry.mono, "the server ended", not self._connections, entry.seq)
        if self._closed_input is None:
            self._clients.drain(entry.mono)

    def _streams(self, entry: Entry, fact: events.StdioChanged) -> None:
        self._stopped |= fact.what == "exit"
        if fact.what == "end_of_input":
            self._closed_input = entry.mono

    def _process(self, entry: Entry, fact: events.ClientProcess) -> None:
        client = None if entry.context.label is None else self._views.client_of(entry)
        if client is None:
            return
        subject = self._clients.of(client)
        if fact.what == "exited":
            # A client that was killed may have been about to send more.
            killed = subject.is_killed or fact.signal is not None
            words = "the client was ended" if killed else "the client ended"
            subject.ends.append(ClientEnd(entry.mono, words, not killed, entry.seq))
        else:
            subject.is_killed = fact.what != "started"
