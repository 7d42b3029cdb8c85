"""Queries in URLs (docs/observation.md): their errors, and filters of entries such as `?kind=call.started`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, get_args

from pydantic_core import from_json

from ..wire.jsonrpc import clip, encode
from .context import Context
from .event_log import Entry
from .events import (
    AnyEvent,
    Event,
    HostMessage,
    HttpRequest,
    HttpResponse,
    MessageDropped,
    MessageEmitted,
    MessageReceived,
    MessagesDelivered,
    UnknownEvent,
)

# More than any count of a run has; `int` takes quadratic time over digits.
_MOST_DIGITS = 15


class QueryError(ValueError):
    """A query has an unknown parameter or value; the message lists the known ones.

    `known` are the known parameters, or the known values of one; `given` is the unknown one.
    """

    def __init__(self, message: str, known: Iterable[str] = (), given: str = "") -> None:
        super().__init__(message)
        self.known = tuple(known)
        self._given = given

    @property
    def hint(self) -> str:
        """The end of the message with the probable name, such as `; did you mean session?`; empty if none is near."""
        near = difflib.get_close_matches(self._given.lower(), self.known, n=1)
        return f"; did you mean {near[0]}?" if near else ""


def unknown(name: str, known: Iterable[str]) -> QueryError:
    """The error for an unknown parameter."""
    names = tuple(known)
    what = f"known are {', '.join(names)}" if names else "this page takes none"
    return QueryError(f"there is no parameter {clip(name)!r}; {what}", names)


def twice(name: str) -> QueryError:
    """The error for a parameter given twice: two values could mean both, or either."""
    return QueryError(f"{clip(name)} stands twice; it can be given once")


def switch(name: str, value: str | None) -> bool:
    """The value of a parameter that is 0 or 1; 0 if it is missing. Raises `QueryError`."""
    if value not in (None, "0", "1"):
        raise QueryError(f"{name} must be 0 or 1, got {clip(value)!r}", ("0", "1"))
    return value == "1"


def whole_number(text: str, most_digits: int = _MOST_DIGITS) -> int | None:
    """A number without a sign; None for anything else, and for one of more digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None


EVENTS: tuple[type[Event], ...] = get_args(Event)
"""The vocabulary, in its order."""
_ALL: Final[frozenset[type[AnyEvent]]] = frozenset({*EVENTS, UnknownEvent})

_DIRECTIONS: Mapping[str, frozenset[type[Event]]] = MappingProxyType(
    {
        "in": frozenset({HttpRequest, MessageReceived, HostMessage}),
        "out": frozenset({HttpResponse, MessageEmitted, MessagesDelivered, MessageDropped, HostMessage}),
    }
)
# `HostMessage` has a field for it.
_OF_HOST: Mapping[str, str] = MappingProxyType({"in": "received", "out": "sent"})
_CONTEXT = frozenset(Context.__struct_fields__)
_OF_CLIENT = frozenset({"session", "label"})
_NUMBERS = frozenset({"exchange"})

NAMES = ("session", "label", "direction", "kind", "method", "call", "task", "stream", "exchange", "connection", "text")
"""The names of all filters."""

