"""The part of a log about one client or call, and its contents in numbers.

The entries about a client are:

    1  every entry with the client in its context: its given label, or the label of its session
    2  the other entries of its exchanges without a client, such as the head of a request; also those of a request
       that named its session and was refused before that session was found
    3  entries of its connections without an exchange and without a client
    4  the declarations of the clients of its sessions: programs of one kind share a modern client's label; and the
       ends of its sessions, which another client may have deleted
    5  the handshakes of its sessions, which another client may have begun: what a request in one owes depends on them
    6  the start and the end of the server

The entries about one call are its evidence (`views.evidence`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...log.context import NO_CONTEXT, Context
from ...log.event_log import Entry, Gap
from ...log.events import (
    CallStarted,
    ClientSeen,
    HttpRequest,
    MessageEmitted,
    MessageReceived,
    ServerState,
    SessionClosed,
    SessionOpened,
)

_OF_SESSIONS: Final = (SessionOpened, ClientSeen, SessionClosed)
_INITIALIZED: Final = "notifications/initialized"


@dataclass(frozen=True, slots=True)
class Extract:
    """The wanted part of a log: the entries about a client, those about a call, or all.

    `client` is a name given by `?client=`, or the label of a session or of a modern client. `call` is an id without its
    run. At most one of the two is set.
    """

    client: str | None = None
    call: str | None = None

    @property
    def is_all(self) -> bool:
        return self.client is None and self.call is None


class ClientEntries:
    """Finds the entries about a client: call `look` for each entry of the log first, then `has` for each."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._exchanges: set[int] = set()
        self._connections: set[str] = set()
        self._sessions: set[str] = set()
        # By exchange: the session whose handshake it is a part of.
        self._handshakes: dict[int, str] = {}

    def look(self, entry: Entry) -> None:
        context, fact = entry.context, entry.fact
        named = fact.named if isinstance(fact, HttpRequest) else None
        if self._names(context) or named == self._client or named in self._sessions:
            if context.exchange is not None:
                self._exchanges.add(context.exchange)
            if context.connection is not None:
                self._connections.add(context.connection)
            if context.session is not None:
                self._sessions.add(context.session)
        begins = isinstance(fact, SessionOpened) or (isinstance(fact, MessageReceived) and fact.method == _INITIALIZED)
        if begins and context.exchange is not None and context.session is not None:
            self._handshakes[context.exchange] = context.session

    def has(self, entry: Entry) -> bool:
        context = entry.context
        if self._names(context) or self._handshakes.get(context.exchange or 0) in self._sessions:
            return True
        if context.session is not None or context.label is not None:
            return isinstance(entry.fact, _OF_SESSIONS) and context.session in self._sessions
        if context.exchange is not None:
            return context.exchange in self._exchanges
        if context == NO_CONTEXT:
            return isinstance(entry.fact, ServerState)
        return context.connection in self._connections

    def __bool__(self) -> bool:
        return bool(self._exchanges or self._connections)

    def _names(self, context: Context) -> bool:
        return self._client in (context.label, context.session)


# Listed clients and names of hidden values; further ones are only counted.
_MOST_NAMED: Final = 100
OTHERS: Final = "…"
"""Stands for all further names."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The contents of a part of a log. Times are seconds since the epoch, null without entries.

    `kinds` counts entries by their kind. `clients` are the labels of sessions and modern clients, and the names given
    to clients. `calls` counts tool calls. `hidden` counts values left out of the log, by the name of the header, of the
    query parameter (`?name`) or of the member; `…` counts further names. `gaps` are lost entries of this part.
    """

    entries: int
    first: int | None
    last: int | None
    first_at: float | None
    last_at: float | None
    kinds: Mapping[str, int]
    clients: list[str]
    calls: int
    hidden: Mapping[str, int]
    gaps: list[Gap]


class OverviewTally:
    """Makes an overview of entries, taken in order."""

    def __init__(self) -> None:
        self._first: Entry | None = None
        self._last: Entry | None = None
        self._kinds: Counter[str] = Counter()
        self._clients: dict[str, None] = {}
        self._hidden: Counter[str] = Counter()
        self._gaps: list[Gap] = []
        self.calls: set[str] = set()

    def take(self, entry: Entry | Gap) -> None:
        if isinstance(entry, Gap):
            self._miss(entry)
            return
        self._first = self._first or entry
        self._last = entry
        fact, context = entry.fact, entry.context
        self._kinds[fact.kind] += 1
        if isinstance(fact, CallStarted) and fact.tool is not None and context.call is not None:
            self.calls.add(context.call)
        for name in (context.session, context.label):
            if name is not None and len(self._clients) < _MOST_NAMED:
                self._clients[name] = None
        if isinstance(fact, HttpRequest):
            self._count_hidden(fact.hidden)
        elif isinstance(fact, MessageReceived | MessageEmitted) and fact.hidden:
            self._count_hidden(path.rpartition("/")[2] for path, _ in fact.hidden)

    def _miss(self, gap: Gap) -> None:
        if self._gaps and self._gaps[-1].last + 1 == gap.first:
            gap = Gap(self._gaps.pop().first, gap.last)
        self._gaps.append(gap)

    def _count_hidden(self, names: Iterable[str]) -> None:
        for name in names:
            known = name in self._hidden or len(self._hidden) < _MOST_NAMED
            self._hidden[name if known else OTHERS] += 1

    def overview(self) -> Overview:
        first, last = self._first, self._last
        return Overview(
            entries=self._kinds.total(),
            first=None if first is None else first.seq,
            last=None if last is None else last.seq,
            first_at=None if first is None else first.at,
            last_at=None if last is None else last.at,
            kinds=dict(sorted(self._kinds.items())),
            clients=sorted(self._clients),
            calls=len(self.calls),
            hidden=dict(sorted(self._hidden.items())),
            gaps=[*self._gaps],
        )
