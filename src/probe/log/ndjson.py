"""A log as lines of JSON, written and read back without loss, and a log read from a file in place of a server's.

    {"kind":"log","version":2,"run":…}           first: the members of `Header`
    {"seq":1,"at":…,"kind":"http.request",…}     one entry as `Entry.encoded` writes it, in order
    {"kind":"gap","first":…,"last":…}            these entries are missing
    {"kind":"end","last":…,"why":"complete"}     last: the file is not cut off

A struct for each kind has the members of its lines. msgspec checks them and leaves stored JSON, such as a message,
unread: it comes back byte for byte, and ids with their types.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct
from pydantic_core import from_json

from ..core.clients import LABEL_RULE, is_client_label
from ..settings import Limits, Settings, described
from ..wire.jsonrpc import clip, encode
from .context import NO_CONTEXT, Context
from .event_log import Entry, EventLog, Gap, LogPage, cost_of
from .events import AnyEvent, Event, UnknownEvent

LATEST: Final = 253402300799
"""The end of the year 9999, in seconds since the epoch. Later times have no date in some programs, such as Python."""


class MemberError(ValueError):
    """A member is missing, unknown, or not what it must be; the message names it."""


class _Head(Struct):
    kind: Any = msgspec.UNSET


_TOO_DEEP: Final = "its JSON is nested too deeply"
_HEAD: Final = msgspec.json.Decoder(_Head)


def kind_of(text: bytes) -> Any:
    """The member `kind` of a JSON object; `msgspec.UNSET` without one. Raises `MemberError`, and `ValueError`."""
    try:
        return _HEAD.decode(text).kind
    except msgspec.ValidationError:
        raise MemberError("not an object") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


class LineForm:
    """The form of one kind of line: a JSON object with these members, all of them required, and with `kind`."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._names = tuple(members)
        self._values = attrgetter(*members)
        fields = [(name, _json_type(hint)) for name, hint in members.items()]
        struct = msgspec.defstruct("Line", [*fields, ("kind", Any)], forbid_unknown_fields=True)
        self._decoder = msgspec.json.Decoder(struct)

    def read(self, text: bytes) -> tuple[Any, ...]:
        """The values of the members; stored JSON as its bytes. Raises `MemberError`, and `ValueError` for no JSON."""
        try:
            values = self._values(self._decoder.decode(text))
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        except msgspec.DecodeError:
            self._refuse(from_json(text, allow_inf_nan=False))
            raise
        return tuple([_stored(value) if type(value) is Raw else value for value in values])

    def _refuse(self, value: Mapping[str, Any]) -> None:
        for name in self._names:
            if name not in value:
                raise MemberError(f"{name} is missing")
        if unknown := value.keys() - {"kind", *self._names}:
            raise MemberError(f"unknown member {clip(min(unknown))!r}")
        try:
            msgspec.convert(value, self._decoder.type)
        except msgspec.ValidationError as error:
            name = _PLACE_OF_ERROR.split(str(error))[1]
            raise MemberError(f"{name} cannot be {clip(repr(value[name]))}") from None


def _stored(value: Raw) -> bytes:
    text = bytes(value)
    # Its readers parse it, and not all that msgspec passes over is JSON for them.
    parsed = from_json(text, allow_inf_nan=False)
    # A line break between two tokens would end a line of the feed.
    return encode(parsed) if b"\r" in text or b"\n" in text else text


# msgspec ends a message with the path of the member, such as `$.headers[0]`.
_PLACE_OF_ERROR: Final = re.compile(r"`\$\.(\w+)")


def _json_type(hint: Any) -> Any:
    """The type of a member in JSON: stored JSON is `Raw`, and a float may be written as a whole number, 5 for 5.0."""
    if hint is bytes:
        return Raw
    if hint is float or (float in get_args(hint) and get_origin(hint) is not tuple):
        return hint | int
    return hint


def _fields(fact: type[Event]) -> dict[str, Any]:
    hints = get_type_hints(fact)
    return {name: hints[name] for name in fact.__struct_fields__}


