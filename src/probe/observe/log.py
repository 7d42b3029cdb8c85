"""The event log: append-only, in memory, bounded by count and bytes, read by cursors.

Appending never waits and knows no reader. A reader asks for what follows a sequence number; if part of that has been
pushed out it gets a gap that names the lost range, never silence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic_core import from_json

from ..wire.jsonrpc import encode
from .events import Event

# What an entry costs beside its message: the objects of a small frozen dataclass and its strings, generously.
_ENTRY_OVERHEAD = 512
# What a value inside a container costs beside its characters: an empty string or list, and its place there.
_ITEM_OVERHEAD = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its place.

    `seq` counts from 1 and never repeats, `at` is seconds since the epoch, `mono` the monotonic clock in seconds.
    """

    seq: int
    at: float
    mono: float
    event: Event

    def encoded(self) -> bytes:
        """The entry as the API shows it, in JSON: `kind` and the event's own fields beside the place.

        Stored JSON is put in as it came: reading and writing it again would take most of the time of a large page.
        """
        fields = {name: getattr(self.event, name) for name in self.event.__slots__}
        stored = [b',"%b":%b' % (name.encode(), value) for name, value in fields.items() if isinstance(value, bytes)]
        shown = {name: value for name, value in fields.items() if not isinstance(value, bytes)}
        place = {"seq": self.seq, "at": self.at, "mono": self.mono, "kind": self.event.kind}
        return encode({**place, **shown})[:-1] + b"".join(stored) + b"}"

    def as_json(self) -> dict[str, Any]:
        """The same as a value."""
        return dict(from_json(self.encoded()))


@dataclass(frozen=True, slots=True)
class Gap:
    """Events from `first` to `last` were pushed out before this reader came."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Page:
    """What a reader gets: the lost range before it, if any, the entries, and the cursor for the next page."""

    gap: Gap | None
    entries: list[Entry]
    next: int


class EventLog:
    """Owned by one engine. `now` gives (wall, monotonic) seconds."""

    def __init__(self, now: Callable[[], tuple[float, float]], *, max_events: int, max_bytes: int) -> None:
        self._now = now
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._entries: deque[tuple[Entry, int]] = deque()
        self._bytes = 0
        self.last = 0

    def append(self, event: Event) -> int:
        """Record a fact; returns its sequence number. The oldest entries make room."""
        self.last += 1
        cost = _cost(event)
        self._entries.append((Entry(self.last, *self._now(), event), cost))
        self._bytes += cost
        while len(self._entries) > self._max_events or (self._bytes > self._max_bytes and len(self._entries) > 1):
            self._bytes -= self._entries.popleft()[1]
        return self.last

    def since(self, seq: int, limit: int, max_bytes: int | None = None) -> Page:
        """At most `limit` entries after `seq`, oldest first. A cursor beyond the end gives an empty page.

        `max_bytes` ends the page early, but never before its first entry.
        """
        first = self.last - len(self._entries) + 1
        start = max(seq + 1, first)
        gap = Gap(seq + 1, first - 1) if seq + 1 < first else None
        entries = self._fitting(islice(self._entries, start - first, start - first + limit), max_bytes)
        return Page(gap, entries, entries[-1].seq if entries else max(seq, start - 1))

    def _fitting(self, entries: Iterable[tuple[Entry, int]], max_bytes: int | None) -> list[Entry]:
        page: list[Entry] = []
        size = 0
        for entry, cost in entries:
            size += cost
            if page and max_bytes is not None and size > max_bytes:
                break
            page.append(entry)
        return page


def _cost(event: Event) -> int:
    # Every message passes here several times, so one loop asks for exact types, which `isinstance` and `sum` do not.
    size = _ENTRY_OVERHEAD
    for name in event.__slots__:
        value = getattr(event, name)
        kind = type(value)
        if kind is str or kind is bytes:
            size += len(value)
        elif kind is not int and kind is not float and value is not None:
            size += _size(value)
    return size


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return _ITEM_OVERHEAD + len(value)
    if isinstance(value, tuple | list):
        return _ITEM_OVERHEAD + sum(map(_size, value))
    if isinstance(value, dict):
        return _ITEM_OVERHEAD + sum(_size(name) + _size(item) for name, item in value.items())
    return _ITEM_OVERHEAD
