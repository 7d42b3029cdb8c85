"""Entries of every kind, with whatever their fields can hold, for Hypothesis."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from probe.log.context import Context
from probe.log.event_log import Entry, Gap
from probe.log.events import Event

_SPACE = st.sampled_from(["", "", "", " ", "  ", "\t"])
# What reads as a member or a line of its own where somebody looks for one carelessly.
_ODD = ['","message":{}', ',"message":', '{"capabilities":1}', '\\"', "\n", "\u2028", "\x85", "é😀", ""]
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(_ODD)
_INTEGERS = st.integers() | st.sampled_from([0, -1, 2**53 + 1, 2**64, -(10**40)])
_TIMES = st.floats(0, 253402300799) | st.sampled_from([0, 1.0, 0.1 + 0.2, 253402300799])
_FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1.0, -0.0, 0.1 + 0.2, 1e300])


def _written(text: str) -> st.SearchStrategy[str]:
    escaped = "".join(f"\\u{unit:04x}" for unit in _units(text))
    return st.sampled_from([json.dumps(text), json.dumps(text, ensure_ascii=False), f'"{escaped}"'])


def _units(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


def _joined(begin: str, end: str) -> Any:
    def join(draw: st.DrawFn, parts: list[str]) -> str:
        inside = ",".join(draw(_SPACE) + part + draw(_SPACE) for part in parts)
        return begin + (inside or draw(_SPACE)) + end

    return join


@st.composite
def _array(draw: st.DrawFn, value: st.SearchStrategy[str]) -> str:
    return str(_joined("[", "]")(draw, draw(st.lists(value, max_size=3))))


@st.composite
def _object(draw: st.DrawFn, value: st.SearchStrategy[str]) -> str:
    names = st.sampled_from(['"message"', '"capabilities"', '"id"', '"id"', '"a"']) | _TEXT.flatmap(_written)
    members = [draw(names) + draw(_SPACE) + ":" + draw(_SPACE) + draw(value) for _ in range(draw(st.integers(0, 3)))]
    return str(_joined("{", "}")(draw, members))


_SCALARS = (
    st.sampled_from(["null", "true", "false", "1.0", "1", "-0", "1e2", "1E+02", "0.10", "12345678901234567890123"])
    | _INTEGERS.map(str)
    | _TEXT.flatmap(_written)
)
RAW_JSON = st.recursive(_SCALARS, lambda inner: _array(inner) | _object(inner), max_leaves=8).map(str.encode)
"""JSON as clients write it: spaces, escapes, members that stand twice, numbers that no float holds."""

_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: _INTEGERS,
    str: _TEXT,
    bool: st.booleans(),
    float: _FLOATS | st.integers(0, 10**6),
    bytes: RAW_JSON,
    type(None): st.none(),
}


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*map(_values, get_args(hint)))
    if get_origin(hint) is tuple:
        item = _TEXT if get_args(hint)[0] is str else st.tuples(_TEXT, _TEXT)
        return st.lists(item, max_size=3).map(tuple)
    return _SIMPLE[hint]


def _events(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: _values(hints[name]) for name in kind.__struct_fields__})


EVENT = st.one_of(*map(_events, get_args(Event)))
_PARTS = {name: _values(hint) for name, hint in get_type_hints(Context).items()}
# A label of another form is refused where a log is read.
CONTEXT = st.builds(Context, **_PARTS | {"label": st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)})


@st.composite
def items(draw: st.DrawFn) -> list[Entry | Gap]:
    """A piece of a log: entries and gaps, in order."""
    made: list[Entry | Gap] = []
    seq = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 6))):
        seq += draw(st.integers(1, 3))
        if draw(st.integers(0, 3)) == 0:
            made.append(Gap(seq, seq := seq + draw(st.integers(0, 5))))
        else:
            cause = draw(st.none() | st.integers(1, seq))
            made.append(Entry(seq, draw(_TIMES), draw(_TIMES), draw(CONTEXT), draw(EVENT), cause))
    return made
