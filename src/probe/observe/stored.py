"""Objects whose members are in part JSON already: reading and writing that again would take most of a page's time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..wire.jsonrpc import encode


def encode_with(members: Mapping[str, Any], stored: Iterable[tuple[str, bytes]]) -> bytes:
    """An object of at least one member, and behind those the `stored` ones, whose JSON is put in as it is."""
    row = encode(members)
    for name, body in stored:
        row = b'%b,"%b":%b}' % (row[:-1], name.encode(), body)
    return row
