"""A setting is a field with its unit, its reason and its bounds, from which flags and documents are made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import MISSING, Field, field, fields
from typing import Any, NamedTuple

from .validation import SettingError

ENV_PREFIX = "MCP_PROBE_"


def setting(
    default: Any,
    *,
    unit: str,
    reason: str,
    low: float | None = None,
    high: float | None = None,
    public: bool = False,
    begins: str = "",
    help: str = "",
    fixed: bool = False,
) -> Any:
    """A field. `begins` is the heading of the group that starts here; `help` is for those that `--help` shows.

    A `fixed` one is set by no flag and no variable: nobody who runs a server needs another value, only its tests do.
    """
    meta = {"unit": unit, "reason": reason, "low": low, "high": high, "public": public, "begins": begins, "help": help}
    return field(default=default, metadata={**meta, "fixed": fixed})


def check_bounds(instance: Any) -> None:
    """Raise `SettingError` for a value of an instance that is outside its bounds."""
    for spec in described(type(instance)):
        value = getattr(instance, spec.name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        # Written so that NaN, which compares false with everything, is outside.
        above = spec.low is None or value >= spec.low
        below = value < math.inf if spec.high is None else value <= spec.high
        if not (above and below):
            bounds = f"at least {spec.low}" if spec.high is None else f"between {spec.low} and {spec.high}"
            raise SettingError(f"{spec.name} must be {bounds} ({spec.unit}), got {value}")


class Described(NamedTuple):
    """One setting as `mcp-probe settings`, the flags and the documentation show it.

    `group` is the heading that it stands under; `help` is its line in `--help`, empty for one that is not shown there.
    The value of a `public` one may be shown to whoever can reach the server. A text is not unless it says so: it may be
    a key, or a path of this machine. A `fixed` one has neither flag nor variable.
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


def _described(spec: Field[Any], group: str) -> Described:
    meta = spec.metadata
    default = None if spec.default is MISSING else spec.default
    public = meta["public"] or not isinstance(default, str)
    bounds = meta["low"], meta["high"]
    shown = meta["unit"], meta["reason"], *bounds, public, group, meta["help"], meta["fixed"]
    return Described(spec.name, type(default), default, *shown)


def described(owner: type) -> Iterator[Described]:
    """The settings of one class, in order, without nested groups."""
    group = ""
    for spec in fields(owner):
        if spec.metadata:
            group = spec.metadata["begins"] or group
            yield _described(spec, group)
