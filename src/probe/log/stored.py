"""JSON as it is stored: cut, without secrets, and put as it is into the objects that show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..wire.jsonrpc import encode
from . import redaction

MOST_CAPABILITIES: Final = 4096
"""Bytes of a client's declared capabilities that are kept; real ones have a few hundred."""


def encode_with(members: Mapping[str, Any], stored: Iterable[tuple[str, bytes]]) -> bytes:
    """An object of at least one member, and behind those the `stored` ones, whose JSON is put in as it is.

    Reading and writing that again would take most of the time of a page.
    """
    row = encode(members)
    for name, body in stored:
        row = b'%b,"%b":%b}' % (row[:-1], name.encode(), body)
    return row


def bounded(value: Mapping[str, Any], max_bytes: int, body: bytes | None = None) -> bytes:
    """JSON as a call record keeps it: whole, or its beginning when it is larger than that; secrets hidden.

    `body` is the value's JSON, where somebody has it already.
    """
    if body is None or redaction.has_secret(value):
        body = encode(redaction.message(value))
    if len(body) <= max_bytes:
        return body
    return encode({"cut": body[:max_bytes].decode(errors="ignore"), "bytes": len(body)})