_PLACE: Final = {name: hint for name, hint in get_type_hints(Entry).items() if name not in ("context", "fact")}
_OUTSIDE: Final = {**_PLACE, **get_type_hints(Context)}
# The facts by their kinds, and the lines of each; the fields of the fact stand last.
_FACTS: Final[Mapping[str, type[Event]]] = {fact.kind: fact for fact in get_args(Event)}
_LINES: Final = {kind: LineForm({**_OUTSIDE, **_fields(fact)}) for kind, fact in _FACTS.items()}
_UNKNOWN: Final = LineForm(_OUTSIDE)
# Two words or more, such as `http.request`. The other lines of a log have one word, such as `gap`.
_KIND_NAME: Final = re.compile(r"[a-z][a-z_-]*(\.[a-z][a-z_-]*)+")


def read_entry(text: bytes, kind: Any = None) -> Entry:
    """The entry of a JSON object with its members in any order; `kind` is its kind, if read already.

    A kind unknown to this version gives an `UnknownEvent`. Raises `MemberError`, and `ValueError` for no JSON.
    """
    kind = kind or kind_of(text)
    if kind is msgspec.UNSET:
        raise MemberError("kind is missing")
    if not isinstance(kind, str) or not _KIND_NAME.fullmatch(kind):
        raise MemberError(f"kind cannot be {clip(repr(kind))}")
    if kind in _LINES:
        values = _LINES[kind].read(text)
        return _placed(values, _FACTS[kind](*values[len(_OUTSIDE) :]))
    members = from_json(text, allow_inf_nan=False)
    own = {name: value for name, value in members.items() if name not in _OUTSIDE and name != "kind"}
    outside = {name: value for name, value in members.items() if name not in own}
    return _placed(_UNKNOWN.read(encode(outside)), UnknownEvent(kind, encode(own)))


def _placed(values: tuple[Any, ...], fact: AnyEvent) -> Entry:
    seq, at, mono, cause, *context = values[: len(_OUTSIDE)]
    place = Context(*context)
    if not 0 <= at <= LATEST:
        raise MemberError(f"at cannot be {clip(repr(at))}: it is no time between 1970 and 9999")
    if not -LATEST <= mono <= LATEST:
        raise MemberError(f"mono cannot be {clip(repr(mono))}")
    if place.label is not None and not is_client_label(place.label):
        raise MemberError(f"label must be {LABEL_RULE}")
    return Entry(seq, at, mono, place, fact, cause)


Why: TypeAlias = Literal["complete", "filtered"]
"""`complete`: each number up to the end is an entry or in a gap.

`filtered`: only the entries asked for were written.
"""


