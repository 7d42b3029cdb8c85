"""What leads from an entry of the event log to tool calls, kept as long as it can still be spoken of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeAlias, TypeVar

from ..wire.jsonrpc import RequestId

Calls: TypeAlias = tuple[str, ...]
Stream: TypeAlias = tuple[str | None, str | None]
"""The session of a stream, and its id."""

NOBODY: Final[Calls] = ()

# Visits, streams and messages that can still be spoken of, of each.
_MOST_LINKS: Final = 20_000
# Entries of a stream before its call: its opening, its first message, and that this was delivered.
_MOST_HELD: Final = 10

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Newest(OrderedDict[_Key, _Value], Generic[_Key, _Value]):
    """The newest links of one kind."""

    def link(self, key: _Key, value: _Value) -> None:
        """Add one; the oldest makes room."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > _MOST_LINKS:
            self.popitem(last=False)


class Pipes:
    """Connections that carry all messages both ways, and which calls they are about."""

    def __init__(self) -> None:
        self.labels: Newest[int, str] = Newest()
        # The connection that carried a message, by the exchange that the message is.
        self.carried: Newest[int, str] = Newest()
        # Whose calls were ended because it is gone, and the entry of its end, whichever comes first.
        self.left: Newest[str, Calls] = Newest()
        self.ends: Newest[str, int] = Newest()

    def of(self, exchange: int) -> str | None:
        """The connection that carried an exchange, or is one."""
        return self.carried.get(exchange) or self.labels.get(exchange)


class Drafts:
    """Streams of the draft extension, each of one call, whose first entries come before that has started."""

    def __init__(self) -> None:
        self._calls: Newest[Stream, Calls] = Newest()
        self._held: Newest[Stream, list[int]] = Newest()
        self._names: Newest[str, Stream] = Newest()
        # The stream that was opened for an exchange.
        self.of_exchange: Newest[int, Stream] = Newest()

    def open(self, stream: Stream, exchange: int) -> None:
        """There is a new one, whose call is not known yet."""
        self._held.link(stream, [])
        self.of_exchange.link(exchange, stream)

    def name(self, id: str | None, stream: Stream) -> None:
        """The id that its client knows it by."""
        if id is not None:
            self._names.link(id, stream)

    def named(self, id: RequestId) -> Calls:
        """Whose the stream is that a client names."""
        stream = self._names.get(id) if isinstance(id, str) else None
        return NOBODY if stream is None else self._calls.get(stream, NOBODY)

    def is_open(self, stream: Stream) -> bool:
        """Whether it is not known whose it is."""
        return stream in self._held

    def has(self, stream: Stream) -> bool:
        """Whether a stream is one of the draft extension."""
        return stream in self._calls or stream in self._held

    def claim(self, stream: Stream, calls: Calls) -> list[int]:
        """It is theirs. Returns the entries that were held."""
        self._calls.link(stream, calls)
        return self._held.pop(stream)

    def take(self, stream: Stream, seq: int) -> Calls:
        """Whose an entry is. It is held where that is not known."""
        held = self._held.get(stream)
        if held is not None and len(held) < _MOST_HELD:
            held.append(seq)
        return self._calls.get(stream, NOBODY)
