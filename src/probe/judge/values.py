"""JSON values as they are read: whatever a client sent may have another type than it should."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..wire.jsonrpc import clip


def members(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def shown(value: Any) -> str:
    """A JSON value as remarks say it, clipped."""
    return "null" if value is None else clip(repr(value))


def pointer(*names: str) -> str:
    """The JSON pointer (RFC 6901) of a member, from the names that lead to it."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def covers(hidden: Iterable[tuple[str, str]], place: str) -> bool:
    """Whether the member at a JSON pointer, or one below or above it, is among those that are hidden in the log."""
    return any(path == place or path.startswith(place + "/") or place.startswith(path + "/") for path, _ in hidden)
