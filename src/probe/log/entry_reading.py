"""Reads one entry of the log back from its JSON: byte for byte as `Entry.encoded` wrote it, ids with their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from pydantic_core import from_json

from ..core.clients import LABEL_RULE, is_client_label
from ..wire.jsonrpc import clip, encode
from .context import Context
from .event_log import Entry
from .events import AnyEvent, Event, UnknownEvent


class MemberError(ValueError):
    """A member is missing, unknown, or not what it must be; the message names it."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The allowed values of a member: JSON of these types; a string one of these words; a list only of `item`."""

    types: frozenset[type]
    words: frozenset[str] = frozenset()
    item: Callable[[Any], bool] | None = None

    def fit(self, value: Any) -> bool:
        """True if a value is allowed."""
        if type(value) is list and self.item is not None and not all(map(self.item, value)):
            return False
        return type(value) in self.types and not (self.words and value not in self.words)


ANY_JSON: Final = Kinds(frozenset({dict, list, str, int, float, bool, NoneType}))


def kinds(hint: Any) -> Kinds:
    """The JSON allowed for a field of this type. For bytes, stored JSON, it is any."""
    if hint is bytes:
        return ANY_JSON
    if get_origin(hint) is Literal:
        return Kinds(frozenset({str}), frozenset(get_args(hint)))
    if get_origin(hint) is tuple:
        return Kinds(frozenset({list}), item=_is_text if get_args(hint)[0] is str else _is_pair)
    types = set(get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,))
    # A float field may have a whole number in the log, such as 5 for 5.0.
    return Kinds(frozenset(types | {int} if float in types else types))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and type(value[0]) is str and type(value[1]) is str


def check(value: Mapping[str, Any], members: Mapping[str, Kinds]) -> None:
    """Raise `MemberError` unless the members are `kind` and these, and each has an allowed value."""
    for name, may_be in members.items():
        if name not in value:
            raise MemberError(f"{name} is missing")
        if not may_be.fit(value[name]):
            raise MemberError(f"{name} cannot be {clip(repr(value[name]))}")
    if unknown := value.keys() - members.keys() - {"kind"}:
        raise MemberError(f"unknown member {clip(min(unknown))!r}")


@dataclass(frozen=True, slots=True)
class _FactShape:
    """How the entries of one kind look.

    `members` are all but `kind`. `written` and `types` are the names and types in the order of `Entry.encoded`, without
    `stored`: that is JSON already and stands last, behind `mark`. `special` are the members with more rules than a
    type, such as a list or a fixed set of words.
    """

    fact: type[Event]
    members: Mapping[str, Kinds]
    written: tuple[str, ...]
    types: tuple[frozenset[type], ...]
    special: tuple[str, ...]
    own: tuple[str, ...]
    stored: str | None
    mark: bytes


_PLACE: Final = {name: kinds(hint) for name, hint in get_type_hints(Entry).items() if name not in ("context", "fact")}
_CONTEXT: Final = {name: kinds(hint) for name, hint in get_type_hints(Context).items()}
# The end of the year 9999, in seconds since the epoch. Later times have no date in some programs, such as Python.
LATEST: Final = 253402300799
_FIRST: Final = ("seq", "at", "mono", "kind", "cause")


def _shape(fact: type[Event]) -> _FactShape:
    hints = get_type_hints(fact)
    own = {name: kinds(hints[name]) for name in fact.__struct_fields__}
    members = {**_PLACE, **_CONTEXT, **own}
    stored = next((name for name in own if hints[name] is bytes), None)
    shown = tuple(name for name in own if name != stored)
    written = (*_FIRST, *_CONTEXT, *shown)
    types = tuple(frozenset({str}) if name == "kind" else members[name].types for name in written)
    special = tuple(name for name in shown if own[name].item is not None or own[name].words)
    return _FactShape(fact, members, written, types, special, shown, stored, b',"%b":' % (stored or "").encode())


_SHAPES: Final[Mapping[str, _FactShape]] = MappingProxyType({fact.kind: _shape(fact) for fact in get_args(Event)})
_SHAPES_BY_BYTES: Final = {kind.encode(): shape for kind, shape in _SHAPES.items()}

