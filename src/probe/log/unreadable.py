"""How the log shows bytes that are no JSON.

They have no members, so a secret is found only by a name before it, such as `token`. Everything behind that name is
hidden. A name that is written with escapes is not found.
"""

from __future__ import annotations

import re
from typing import Final

from ..wire.jsonrpc import MalformedError, clip
from .events import MessageUnreadable, UnreadableFault
from .redaction import REDACTED, SECRET_HEADERS, SECRET_MEMBERS, SESSION_HEADER

SHOWN_BYTES: Final = 2048
"""The bytes kept of the beginning."""

_NAMES: Final = sorted({name.lower() for name in SECRET_MEMBERS | SECRET_HEADERS} | {SESSION_HEADER})
# Longer words are other names: `progressToken` and `tokens` are evidence.
_SECRET: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _NAMES))})(?![\w-])", re.IGNORECASE | re.ASCII)
_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {ord("\\")}


def unreadable(
    fault: UnreadableFault, problem: str, body: bytes, *, size: int | None = None, declared: int | None = None
) -> MessageUnreadable:
    """The fact about a message that begins with `body`. Without a `size` it is the size of `body`."""
    return MessageUnreadable(fault, clip(problem, 300), shown(body), len(body) if size is None else size, declared)


def unreadable_json(error: MalformedError, body: bytes, declared: int | None = None) -> MessageUnreadable:
    """The fact about a whole message refused by `parse`."""
    return unreadable(error.fault or "syntax", str(error), body, declared=declared)


def shown(body: bytes) -> str:
    r"""The beginning of `body` without secrets; bytes that are not printable ASCII, and `\\`, are written as `\xNN`."""
    head = body[:SHOWN_BYTES]
    found = _SECRET.search(head.replace(b"\0", b"").decode("latin-1"))
    if found is None:
        return _escaped(head)
    # In UTF-16 each letter has a zero byte beside it, which shifts the place of the name.
    return _escaped(b"" if b"\0" in head else head[: found.end()]) + REDACTED


def _escaped(head: bytes) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in head)
