"""JSON values as they are read and shown; those of a client may have any type."""

from __future__ import annotations

import json
from typing import Any

from ..wire.jsonrpc import RequestId, clip


def shown(value: Any) -> str:
    """A value as it stands in JSON, clipped: `true`, `"1.0"`, `null`."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    # A half of a surrogate pair is no text that UTF-8 has.
    return clip(text.encode("utf-8", "backslashreplace").decode())


def pointer(*names: str) -> str:
    """The JSON pointer (RFC 6901) of a member, from the names that lead to it."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def is_whole(value: Any) -> bool:
    """True for a number with a point that is an integer all the same: some languages have no integers."""
    return isinstance(value, float) and value.is_integer()


def number_or_type(value: Any) -> str:
    """A wrong number, `true`, `false` or `null` as it is, anything else by its type in JSON."""
    if is_whole(value):
        return f"{shown(value)}, a number with a point"
    if isinstance(value, dict):
        return "of type object"
    if isinstance(value, list):
        return "of type array"
    return "of type string" if isinstance(value, str) else shown(value)


def numeric(id: str) -> RequestId:
    """The number that a text is, in the way in which JSON has it; else the text."""
    return int(id) if len(id) < 20 and id.isascii() and id.isdecimal() and str(int(id)) == id else id
