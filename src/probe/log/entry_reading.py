"""Reads one entry of the log back from its JSON: stored JSON byte for byte as it was, ids with their types.

A struct for each kind has the members of its lines. msgspec checks them and leaves stored JSON, such as a message,
unread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct
from pydantic_core import from_json

from ..core.clients import LABEL_RULE, is_client_label
from ..wire.jsonrpc import clip, encode
from .context import Context
from .event_log import Entry
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

    A kind unknown to this version gives an `UnknownEvent`. Its place and context are checked as for other kinds. Raises
    `MemberError`, and `ValueError` for no JSON.
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