@dataclass(frozen=True, slots=True)
class Header:
    """The origin of a log. `started_at` is seconds since the epoch, `program` the version of the server.

    `settings` are those of `settings_for_rules`. `catalogue` is the version of the rules if the log was written for
    them.
    """

    run: str
    program: str
    started_at: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    catalogue: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last line: the file covers the numbers up to `last`."""

    last: int
    why: Why = "complete"


_T = TypeVar("_T")

VERSION: Final = 2

_OTHER: Final = {1: "its entries have no context and no cause, and the program that wrote it reads it"}
_SPACE: Final = b" \t\r\n"
# How `line` begins an entry.
_NUMBER: Final = re.compile(rb'\{"seq":([0-9]{1,19}),')
# Settings that do not change what a client may do.
_NO_RULE: Final = frozenset({"port"})

Item: TypeAlias = Entry | Gap


class NdjsonError(ValueError):
    """The file is not a log of this version; the message names the line."""


def settings_for_rules(settings: Settings) -> Mapping[str, Any]:
    """The settings that bound what a client may do and how long: times, limits and the tools served.

    No secret, name or path of the machine is among them.
    """
    owners: tuple[Settings | Limits, ...] = (settings, settings.limits)
    values = {spec.name: getattr(owner, spec.name) for owner in owners for spec in described(type(owner))}
    numbers = {name: value for name, value in values.items() if type(value) in (int, float) and name not in _NO_RULE}
    return {"tools": settings.tools, **numbers}


def header(of: Header) -> bytes:
    """The first line."""
    return encode({"kind": "log", "version": VERSION, **asdict(of)}) + b"\n"


def line(item: Item | End) -> bytes:
    """The line of an entry, a gap, or the end."""
    if isinstance(item, Entry):
        return item.encoded() + b"\n"
    kind = "gap" if isinstance(item, Gap) else "end"
    return encode({"kind": kind, **asdict(item)}) + b"\n"


def dump(of: Header, items: Iterable[Item], end: End | None) -> Iterator[bytes]:
    """Yields the lines of a log. Without an `end` it reads as one that was cut off."""
    yield header(of)
    yield from map(line, items)
    if end is not None:
        yield line(end)


class SavedLog:
    """A log read back: entries and gaps in their order.

    `end` is its last line, None if the file was cut off. Numbers without an entry or a gap were filtered out.
    """

    def __init__(self, header: Header, items: Iterable[Item], end: End | None) -> None:
        self.header = header
        self.end = end
        self.items: tuple[Item, ...] = tuple(items)
        self.entries = [item for item in self.items if isinstance(item, Entry)]
        self.gaps = [item for item in self.items if isinstance(item, Gap)]


class LogReader:
    """A log read line by line: `header` at once, then the items in their order, then `end`; None if it was cut off.

    Keeps no item. Raises `NdjsonError` if the first line is no header, and during the iteration.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = ((number, raw) for number, raw in enumerate(lines, 1) if raw.strip(_SPACE))
        number, first = next(self._lines, (1, b"{}"))
        try:
            self.header = _named(number, _header, first)
        except _NotJsonError:
            raise NdjsonError(f"line {number}: no JSON, so it is no event log, or one that is cut off") from None
        self.end: End | None = None

    def __iter__(self) -> Iterator[Item]:
        last = 0
        for number, raw in self._lines:
            if self.end is not None:
                raise NdjsonError(f"line {number}: nothing may follow the end of the log")
            try:
                item = _named(number, read_line, raw)
            except _NotJsonError:
                if raw.endswith(b"\n") or next(self._lines, None) is not None:
                    raise
                return
            _named(number, _check_order, last, item)
            if isinstance(item, End):
                self.end = item
            else:
                last = _end(item)
                yield item


def entries(lines: Iterable[bytes], wanted: Container[int]) -> Iterator[Entry]:
    """Return the entries with these numbers from lines already read by `LogReader`. Most other lines are not parsed."""

    def may_be(raw: bytes) -> bool:
        number = _NUMBER.match(raw)
        return number is None or int(number[1]) in wanted

    for item in LogReader(raw for at, raw in enumerate(lines) if at == 0 or may_be(raw)):
        if isinstance(item, Entry) and item.seq in wanted:
            yield item


class _NotJsonError(NdjsonError):
    pass


def _named(number: int, read: Callable[..., _T], *given: Any) -> _T:
    """Turns any `ValueError` into an `NdjsonError` with the number of the line."""
    try:
        return read(*given)
    except ValueError as error:
        kind = _NotJsonError if isinstance(error, _NotJsonError) else NdjsonError
        raise kind(f"line {number}: {error}") from None


def _header(raw: bytes) -> Header:
    kind, value = _kind(raw), from_json(raw)
    version = value.pop("version", None)
    if kind != "log" or type(version) is not int:
        raise NdjsonError(f'a log begins with {{"kind":"log","version":{VERSION},"run":"…", …}}')
    if version != VERSION:
        why = f": {_OTHER[version]}" if version in _OTHER else ""
        raise NdjsonError(f"version {version} of the format{why}; this program reads version {VERSION}")
    return Header(*_HEADER.read(encode(value)))


def read_line(raw: bytes) -> Item | End:
    """Read one line behind the header. Raises `ValueError`."""
    kind = _kind(raw)
    if kind == "gap":
        return Gap(*_GAP.read(raw))
    if kind == "end":
        return End(*_END.read(raw))
    return read_entry(raw, kind)


def _kind(raw: bytes) -> Any:
    try:
        return kind_of(raw)
    except MemberError:
        raise
    except ValueError as error:
        raise _NotJsonError(f"no JSON: {error}") from None


