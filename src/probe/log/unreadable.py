"""Bytes that are no JSON, as the log shows them.

Members cannot be told apart in them, so a secret is known only by the name before it: whatever follows such a name is
hidden, to the end. A name that is written with escapes is not found.
"""

from __future__ import annotations

import re
from typing import Final

from ..wire.jsonrpc import MalformedError, clip
from .events import MessageUnreadable, UnreadableFault
from .redaction import REDACTED, SECRET_HEADERS, SECRET_MEMBERS, SESSION_HEADER

SHOWN_BYTES: Final = 2048
"""So much of the beginning is kept."""

_NAMES: Final = sorted({name.lower() for name in SECRET_MEMBERS | SECRET_HEADERS} | {SESSION_HEADER})
# Longer words are other names: `progressToken` and `tokens` are evidence.
_SECRET: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _NAMES))})(?![\w-])", re.IGNORECASE | re.ASCII)
_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {ord("\\")}


def unreadable(
    fault: UnreadableFault, problem: str, body: bytes, *, size: int | None = None, declared: int | None = None
) -> MessageUnreadable:
    """The fact about a message that begins with `body`. Its `size` is that of `body` unless another one is given."""
    return MessageUnreadable(fault, clip(problem, 300), shown(body), len(body) if size is None else size, declared)


def unreadable_json(error: MalformedError, body: bytes, declared: int | None = None) -> MessageUnreadable:
    """The fact about a whole message that `parse` does not read."""
    return unreadable(error.fault or "syntax", str(error), body, declared=declared)


def shown(body: bytes) -> str:
    r"""The beginning of `body` without secrets; bytes that are not printable ASCII, and `\\`, are written as `\xNN`."""
    head = body[:SHOWN_BYTES]
    found = _SECRET.search(head.replace(b"\0", b"").decode("latin-1"))
    if found is None:
        return _escaped(head)
    # In UTF-16 each letter has a zero beside it, so the place of the name is another one.
    return _escaped(b"" if b"\0" in head else head[: found.end()]) + REDACTED


def _escaped(head: bytes) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in head)
