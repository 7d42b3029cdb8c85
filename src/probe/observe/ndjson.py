"""A log as lines of JSON: written, and read back without loss.

    {"kind":"log","version":1,"run":…}         first
    {"seq":1,"at":…,"kind":"http.request",…}   one entry as `Entry.encoded` writes it, in order
    {"kind":"gap","first":…,"last":…}          these are missing

Stored JSON comes back byte for byte, and ids with their types.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic_core import from_json

from ..wire.jsonrpc import clip, encode
from .event_filter import EVENTS
from .events import Event
from .log import Entry, Gap, Page

VERSION = 1

Item: TypeAlias = Entry | Gap


class NdjsonError(ValueError):
    """What was read is no log of this version; the message names the line."""


def header(run: str) -> bytes:
    """The first line."""
    return encode({"kind": "log", "version": VERSION, "run": run}) + b"\n"


def line(item: Item) -> bytes:
    """The line of an entry or a gap."""
    if isinstance(item, Gap):
        return encode({"kind": "gap", "first": item.first, "last": item.last}) + b"\n"
    return item.encoded() + b"\n"


def dump(run: str, items: Iterable[Item]) -> Iterator[bytes]:
    """The lines of a log."""
    yield header(run)
    yield from map(line, items)


class SavedLog:
    """A log that was read back: entries and gaps in their order, to be read by cursors as the living one is.

    `run` names the run of the server that wrote it. Numbers that neither an entry nor a gap has were filtered out.
    """

    def __init__(self, run: str, items: Iterable[Item]) -> None:
        self.run = run
        self.items: tuple[Item, ...] = tuple(items)
        self._ends = [_end(item) for item in self.items]
        self.entries = [item for item in self.items if isinstance(item, Entry)]
        self.gaps = [item for item in self.items if isinstance(item, Gap)]

    @property
    def last(self) -> int:
        """The last number it tells of; 0 where there is none."""
        return self._ends[-1] if self._ends else 0

    def entry(self, seq: int) -> Entry | None:
        """One entry; None where it is not there."""
        return next((entry for entry in self.since(seq - 1, 1).entries if entry.seq == seq), None)

    def since(self, seq: int, limit: int) -> Page:
        """What follows `seq`, oldest first: at most one gap, and then at most `limit` entries up to the next gap."""
        at = bisect_right(self._ends, seq)
        gap = self.items[at] if at < len(self.items) else None
        found: list[Entry] = []
        if isinstance(gap, Gap):
            gap, at = Gap(max(gap.first, seq + 1), gap.last), at + 1
        for item in self.items[at : at + limit]:
            if isinstance(item, Gap):
                break
            found.append(item)
        rest = gap if isinstance(gap, Gap) else None
        return Page(rest, found, found[-1].seq if found else max(seq, rest.last if rest else 0))


def load(lines: Iterable[bytes]) -> SavedLog:
    """Read what `dump` wrote, line by line; empty lines mean nothing. Raises `NdjsonError`."""
    numbered = ((number, text) for number, raw in enumerate(lines, 1) if (text := raw.strip(b" \t\r\n")))
    number, first = next(numbered, (1, b"{}"))
    run = _run(number, first)
    items: list[Item] = []
    last = 0
    for number, text in numbered:
        item = _item(number, text)
        if _start(item) <= last:
            raise NdjsonError(f"line {number}: {_start(item)} after {last}, but numbers only grow")
        last = _end(item)
        items.append(item)
    return SavedLog(run, items)


def _start(item: Item) -> int:
    return item.first if isinstance(item, Gap) else item.seq


def _end(item: Item) -> int:
    return item.last if isinstance(item, Gap) else item.seq


def _run(number: int, text: bytes) -> str:
    value = _object(number, text)
    version, run = value.get("version"), value.get("run")
    if value.get("kind") != "log" or type(version) is not int or type(run) is not str:
        raise NdjsonError(f'line {number}: a log begins with {{"kind":"log","version":{VERSION},"run":"…"}}')
    if version != VERSION:
        raise NdjsonError(f"line {number}: version {version} of the format; this program reads version {VERSION}")
    return run


def _object(number: int, text: bytes) -> dict[str, Any]:
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise NdjsonError(f"line {number}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise NdjsonError(f"line {number}: not an object")
    return value


def _item(number: int, text: bytes) -> Item:
    value = _object(number, text)
    kind = value.get("kind")
    if kind == "gap":
        gap = Gap(**_checked(number, value, _GAP))
        if gap.last < gap.first:
            raise NdjsonError(f"line {number}: a gap from {gap.first} to {gap.last}")
        return gap
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise NdjsonError(f"line {number}: unknown kind {clip(str(kind))!r}")
    return _entry(text, _checked(number, value, {**_PLACE, **shape.fields}), shape)


def _entry(text: bytes, value: dict[str, Any], shape: _Shape) -> Entry:
    entry = _made(value, shape, None if shape.stored is None else encode(value[shape.stored]))
    if shape.stored is None:
        return entry
    # The stored JSON stands last, and a quotation mark inside a string is escaped, so where this is found first is
    # where it begins. Whether the line is as it was written is not assumed: it is written again. Where some other
    # program has arranged it anew, its values are all there is.
    _, mark, rest = text.partition(b',"%b":' % shape.stored.encode())
    exact = _made(value, shape, rest[:-1])
    return exact if mark and exact.encoded() == text else entry


def _made(value: dict[str, Any], shape: _Shape, stored: bytes | None) -> Entry:
    fields = {name: _frozen(value[name]) for name in shape.fields}
    if shape.stored is not None:
        fields[shape.stored] = stored
    return Entry(value["seq"], value["at"], value["mono"], shape.event(**fields), value["pair"])


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What a member may be: JSON of these types; a string one of these words; a list of what is an `item` of one."""

    types: frozenset[type]
    words: frozenset[str] = frozenset()
    item: Callable[[Any], bool] | None = None

    def fit(self, value: Any) -> bool:
        if type(value) is list and self.item is not None and not all(map(self.item, value)):
            return False
        return type(value) in self.types and not (self.words and value not in self.words)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The members of a class of events; `stored` is the one that is JSON already."""

    event: type[Event]
    fields: Mapping[str, _Kinds]
    stored: str | None


def _checked(number: int, value: dict[str, Any], members: Mapping[str, _Kinds]) -> dict[str, Any]:
    for name, kinds in members.items():
        if name not in value:
            raise NdjsonError(f"line {number}: {name} is missing")
        if not kinds.fit(value[name]):
            raise NdjsonError(f"line {number}: {name} cannot be {clip(repr(value[name]))}")
    if unknown := value.keys() - members.keys() - {"kind"}:
        raise NdjsonError(f"line {number}: unknown member {clip(min(unknown))!r}")
    return {name: value[name] for name in members}


_ANY_JSON = _Kinds(frozenset({dict, list, str, int, float, bool, NoneType}))


def _kinds(hint: Any) -> _Kinds:
    if hint is bytes:
        return _ANY_JSON
    if get_origin(hint) is Literal:
        return _Kinds(frozenset({str}), frozenset(get_args(hint)))
    if get_origin(hint) is tuple:
        return _Kinds(frozenset({list}), item=_is_text if get_args(hint)[0] is str else _is_pair)
    types = set(get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,))
    # A whole number stands in the log as such also where its field is one for any number.
    return _Kinds(frozenset(types | {int} if float in types else types))


def _shape(event: type[Event]) -> _Shape:
    hints = {name: get_type_hints(event)[name] for name in event.__slots__}
    stored = next((name for name, hint in hints.items() if hint is bytes), None)
    return _Shape(event, {name: _kinds(hint) for name, hint in hints.items()}, stored)


_SHAPES: Mapping[str, _Shape] = MappingProxyType({event.kind: _shape(event) for event in EVENTS})
_PLACE: Mapping[str, _Kinds] = MappingProxyType(
    {name: _kinds(hint) for name, hint in get_type_hints(Entry).items() if name != "event"}
)
_GAP: Mapping[str, _Kinds] = MappingProxyType({name: _kinds(hint) for name, hint in get_type_hints(Gap).items()})
