"""A setting is a field and a row of `table.toml`. Flags, checks and documents are made of both.

Each check raises `SettingError`; the message is the one line for the operator.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from importlib.resources import files
from ipaddress import AddressValueError, IPv6Address
from typing import Any, Final, NamedTuple, TypeAlias, cast

HOST: Final = r"\[[0-9a-f:.]+\]|[a-z0-9._-]+"
"""RFC 3986 section 3.2.2, in lower case. Headers are read by it, too: what a setting may name can be met there."""

ANY_ADDRESS: Final = frozenset({"0.0.0.0", "[::]"})
"""The wildcard addresses; they name no host."""

_SHORTEST_SECRET = 16
_HIGHEST_PORT = 65535
_ORIGIN = re.compile(rf"https?://(?P<host>{HOST})(?::(?P<port>[1-9][0-9]{{0,4}}))?")
_URL = re.compile(r"(?P<origin>[^/]+://[^/]+)(?:/[A-Za-z0-9._~-]+)*/?")
_ONE_HOST = re.compile(HOST)

_Faults: TypeAlias = Sequence[tuple[re.Pattern[str], str]]

# Usual mistakes, and the text for each; the first that matches is shown.
_ORIGIN_FAULTS: _Faults = (
    (re.compile(r"[\s;]"), "several are separated by commas"),
    (re.compile(r"\*"), "there are no wildcards, each origin is named"),
    (re.compile(r"^null$"), "every sandboxed page is `null`, whoever made it"),
    (re.compile(r"^(?!.*://)"), "it has no scheme"),
    (re.compile(r"[A-Z]"), "it is written in lower case"),
    (re.compile(r"^(?!https?://)"), "the scheme of a page is http or https"),
    (re.compile(r"://.*[/?#@]"), "it is scheme, host and port alone, without a path or a slash at the end"),
    (re.compile(r"[^\x00-\x7f]"), "browsers send the ASCII form of such a name, xn--"),
    # RFC 6454 section 6.2: an origin has no default port.
    (re.compile(r"^http:.*:80$|^https:.*:443$"), "browsers leave out the default port of a scheme"),
)
_HOST_FAULTS: _Faults = (
    (re.compile(r"[\s;]"), "several are separated by commas"),
    (re.compile(r"\*"), "there are no wildcards, each host is named"),
    (re.compile(r"://"), "it is named without a scheme"),
    (re.compile(r"[/?#@]"), "it is the host alone, without a path or a user"),
    (re.compile(r"[^\x00-\x7f]"), "clients send the ASCII form of such a name, xn--"),
    (re.compile(r"^[^\[]*:.*:"), "an IPv6 address stands in brackets"),
    (re.compile(r"^(\[.*\]|[^\[\]]*):[0-9]*$"), "it is named without a port, and served on each"),
)


class SettingError(ValueError):
    """The message names the setting, the allowed values and the given one."""


def check_url(name: str, value: str) -> None:
    """Check the beginning of links, such as https://a.example/probe; an empty value passes."""
    parts = _URL.fullmatch(value)
    if value and (parts is None or not _is_origin(parts["origin"].lower())):
        raise SettingError(f"{name} must be http://host[:port][/path] or https://host[:port][/path], got {value!r}")


def check_origins(name: str, value: str) -> None:
    """Origins as browsers send them (RFC 6454 section 6.2), comma separated."""
    for origin in _listed(value):
        fault = _first(_ORIGIN_FAULTS, origin) or ("" if _is_origin(origin) else "its host or port is malformed")
        if fault:
            raise SettingError(
                f"{name} must each be http://host[:port] or https://host[:port], got {origin!r}: {fault}"
            )


def check_hosts(name: str, value: str) -> None:
    """Hosts as the Host header has them, whatever their case, without the port; comma separated."""
    for host in _listed(value):
        fault = _first(_HOST_FAULTS, host) or _fault_of_host(host.lower())
        if fault:
            raise SettingError(f"{name} must each be a host name or an address ([::1] for IPv6), got {host!r}: {fault}")


def _listed(value: str) -> list[str]:
    return [name for text in value.split(",") if (name := text.strip())]


def _first(faults: _Faults, text: str) -> str:
    return next((fault for pattern, fault in faults if pattern.search(text)), "")


def _fault_of_host(host: str) -> str:
    if host in ANY_ADDRESS:
        return "that is every address of the machine, and nobody's name"
    return "" if _is_host(host) else "that is neither"


def _is_origin(text: str) -> bool:
    parts = _ORIGIN.fullmatch(text)
    return parts is not None and _is_host(parts["host"]) and int(parts["port"] or 0) <= _HIGHEST_PORT


def _is_host(text: str) -> bool:
    known = _ONE_HOST.fullmatch(text) is not None
    return known and (not text.startswith("[") or _is_ipv6(text[1:-1]))


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def check_secret(name: str, value: str) -> None:
    """Check for at least 16 characters that a header can carry; an empty value passes."""
    # It is sent in an HTTP header, and it alone keeps strangers from offering tools.
    if value and not (len(value) >= _SHORTEST_SECRET and value.isascii() and value.isprintable() and " " not in value):
        raise SettingError(f"{name} must be at least {_SHORTEST_SECRET} visible ASCII characters")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        hint = did_you_mean(value, choices)
        raise SettingError(f"{name} must be one of {', '.join(choices)}, got {value!r}{hint}")


def check_order(lower: str, low: float, upper: str, high: float) -> None:
    """Check that one setting is not above the other."""
    if low > high:
        raise SettingError(f"{lower} must be at most {upper}, got {low} and {high}")


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: `; did you mean serve?`, or an empty text."""
    near = difflib.get_close_matches(wanted, dict.fromkeys(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def for_large(most: int) -> int:
    """The part of a limit in bytes that large items may use; the rest is for small ones (`core/budgets.py`)."""
    return most - most // 8


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

    `group` is its heading; `help` is its line in `--help`. Every client may read the value of a `public` setting. A
    text is public only if its row has `public`: it may be a key, or a path of this machine. A `fixed` setting has
    neither flag nor variable.
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
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
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
