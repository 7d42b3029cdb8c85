"""JSON values as they are read: whatever a client sent may have another type than it should."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..wire.jsonrpc import clip


def members(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def shown(value: Any) -> str:
    """A value as it stands in JSON, clipped: `true`, `"1.0"`, `null`."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    # A half of a surrogate pair is no text that UTF-8 has.
    return clip(text.encode("utf-8", "backslashreplace").decode())


def pointer(*names: str) -> str:
    """The JSON pointer (RFC 6901) of a member, from the names that lead to it."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def covers(hidden: Iterable[tuple[str, str]], place: str) -> bool:
    """Whether the member at a JSON pointer, or one below or above it, is among those that are hidden in the log."""
    return any(path == place or path.startswith(place + "/") or place.startswith(path + "/") for path, _ in hidden)