def _check_order(before: int, item: Item | End) -> None:
    if isinstance(item, End):
        if item.last < before:
            raise NdjsonError(f"the end is at {item.last}, but {before} stands before it")
        return
    if _start(item) <= before:
        raise NdjsonError(f"{_start(item)} after {before}, but numbers only grow")
    if _end(item) < _start(item):
        raise NdjsonError(f"a gap from {_start(item)} to {_end(item)}")


def _start(item: Item) -> int:
    return item.first if isinstance(item, Gap) else item.seq


def _end(item: Item) -> int:
    return item.last if isinstance(item, Gap) else item.seq


_HEADER: Final = LineForm(get_type_hints(Header))
_GAP: Final = LineForm(get_type_hints(Gap))
_END: Final = LineForm(get_type_hints(End))


MANIFEST: Final = "manifest.json"
"""The member of a session file that describes its log."""
FILE_FORMAT: Final = "mcpprobe"
FILE_VERSION: Final = 1


def check_manifest(value: Mapping[str, Any]) -> None:
    """Raises `NdjsonError` for a manifest of another format or version."""
    if value.get("format") != FILE_FORMAT:
        raise NdjsonError(f"its {MANIFEST} is not that of a session file")
    if value.get("version") != FILE_VERSION:
        theirs = f"version {value.get('version')!r} of the format"
        raise NdjsonError(f"it has {theirs[:100]}; this program reads version {FILE_VERSION}")


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that was read: its `name` without folders, its log, and the other parts of a session file.

    `manifest` and `report` are JSON objects, None where the file has none.
    """

    name: str
    log: SavedLog
    manifest: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None

    @property
    def saved_at(self) -> float | None:
        at = (self.manifest or {}).get("saved_at")
        return at if isinstance(at, float) else None

    @property
    def is_filtered(self) -> bool:
        """True if entries were left out on purpose."""
        return self.log.end is not None and self.log.end.why == "filtered"

    @property
    def is_cut_off(self) -> bool:
        return self.log.end is None


class ReadLog(EventLog):
    """The entries of a file, for the readers of a log. Any of the numbers may be missing.

    `append` adds no entry: events of the server that shows a file are not part of the file.
    """

    def __init__(self, saved: SavedLog) -> None:
        super().__init__(lambda: (0.0, 0.0), max_events=1, max_bytes=1)
        self._entries = saved.entries
        self._numbers = [entry.seq for entry in self._entries]
        self.last = self._numbers[-1] if self._numbers else 0
        self.bytes = sum(cost_of(entry.fact) for entry in self._entries)
        begins = saved.items[0] if saved.items else None
        # Entries left out on purpose do not count as missing.
        self._first = begins.last + 1 if isinstance(begins, Gap) else 1

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> int:
        return self._first

    def append(
        self,
        fact: AnyEvent,
        context: Context = NO_CONTEXT,
        cause: int | None = None,
        when: tuple[float, float] | None = None,
    ) -> int:
        self._readers.unpark_all()
        return self.last

    async def wait_beyond(self, seq: int, first: int | None = None) -> None:
        if self.last <= seq:
            await self._readers.park()

    def since(self, seq: int, limit: int) -> LogPage:
        start = max(seq + 1, self._first)
        gap = Gap(seq + 1, self._first - 1) if seq + 1 < self._first else None
        found = self._between(start, min(self.last, start + limit - 1))
        following = bisect_left(self._numbers, start) + len(found)
        next = self._numbers[following] - 1 if following < len(self._numbers) else self.last
        return LogPage(gap, found, max(seq, start - 1, next))

    def until(self, seq: int, limit: int) -> list[Entry]:
        end = bisect_right(self._numbers, seq)
        return self._entries[max(0, end - limit) : end]

    def tail(self, count: int) -> int:
        if count >= len(self._numbers):
            return self._first - 1
        return self.last if count == 0 else self._numbers[-count] - 1

    def _between(self, start: int, end: int) -> list[Entry]:
        return self._entries[bisect_left(self._numbers, start) : bisect_right(self._numbers, end)]
