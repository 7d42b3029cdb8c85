"""JSON as it is stored: cut, without secrets, and put as it is into the objects that show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..wire.jsonrpc import encode
from . import redaction

MOST_CAPABILITIES: Final = 4096
"""The bytes kept of a client's declared capabilities. Real ones have a few hundred."""


def encode_with(members: Mapping[str, Any], stored: Iterable[tuple[str, bytes]]) -> bytes:
    """An object with at least one member, then the `stored` ones with their JSON as it is."""
    row = encode(members)
    for name, body in stored:
        row = b'%b,"%b":%b}' % (row[:-1], name.encode(), body)
    return row


def bounded(value: Mapping[str, Any], max_bytes: int, body: bytes | None = None) -> bytes:
    """JSON for a call record, with secrets hidden. Of more than `max_bytes` it is `{"cut": BEGINNING, "bytes": SIZE}`.

    `body` is the value's JSON if the caller has it.
    """
    if body is None or redaction.has_secret(value):
        body = encode(redaction.message(value))
    if len(body) <= max_bytes:
        return body
    return encode({"cut": body[:max_bytes].decode(errors="ignore"), "bytes": len(body)})
