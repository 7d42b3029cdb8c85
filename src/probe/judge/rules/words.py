"""Forms and words that several groups of rules share."""

from __future__ import annotations

from typing import Any

from ...wire.jsonrpc import RequestId
from ..values import shown


def is_whole(value: Any) -> bool:
    """True for a number with a point that is an integer all the same: some languages have no integers."""
    return isinstance(value, float) and value.is_integer()


def number_or_type(value: Any) -> str:
    """A wrong number as it is, anything else by its type."""
    if value is None:
        return "null"
    if is_whole(value):
        return f"{shown(value)}, a number with a point"
    return repr(value) if isinstance(value, (bool, int, float)) else f"of type {type(value).__name__}"


def numeric(id: str) -> RequestId:
    """The number that a text is, in the way in which JSON has it; else the text."""
    return int(id) if len(id) < 20 and id.isascii() and id.isdecimal() and str(int(id)) == id else id
