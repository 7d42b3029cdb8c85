"""The clients of a judge, the windows in which entries of theirs are missing, and how they and their server end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ...views.clients import Client
from ...views.fold import Views
from .moments import ClientEnd
from .series import ALWAYS, NEVER
from .subject import Subject, add_window


class Clients:
    """At most `most` clients: the one seen longest ago makes room, is passed to `left`, and is counted by `forgotten`.

    They live on from one log to the next, found by their labels. `missing` are the lists of windows with an open last
    one.
    """

    def __init__(self, most: int, left: Callable[[Subject], None]) -> None:
        self._left = left
        self._subjects: Newest[tuple[str, str], Subject] = Newest(most)
        self._places = count()
        self.forgotten = 0
        self.begin()

    def begin(self, about: str | None = None) -> None:
        """A log begins: its clients have not ended, and nothing of it is missing.

        Where it is `about` one client, what it has of others is not kept.
        """
        self._about = about
        self._others = None if about is None else Subject("", "nothing", -1, [(NEVER, ALWAYS)])
        self.draining: float | None = None
        self._gaps: list[tuple[float, float]] = []
        self.missing: list[list[tuple[float, float]]] = []
        # The one that was seen last, and most often is seen next.
        self._last: tuple[Client, Subject] | None = None
        for subject in self._subjects.values():
            subject.ends = []
            subject.draining = None

    def of(self, client: Client) -> Subject:
        last = self._last
        if last is not None and last[0] is client:
            return last[1]
        if self._others is not None and client.label != self._about:
            return self._others
        key = client.kind, client.label
        subject = self._subjects.get(key)
        if subject is None:
            label = "unattributed" if client.kind == "nothing" else client.label
            subject = Subject(label, client.kind, next(self._places), list(self._gaps))
            subject.draining = self.draining
        gone = self._subjects.store(key, subject)
        if gone is not None:
            gone.is_forgotten = True
            self.forgotten += client.kind != "nothing"
            self._left(gone)
        self._last = client, subject
        return subject

    @property
    def subjects(self) -> Sequence[Subject]:
        return sorted(self._subjects.values(), key=lambda subject: subject.place)

    def drain(self, at: float) -> None:
        """The server begins to end, and cuts off those that have not ended before."""
        self.draining = at
        for subject in self._subjects.values():
            if not subject.ends:
                subject.draining = at

    def miss(self, since: float) -> None:
        if not self.missing:
            self.missing = [self._gaps, *(subject.gaps for subject in self._subjects.values())]
            for gaps in self.missing:
                add_window(gaps, since, ALWAYS)

    def go_on(self, at: float) -> None:
        for gaps in self.missing:
            gaps[-1] = gaps[-1][0], at
        self.missing = []


_Taker: TypeAlias = Callable[[Entry, Any], None]


class Ends:
    """Fed with the entries of the kinds of `takers`, which `views` have taken already."""

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
        """The end of a client by a complete log with the newest entry `last`; None where it may go on."""
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
