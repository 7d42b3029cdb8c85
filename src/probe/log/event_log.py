"""The event log: append-only, in memory, bounded by count and bytes, read by cursors.

Appending never waits and knows no reader. A reader asks for the entries after a sequence number, such as 40.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias, cast, final, get_args

import trio
from msgspec import Struct, structs

from ..core.budgets import SharedBytes
from ..wire.jsonrpc import encode
from .context import NO_CONTEXT, Context
from .events import AnyEvent, Event, UnknownEvent
from .redaction import encode_with

# The bytes of an entry without its message: the objects of a small fact and its strings, generously.
_ENTRY_OVERHEAD = 512
# The annotations of values with no further cost.
_SMALL = frozenset({"int", "float", "bool", "int | None", "float | None", "Rpc"})
_TEXTS = frozenset({"str", "bytes", "str | None", "bytes | None"})
_PAIRS = "tuple[tuple[str, str], ...]"
# The bytes of a value in a container without its characters: an empty string or list, and its place there.
_ITEM_OVERHEAD = 64


# `gc=False`: see `events`.
class Entry(Struct, frozen=True, gc=False):
    """One fact with its place, its context and its cause.

    `seq` counts from 1 and never repeats, `at` is seconds since the epoch, `mono` the monotonic clock in seconds.
    `cause` is the `seq` of the entry that made the fact happen: for an answer, that of its request.
    """

    seq: int
    at: float
    mono: float
    context: Context
    fact: AnyEvent
    cause: int | None = None

    def encoded(self) -> bytes:
        fact = self.fact
        place = {"seq": self.seq, "at": self.at, "mono": self.mono, "kind": fact.kind, "cause": self.cause}
        if isinstance(fact, UnknownEvent):
            members = {**place, **structs.asdict(self.context)}
            return encode(members)[:-1] + (b"}" if fact.own == b"{}" else b"," + fact.own[1:])
        shape = _SHAPES[type(fact)]
        own = dict(zip(shape.shown, shape.values(fact), strict=True))
        members = {**place, **structs.asdict(self.context), **own}
        return encode_with(members, [(name, getattr(fact, name)) for name in shape.stored])


_Values: TypeAlias = Callable[[AnyEvent], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of one class of facts: those shown as values, how to get these, and those stored as JSON.

    For values of variable size, `texts` gets the texts and `others` the values of other types. `pairs` is the name of
    the field with pairs of texts, such as headers.
    """

    shown: tuple[str, ...]
    values: _Values
    stored: tuple[str, ...]
    texts: _Values
    others: _Values
    pairs: str | None


def _shape(kind: type[Any]) -> _Shape:
    types = {name: kind.__annotations__[name] for name in kind.__struct_fields__}
    stored = tuple(name for name, type in types.items() if type == "bytes")
    shown = tuple(name for name in types if name not in stored)
    texts = [name for name, type in types.items() if type in _TEXTS]
    others = [name for name, type in types.items() if type not in {*_SMALL, *_TEXTS, _PAIRS}]
    pairs = [name for name, type in types.items() if type == _PAIRS]
    assert len(pairs) <= 1, "no fact has two fields of pairs"
    return _Shape(shown, _getter(shown), stored, _getter(texts), _getter(others), pairs[0] if pairs else None)


def _getter(names: Sequence[str]) -> _Values:
    if not names:
        return lambda fact: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda fact: (get(fact),)


# Finding the fields anew for each fact took half of the time of encoding it.
_SHAPES = {kind: _shape(kind) for kind in (*get_args(Event), UnknownEvent)}


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """The entries from `first` to `last`, both included, were evicted before they were read."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page for a reader: the lost range before it, if any, the entries, and the cursor for the next page."""

    gap: Gap | None
    entries: list[Entry]
    next: int


