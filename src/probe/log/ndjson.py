"""A log as lines of JSON: written, and read back without loss.

    {"kind":"log","version":2,"run":…}           first: the members of `Header`
    {"seq":1,"at":…,"kind":"http.request",…}     one entry as `Entry.encoded` writes it, in order
    {"kind":"gap","first":…,"last":…}            these entries are missing
    {"kind":"end","last":…,"why":"complete"}     last: the file is not cut off

Stored JSON comes back byte for byte, and ids with their types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_type_hints

from pydantic_core import from_json

from ..settings import Limits, Settings, described
from ..wire.jsonrpc import encode
from .entry_reading import LineForm, MemberError, kind_of, read_entry
from .event_log import Entry, Gap

Why: TypeAlias = Literal["complete", "filtered"]
"""`complete`: each number up to the end is an entry or in a gap.

`filtered`: only the entries asked for were written.
"""


@dataclass(frozen=True, slots=True)
class Header:
    """The origin of a log. `started_at` is seconds since the epoch, `program` the version of the server.

    `settings` are those needed by the rules about clients (`ndjson.settings_for_rules`). `catalogue` is the version of
    these rules if the log was written for them.
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
    """A log read back: entries and gaps in their order. `opened.ReadLog` is read by cursors.

    `end` is its last line, None if the file was cut off. Numbers without an entry or a gap were filtered out.
    """

    def __init__(self, header: Header, items: Iterable[Item], end: End | None) -> None:
        self.header = header
        self.end = end
        self.items: tuple[Item, ...] = tuple(items)
        self.entries = [item for item in self.items if isinstance(item, Entry)]
        self.gaps = [item for item in self.items if isinstance(item, Gap)]


class LogReader:
    """A log read line by line: `header` at once, then the items in their order, then `end`.

    Keeps no item. Raises `NdjsonError` if the first line is no header, and during the iteration. `end` is the last line
    after the iteration; None if the file was cut off.
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
        """Entries and gaps."""
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