# Reading 4 MB with escapes, or folding as many letters, would delay every call for a tenth of a second.
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Passes entries of some classes with these values of `fields` and with `text` (in lower case) in their JSON.

    Messages of tool hosts pass if they have the direction `host_direction`, or if that is None. Hashable, so that
    readers with equal filters share one result.
    """

    types: frozenset[type[AnyEvent]] = _ALL
    fields: tuple[tuple[str, str | int], ...] = ()
    text: str | None = None
    host_direction: str | None = None

    @property
    def passes_all(self) -> bool:
        return self == EVERYTHING

    def matches(self, entry: Entry) -> bool:
        """True if the entry passes. It is encoded only for a `text`, and only if all else fits."""
        return self.fits(entry) and (self.text is None or contains(entry.encoded(), self.text))

    def fits(self, entry: Entry) -> bool:
        """True if the entry passes without regard to `text`. `finds` checks the text in the encoded entry."""
        fact = entry.fact
        if type(fact) not in self.types:
            return False
        if isinstance(fact, HostMessage) and self.host_direction not in (None, fact.direction):
            return False
        context = entry.context
        return all(getattr(context if name in _CONTEXT else fact, name) == value for name, value in self.fields)

    def concerns(self, entry: Entry) -> bool:
        """True if the entry is of the session and the client asked for. The other conditions do not count."""
        return all(getattr(entry.context, name) == value for name, value in self.fields if name in _OF_CLIENT)

    def finds(self, row: bytes) -> bool:
        return self.text is None or contains(row, self.text)


EVERYTHING = EventFilter()


def direction_of(event: AnyEvent) -> str | None:
    """`in` to the server or `out` from it. None: the event is no message, no HTTP head and no delivery."""
    if isinstance(event, HostMessage):
        return "in" if event.direction == _OF_HOST["in"] else "out"
    return next((name for name, kinds in _DIRECTIONS.items() if type(event) in kinds), None)


class RowText:
    """A row in JSON to search for texts, put in lower case once for all of them."""

    def __init__(self, row: bytes) -> None:
        self._row = row

    def has(self, text: str) -> bool:
        if text.isascii():
            if text.encode() in self._lower:
                return True
        elif text in self._lower_text:
            return True
        # This server writes no escapes for printable characters.
        return text in self._read

    @cached_property
    def _lower(self) -> bytes:
        return self._row.lower()

    @cached_property
    def _lower_text(self) -> str:
        return self._row[:_READ_BYTES].decode(errors="ignore").lower()

    @cached_property
    def _read(self) -> str:
        head = self._row[:_READ_BYTES]
        return _without_escapes(head).lower() if b"\\u" in head else ""


def contains(row: bytes, text: str) -> bool:
    """True if a row in JSON contains one text: `RowText.has`."""
    return RowText(row).has(text)


def _without_escapes(row: bytes) -> str:
    return encode(from_json(row, allow_partial="trailing-strings")).decode()


def parse(pairs: Iterable[tuple[str, str]], beside: Iterable[str] = ()) -> EventFilter:
    """Return the filter for the pairs of a query; every condition must hold.

    `beside` are further parameters the reader takes, for the error message. Raises `QueryError`.
    """
    types, fields, given = _ALL, dict[str, str | int](), dict[str, str]()
    for name, value in pairs:
        _check(name, value, given, beside)
        given[name] = value
        if name in _KINDS_OF:
            types &= _KINDS_OF[name](value)
        elif name != "text":
            fields[name] = _number(name, value) if name in _NUMBERS else value
    own = fields.keys() - _CONTEXT
    with_fields = frozenset(kind for kind in types if own <= set(kind.__struct_fields__))
    text = given.get("text")
    lowered = None if text is None else text.lower()
    return EventFilter(with_fields, tuple(sorted(fields.items())), lowered, _OF_HOST.get(given.get("direction", "")))


def _check(name: str, value: str, given: Mapping[str, str], beside: Iterable[str]) -> None:
    if name not in NAMES:
        raise unknown(name, [*NAMES, *beside])
    if name in given:
        raise twice(name)
    if not value:
        raise QueryError(f"{name} is empty; leave it out to have all")


def _kinds(value: str) -> frozenset[type[Event]]:
    found: set[type[Event]] = set()
    for wanted in value.split(","):
        named = {kind for kind in EVENTS if kind.kind == wanted or kind.kind.startswith(f"{wanted}.")}
        if not named:
            known = [kind.kind for kind in EVENTS]
            what = f"known are {', '.join(known)}, and what stands before a dot"
            raise QueryError(f"there is no kind {clip(wanted)!r}; {what}", known)
        found |= named
    return frozenset(found)


def _direction(value: str) -> frozenset[type[Event]]:
    if value not in _DIRECTIONS:
        raise QueryError(f"direction must be in or out, got {clip(value)!r}", _DIRECTIONS)
    return _DIRECTIONS[value]


_KINDS_OF: Mapping[str, Callable[[str], frozenset[type[Event]]]] = MappingProxyType(
    {"kind": _kinds, "direction": _direction}
)


def _number(name: str, value: str) -> int:
    number = whole_number(value)
    if number is None:
        raise QueryError(f"{name} must be a whole number, got {clip(value)!r}")
    return number
