"""Finds the entries of a log about one client.

    1  every entry with the client in its context: its given label, or the label of its session
    2  the other entries of its exchanges without a client, such as the head of a request
    3  entries of its connections without an exchange and without a client
    4  the declarations of the clients of its sessions: programs of one kind share a modern client's label
    5  the start and the end of the server

The entries about one call are its evidence (`views.evidence`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...log.context import NO_CONTEXT, Context
from ...log.event_log import Entry
from ...log.events import ClientSeen, ServerState, SessionOpened

_INTRODUCTIONS = (SessionOpened, ClientSeen)


@dataclass(frozen=True, slots=True)
class Extract:
    """The wanted part of a log: the entries about a client, those about a call, or all.

    `client` is a name given by `?client=`, or the label of a session or of a modern client. `call` is the id of a call,
    without its run. At most one of the two is set.
    """

    client: str | None = None
    call: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether it is the whole log."""
        return self.client is None and self.call is None


class ClientEntries:
    """Finds the entries about a client: call `look` for each entry of the log first, then `has` for each."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._exchanges: set[int] = set()
        self._connections: set[str] = set()
        self._sessions: set[str] = set()

    def look(self, entry: Entry) -> None:
        """Note the client's exchange and connection in an entry."""
        context = entry.context
        if self._names(context):
            if context.exchange is not None:
                self._exchanges.add(context.exchange)
            if context.connection is not None:
                self._connections.add(context.connection)
            if context.session is not None:
                self._sessions.add(context.session)

    def has(self, entry: Entry) -> bool:
        """Whether an entry is about the client."""
        context = entry.context
        if self._names(context):
            return True
        if context.session is not None or context.label is not None:
            return isinstance(entry.fact, _INTRODUCTIONS) and context.session in self._sessions
        if context.exchange is not None:
            return context.exchange in self._exchanges
        if context == NO_CONTEXT:
            return isinstance(entry.fact, ServerState)
        return context.connection in self._connections

    def __bool__(self) -> bool:
        """Whether the client was seen."""
        return bool(self._exchanges or self._connections)

    def _names(self, context: Context) -> bool:
        return self._client in (context.label, context.session)
