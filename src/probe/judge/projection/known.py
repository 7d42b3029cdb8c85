"""The sessions, exchanges and messages that a later entry can name, and the subject that an entry belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ...log import events
from ...log.bounded import Newest
from ...log.context import Context
from ...log.event_log import Entry
from .life import Life
from .questions import Question
from .views import Exchange, Message, Pipe, Sent, ServerStream, Session

Key: TypeAlias = tuple[str, str]
"""The kind of a subject (`Life.kind`), and its label."""

Takers: TypeAlias = Mapping[type, Callable[[Life, Entry, Any], None]]
"""The function for a fact of each kind, which gets its subject, its entry, and the fact."""

UNATTRIBUTED: Final[Key] = ("nothing", "unattributed")

# Messages, exchanges, calls and streams that a later entry can name.
_MOST_NAMED: Final = 20_000
# Messages of one exchange, and exchanges that read one stream.
MOST_OF_EXCHANGE: Final = 200


@dataclass(slots=True, eq=False)
class Held:
    """An exchange, and its entries as long as nobody knows whose it is."""

    life: Life | None
    entries: list[Entry] = field(default_factory=list)
    view: Exchange | None = None


class KnownViews:
    """The newest of each kind. `life` gives the subject of a key, which is a new one or not."""

    def __init__(self, life: Callable[[Key], Life]) -> None:
        self.life = life
        self.exchanges: Newest[int, Held] = Newest(_MOST_NAMED)
        self.sessions: Newest[str, tuple[Session, Life]] = Newest(_MOST_NAMED)
        self.pipes: Newest[str, tuple[Pipe, Life]] = Newest(_MOST_NAMED)
        self.messages: Newest[int, Message] = Newest(_MOST_NAMED)
        self.calls: Newest[str, Message] = Newest(_MOST_NAMED)
        self.sent: Newest[int, Sent] = Newest(_MOST_NAMED)
        self.streams: Newest[tuple[str | None, str], ServerStream] = Newest(_MOST_NAMED)
        self.pages: Newest[str, tuple[Question, Life]] = Newest(_MOST_NAMED)

    def life_of(self, entry: Entry, held: Held | None) -> Life | None:
        """The subject of an entry, as far as it is known by now."""
        context = entry.context
        if context.label is not None:
            return self.life(("label", context.label))
        pipe = context.pipe
        if pipe is not None:
            known = self.pipes.get(pipe)
            return self.life(("pipe", pipe)) if known is None else known[1]
        if held is not None and held.life is not None:
            return held.life
        session = context.session
        if session is None and type(entry.fact) is events.HttpRequest:
            session = entry.fact.named
        return None if session is None else self.life_of_session(session)

    def life_of_session(self, label: str) -> Life:
        """The subject of a session or of a modern client, by its label."""
        known = self.sessions.get(label)
        if known is not None:
            return known[1]
        return self.life(("session" if events.is_session(label) else "client", label))

    def exchange(self, context: Context) -> Exchange | None:
        """The exchange of a context; None on a pipe, and where it is not remembered."""
        held = None if context.exchange is None or context.pipe is not None else self.exchanges.get(context.exchange)
        return None if held is None else held.view

    def session(self, label: str | None) -> Session | None:
        """The session with a label."""
        known = None if label is None else self.sessions.get(label)
        return None if known is None else known[0]

    def pipe(self, context: Context) -> Pipe | None:
        """The pipe of a context."""
        known = None if context.pipe is None else self.pipes.get(context.pipe)
        return None if known is None else known[0]

    def asked(self, entry: Entry) -> Message | None:
        """The message of the client because of which the server did something."""
        return None if entry.cause is None else self.messages.get(entry.cause)

    def stream(self, context: Context) -> ServerStream | None:
        """The stream of a context."""
        return None if context.stream is None else self.streams.get((context.session, context.stream))


def reads(stream: ServerStream, exchange: Exchange | None) -> None:
    """Note that an exchange reads a stream."""
    if exchange is None:
        return
    if exchange.stream is None:
        exchange.stream = stream
    if exchange not in stream.readers[-1:] and len(stream.readers) < MOST_OF_EXCHANGE:
        stream.readers.append(exchange)