_KIND: Final = b'"kind":"'
# Two words or more, such as `http.request`. The other lines of a log have one word, such as `gap`.
_KIND_NAME: Final = re.compile(r"[a-z][a-z_-]*(\.[a-z][a-z_-]*)+")


def as_written(text: bytes) -> Entry | None:
    """The entry of a line as `Entry.encoded` writes it, byte for byte; None for any other line.

    The stored JSON is the last member, and quotation marks inside strings are escaped, so the first mark ends the other
    members. For `{"seq":1,…,"message":{"id":7}}` the mark is `,"message":`. The entry is valid if the part before the
    mark has all other members and the part behind it is JSON. Raises `MemberError` for a time or a label that is
    invalid.
    """
    # Works with offsets: most of a line is a message, and it is copied only once.
    begin = text.find(_KIND) + len(_KIND)
    shape = _SHAPES_BY_BYTES.get(text[begin : text.find(b'"', begin)])
    if shape is None or not text.endswith(b"}"):
        return None
    head, stored = text[:-1], b""
    if shape.stored is not None:
        place = text.find(shape.mark)
        if place < 0:
            return None
        head, stored = text[:place], text[place + len(shape.mark) : -1]
    try:
        value = from_json(head + b"}", allow_inf_nan=False)
        if shape.stored is not None:
            from_json(stored, allow_inf_nan=False)
    except ValueError:
        return None
    return _made(value, shape, stored) if _fits(value, shape) else None


def _fits(value: Any, shape: _FactShape) -> bool:
    """True if the members are the written ones in their order, each with an allowed value."""
    if type(value) is not dict or tuple(value) != shape.written or value["kind"] != shape.fact.kind:
        return False
    # Comparing types without a call takes a quarter of the time of `Kinds.fit`.
    for found, types in zip(value.values(), shape.types, strict=True):
        if type(found) not in types:
            return False
    for name in shape.special:  # noqa: SIM110 - a generator for each entry takes longer than what it does
        if not shape.members[name].fit(value[name]):
            return False
    return True


def entry_of(value: Mapping[str, Any]) -> Entry:
    """The entry of an object with its members in any order. Raises `MemberError`.

    A kind unknown to this version gives an `UnknownEvent`. Its place and context are checked as for other kinds.
    """
    kind = value.get("kind")
    if not isinstance(kind, str) or not _KIND_NAME.fullmatch(kind):
        raise MemberError(f"kind cannot be {clip(repr(kind))}" if "kind" in value else "kind is missing")
    shape = _SHAPES.get(kind)
    if shape is not None:
        check(value, shape.members)
        return _made(value, shape, b"" if shape.stored is None else encode(value[shape.stored]))
    members = {**_PLACE, **_CONTEXT}
    own = {name: part for name, part in value.items() if name not in members and name != "kind"}
    check({name: part for name, part in value.items() if name not in own}, members)
    return _placed(value, UnknownEvent(kind, encode(own)))


def _made(value: Mapping[str, Any], shape: _FactShape, stored: bytes) -> Entry:
    fields = {name: value[name] for name in shape.own}
    for name in shape.special:
        if type(value[name]) is list:
            fields[name] = _frozen(value[name])
    if shape.stored is not None:
        fields[shape.stored] = stored
    return _placed(value, shape.fact(**fields))


def _placed(value: Mapping[str, Any], fact: AnyEvent) -> Entry:
    at, mono = value["at"], value["mono"]
    if not 0 <= at <= LATEST:
        raise MemberError(f"at cannot be {clip(repr(at))}: it is no time between 1970 and 9999")
    if not -LATEST <= mono <= LATEST:
        raise MemberError(f"mono cannot be {clip(repr(mono))}")
    label = value["label"]
    if label is not None and not is_client_label(label):
        raise MemberError(f"label must be {LABEL_RULE}")
    return Entry(value["seq"], at, mono, Context(*map(value.__getitem__, _CONTEXT)), fact, value["cause"])


def _frozen(value: list[Any]) -> tuple[Any, ...]:
    return tuple([tuple(item) if type(item) is list else item for item in value])
