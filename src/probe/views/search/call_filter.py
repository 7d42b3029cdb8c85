"""The filter of tool calls in the query of a URL, such as `tool=echo&outcome=cancelled` (docs/observation.md).

A filter has two parts. Conditions on fields of a row are data: memory and SQLite use the same ones. Conditions inside
JSON, by a path or a text, are decided here alone, for every reader of rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from pydantic_core import from_json

from ...log.query import QueryError, contains, twice, unknown, whole_number
from ...wire.jsonrpc import clip
from ..records import CallRecord
from ..rows import Era, Transport

Outcome: TypeAlias = Literal[
    "completed",
    "tool_error",
    "protocol_error",
    "cancelled",
    "timed_out",
    "disconnected",
    "input_required",
    # Found at the next start: the server died under it.
    "lost",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""The outcomes of a call."""

RUNNING = "running"
"""In a query: calls without an outcome yet."""

ERAS = get_args(Era)
TRANSPORTS = get_args(Transport)

_STRINGS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in ("run", "tool", "toolset", "session", "label", "revision", "task")},
        "client": "client_name",
    }
)
_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"outcome": (*OUTCOMES, RUNNING), "era": ERAS, "transport": TRANSPORTS}
)
_TIMES: Mapping[str, Operator] = MappingProxyType({"from": ">=", "until": "<"})
_INSIDE = ("arguments", "result")

NAMES = (
    *("tool", "toolset", "outcome", "session", "client", "label", "era", "revision", "transport", "task", "run"),
    *("from", "until", "text"),
)
"""The names of filters, beside those by a path: `arguments.…` and `result.…`."""

PATHS = ("arguments.PATH", "result.PATH")
"""The form of filters by a path, such as `arguments.steps`."""

# Far deeper than accepted JSON (max_json_depth).
_MOST_STEPS = 200
# A record keeps at least this much of a text beyond its limit: 256 bytes, less a part of one character.
_SHORTEST_CUT = 253
# A dot ends a step. A backslash escapes a dot or another backslash.
_STEP = re.compile(r"((?:[^.\\]|\\[.\\])*)(\.|$)")
# RFC 3339 section 5.6. A space in place of the `T` is allowed there as well.
_RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,12}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")

