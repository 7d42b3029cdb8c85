"""A setting is a field and a row of `table.toml`. Flags, checks and documents are made of both."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

from .validation import SettingError

ENV_PREFIX = "MCP_PROBE_"


@cache
def _rows(owner: str) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """The rows of the table about one class, by the name of the setting, each behind its heading."""
    table = tomllib.loads((files(__package__) / "table.toml").read_text(encoding="utf-8"))
    return {name: (group, row) for group, rows in table[owner].items() for name, row in rows.items()}


def check_bounds(instance: Any) -> None:
    """Raise `SettingError` for a value of an instance outside its bounds."""
    for spec in described(type(instance)):
        value = getattr(instance, spec.name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        # NaN is outside, since every comparison with it is false.
        above = spec.low is None or value >= spec.low
        below = value < math.inf if spec.high is None else value <= spec.high
        if not (above and below):
            bounds = f"at least {spec.low}" if spec.high is None else f"between {spec.low} and {spec.high}"
            raise SettingError(f"{spec.name} must be {bounds} ({spec.unit}), got {value}")


class Described(NamedTuple):
    """One setting as `mcp-probe settings`, the flags and the documentation show it.

    `group` is its heading; `help` is its line in `--help`, empty for none. Every client may read the value of a
    `public` setting. A text is public only if its row has `public`, since it may be a key, or a path of this machine. A
    `fixed` setting has neither flag nor variable.
    """

    name: str
    type: type
    default: Any
    unit: str
    reason: str
    low: float | None
    high: float | None
    public: bool
    group: str
    help: str
    fixed: bool

    @property
    def flag(self) -> str:
        """The command line spelling: `max_sessions` is `--max-sessions`."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment spelling: `max_sessions` is `MCP_PROBE_MAX_SESSIONS`."""
        return ENV_PREFIX + self.name.upper()


def described(owner: type) -> Sequence[Described]:
    """The settings of one class, in order, without nested groups."""
    found: Sequence[Described] = _every(cast("Any", owner))
    return found


@cache
def _every(owner: type) -> Sequence[Described]:
    rows = _rows(owner.__name__)
    found = [(spec, *rows[spec.name]) for spec in fields(owner) if spec.name in rows]
    return tuple(_described(spec, group, **row) for spec, group, row in found)


def _described(
    spec: Field[Any], group: str, *, unit: str, reason: str, help: str = "", public: bool = False, **more: Any
) -> Described:
    is_shown = public or not isinstance(spec.default, str)
    bounds = more.get("low"), more.get("high")
    return Described(
        spec.name,
        type(spec.default),
        spec.default,
        unit,
        reason,
        *bounds,
        is_shown,
        group,
        help,
        more.get("fixed", False),
    )
