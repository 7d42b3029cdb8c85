"""JSON values as they are read: whatever a client sent may have another type than it should."""

from __future__ import annotations

import json
from typing import Any

from ..wire.jsonrpc import clip


def shown(value: Any) -> str:
    """A value as it stands in JSON, clipped: `true`, `"1.0"`, `null`."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    # A half of a surrogate pair is no text that UTF-8 has.
    return clip(text.encode("utf-8", "backslashreplace").decode())


def pointer(*names: str) -> str:
    """The JSON pointer (RFC 6901) of a member, from the names that lead to it."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)