Operator: TypeAlias = Literal["in", ">=", "<"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a field of a row: the field is one of the `values`; or at least, or below, the only value."""

    field: str
    operator: Operator
    values: tuple[str | float | None, ...]

    def holds(self, value: Any) -> bool:
        if self.operator == "in":
            return value in self.values
        bound = self.values[0]
        return bool(value >= bound if self.operator == ">=" else value < bound)


@dataclass(frozen=True, slots=True)
class PathValue:
    """A value inside the arguments or the result: members by name, and places in an array, counted from 0."""

    inside: str
    steps: tuple[str, ...]
    value: Any

    def found_in(self, value: Any) -> bool:
        """False for JSON with only its beginning kept."""
        if _is_cut(value):
            return False
        for step in self.steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and (place := whole_number(step)) is not None and place < len(value):
                value = value[place]
            else:
                return False
        return same(value, self.value)


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Passes rows that meet all `conditions`, have all `paths`, and contain `text` (in lower case)."""

    conditions: tuple[Condition, ...] = ()
    paths: tuple[PathValue, ...] = ()
    text: str | None = None

    @property
    def looks_inside(self) -> bool:
        return bool(self.paths) or self.text is not None

    def matches(self, record: CallRecord) -> bool:
        """JSON is read last, and only for a path or a text."""
        return (
            all(condition.holds(getattr(record, condition.field)) for condition in self.conditions)
            and self._has_values(lambda name: from_json(getattr(record, name) or b"null"))
            and (self.text is None or contains(record.encoded(), self.text))
        )

    def matches_row(self, row: bytes) -> bool:
        fields: Mapping[str, Any] = from_json(row) if self.conditions or self.paths else {}
        return (
            all(condition.holds(fields[condition.field]) for condition in self.conditions)
            and self._has_values(fields.__getitem__)
            and (self.text is None or contains(row, self.text))
        )

    def _has_values(self, read: Callable[[str], Any]) -> bool:
        return all(path.found_in(read(path.inside)) for path in self.paths)


def parse(pairs: Iterable[tuple[str, str]], beside: Iterable[str] = ()) -> CallFilter:
    """The filter in the pairs of a query; a row must meet all of them.

    `beside` are the reader's other parameters, for the message. Raises `QueryError`.
    """
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise twice(name)
        given[name] = value
    named = [(name, value) for name, value in given.items() if name.partition(".")[0] not in _INSIDE]
    for name, value in named:
        _check(name, value, beside)
    conditions = (_condition(name, value) for name, value in named if name != "text")
    paths = (_path(name, value) for name, value in given.items() if name.partition(".")[0] in _INSIDE)
    text = given.get("text")
    return CallFilter(tuple(conditions), tuple(paths), None if text is None else text.lower())


def _check(name: str, value: str, beside: Iterable[str]) -> None:
    if name not in NAMES:
        raise unknown(name, [*NAMES, *PATHS, *beside])
    if not value:
        raise QueryError(f"{name} is empty; leave it out to have all")


def _condition(name: str, value: str) -> Condition:
    if name in _CHOICES:
        chosen = value.split(",")
        return Condition(name, "in", tuple(_chosen(name, each) for each in chosen))
    if name in _TIMES:
        return Condition("started_at", _TIMES[name], (_time(name, value),))
    return Condition(_STRINGS[name], "in", (value,))


def _chosen(name: str, value: str) -> str | None:
    if value not in _CHOICES[name]:
        known = _CHOICES[name]
        why = f"{name} must be among {', '.join(known)}, several with commas; got {clip(value)!r}"
        raise QueryError(why, known)
    return None if (name, value) == ("outcome", RUNNING) else value


def _time(name: str, value: str) -> float:
    if _SECONDS.fullmatch(value):
        return float(value)
    found = _RFC_3339.fullmatch(value)
    if found is not None:
        day, clock, fraction, zone = found.groups()
        try:
            whole = datetime.fromisoformat(f"{day}T{clock}{zone.upper().replace('Z', '+00:00')}").timestamp()
        except (ValueError, OverflowError):
            pass
        else:
            return whole + float(f"0.{fraction or 0}")
    raise QueryError(
        f"{name} must be a time such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00%2B01:00 (a + in a URL is written "
        f"%2B), or seconds since the epoch; got {clip(value)!r}"
    )


def _path(name: str, value: str) -> PathValue:
    inside, _, path = name.partition(".")
    return PathValue(inside, _steps(name, path), _json_or_text(value))


def _steps(name: str, path: str) -> tuple[str, ...]:
    steps: list[str] = []
    at, more = 0, True
    while more:
        found = _STEP.match(path, at)
        if found is None or not found[1] or len(steps) == _MOST_STEPS:
            raise QueryError(
                f"{clip(name)!r} is no path: after {name.partition('.')[0]} come names of members or places in arrays, "
                r"each after a dot; a dot within a name is written \. and a backslash \\"
            )
        steps.append(re.sub(r"\\(.)", r"\1", found[1]))
        at, more = found.end(), bool(found[2])
    return tuple(steps)


def _json_or_text(value: str) -> Any:
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError:
        return value


def _is_cut(value: Any) -> bool:
    """True for what `records.bounded` makes of JSON beyond the limit."""
    if not isinstance(value, dict) or value.keys() != {"cut", "bytes"}:
        return False
    kept, size = value["cut"], value["bytes"]
    return isinstance(kept, str) and isinstance(size, int) and _SHORTEST_CUT <= len(kept.encode()) < size


def same(one: Any, other: Any) -> bool:
    """True if two JSON values are equal: 1 equals 1.0, as JSON has one kind of number; 1 does not equal true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float) and not math.isfinite(one):
        # A number too large for IEEE 754 equals no other: its value is not known.
        return False
    return bool(one == other)