class EventLog:
    """Owned by one engine. `now` gives (wall, monotonic) seconds. `shared` bounds the bytes of several logs."""

    def __init__(
        self,
        now: Callable[[], tuple[float, float]],
        *,
        max_events: int,
        max_bytes: int,
        shared: SharedBytes | None = None,
    ) -> None:
        self._now = now
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._shared = shared
        # The entries, None in the places of evicted ones. The beginning is removed in large pieces. A list, since a
        # deque is slow to read in its middle.
        self._slots: list[Entry | None] = []
        # The cost in bytes of each kept entry.
        self._costs: deque[int] = deque()
        self._readers = trio.lowlevel.ParkingLot()
        # False if no task waits. Each entry checks this, and most are not awaited.
        self._awaited = False
        self.bytes = 0
        self.last = 0

    def __len__(self) -> int:
        return len(self._costs)

    @property
    def is_shared(self) -> bool:
        """True while its bytes count in a bound of several logs."""
        return self._shared is not None

    @property
    def first(self) -> int:
        """The oldest kept sequence number; one more than the last while there is none."""
        return self.last - len(self._costs) + 1

    def append(
        self,
        fact: AnyEvent,
        context: Context = NO_CONTEXT,
        cause: int | None = None,
        when: tuple[float, float] | None = None,
    ) -> int:
        """Record a fact; returns its sequence number. The oldest entries make room.

        `when` is the time of a fact from another process, wall and monotonic by this log's clock.
        """
        seq = self.last = self.last + 1
        at, mono = self._now() if when is None else when
        cost = cost_of(fact)
        self._slots.append(Entry(seq, at, mono, context, fact, cause))
        costs = self._costs
        costs.append(cost)
        self.bytes += cost
        if self.bytes > self._max_bytes or len(costs) > self._max_events:
            self._make_room(self._max_bytes)
        if self._shared is not None:
            self._shared.weigh(self._give_up, self.bytes)
            self._shared.make_room()
        if self._awaited:
            self._wake()
        return seq

    def _wake(self) -> None:
        self._awaited = False
        self._readers.unpark_all()

    def leave_shared(self) -> None:
        if self._shared is not None:
            self._shared.remove(self._give_up)
            self._shared = None

    def _give_up(self) -> int:
        # The newest entry goes, too: otherwise a large one in each of many logs would exceed their bound.
        self._make_room(self.bytes * 15 // 16, least=0)
        if self._awaited:
            self._wake()
        return self.bytes

    def _make_room(self, most_bytes: int, least: int = 1) -> None:
        slots, costs, kept = self._slots, self._costs, len(self._costs)
        # Within the bound of this log alone the newest entry stays, however large it is.
        while kept > self._max_events or (self.bytes > most_bytes and kept > least):
            slots[-kept] = None
            self.bytes -= costs.popleft()
            kept -= 1
        if len(slots) > 2 * kept:
            del slots[: len(slots) - kept]

    async def wait_beyond(self, seq: int, first: int | None = None) -> None:
        """Wait for an entry behind `seq`, or until the log keeps no entry before `first`."""
        while self.last <= seq and (first is None or self.first < first):
            self._awaited = True
            await self._readers.park()

    def entry(self, seq: int) -> Entry | None:
        found = self._between(seq, seq) if self.first <= seq <= self.last else []
        return found[0] if found else None

    def since(self, seq: int, limit: int) -> LogPage:
        """At most `limit` entries after `seq`, oldest first. A cursor beyond the end gives an empty page."""
        first = self.first
        start = max(seq + 1, first)
        gap = Gap(seq + 1, first - 1) if seq + 1 < first else None
        entries = self._between(start, min(self.last, start + limit - 1))
        return LogPage(gap, entries, entries[-1].seq if entries else max(seq, start - 1))

    def until(self, seq: int, limit: int) -> list[Entry]:
        """The last entries up to `seq`, at most `limit` of them, oldest first."""
        end = min(seq, self.last)
        return self._between(max(self.first, end - limit + 1), end)

    def tail(self, count: int) -> int:
        """The cursor for `since` that gives the last `count` entries, or all if there are fewer."""
        return max(self.first - 1, self.last - count)

    def _between(self, start: int, end: int) -> list[Entry]:
        if start > end:
            return []
        offset = len(self._slots) - self.last - 1
        # No entry from the first kept one on is None.
        return cast("list[Entry]", self._slots[start + offset : end + offset + 1])


def cost_of(fact: AnyEvent) -> int:
    """The bytes that an entry with this fact takes in memory, about."""
    # Every message passes here several times, so most work is done by functions in C.
    shape = _SHAPES[type(fact)]
    size = _ENTRY_OVERHEAD + sum(map(len, filter(None, shape.texts(fact))))
    for value in shape.others(fact):
        kind = type(value)
        if kind is str:
            size += len(value)
        elif value and kind is not int:
            size += _size(value)
    if shape.pairs is not None and (pairs := getattr(fact, shape.pairs)):
        # `_size` finds the same: the tuple, each pair, and the two texts of that.
        size += _ITEM_OVERHEAD * (1 + 3 * len(pairs)) + sum(map(len, chain.from_iterable(pairs)))
    return size


def _size(value: object) -> int:
    size, left = 0, [value]
    for item in left:
        size += _ITEM_OVERHEAD
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, (tuple, list)):
            left += item
        elif isinstance(item, dict):
            left += item
            left += item.values()
    return size
