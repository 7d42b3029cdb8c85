"""The ids of rooms: signed and dated, so that each replica knows those that another one made.

    6 bytes    the routing key: balancers hash it, and so find the replica of the room
    16 bytes   random
    4 bytes    when it was made, in seconds since 1970
    10 bytes   tag: HMAC-SHA256 of the rest

In URL-safe Base64 these are two segments of the path: `Hb3Qit2o/fQ_1iaaG1GV4fbwPerToDmsKhicd21GTowTeP_DI`. An id is the
secret of its room. The id of the read-only address is made of it by the same key, with the same routing key and length.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from re import ASCII
from re import compile as pattern
from typing import Final

ROUTING: Final = 8
"""The characters that balancers hash; a slash follows."""

SECRET: Final = 40

RANDOM_BYTES: Final = 22

FRESH_S: Final = 60.0
"""An older id opens no room."""

SKEW_S: Final = 60.0
"""The clock of another process may be ahead by so much; if it is behind, that shortens `FRESH_S`."""

_TIME_BYTES = 4
_TAG_BYTES = 10
_FORM = pattern(rf"[A-Za-z0-9_-]{{{ROUTING}}}/[A-Za-z0-9_-]{{{SECRET}}}", ASCII)
_PURPOSE = b"mcp-probe room ids"


class RoomIds:
    """Makes ids with the first of `keys`, and knows those of all; there is at least one."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = [_digest(key, _PURPOSE) for key in keys]

    def make(self, random: bytes, now: float) -> str:
        """A new id; `random` are `RANDOM_BYTES` fresh bytes, `now` is in seconds since 1970."""
        begin = random + int(now).to_bytes(_TIME_BYTES, "big")
        text = _text(begin + _tag(self._keys[0], begin))
        return f"{text[:ROUTING]}/{text[ROUTING:]}"

    def age(self, id: str, now: float) -> float | None:
        """The age of an id in seconds, below 0 by a clock that is ahead; None if none of the keys made it."""
        if not _FORM.fullmatch(id):
            return None
        raw = _raw(id)
        begin, tag = raw[:-_TAG_BYTES], raw[-_TAG_BYTES:]
        known = any(hmac.compare_digest(tag, _tag(key, begin)) for key in self._keys)
        return now - int.from_bytes(begin[RANDOM_BYTES:], "big") if known else None

    def reading(self, id: str) -> str:
        """The id of the read-only address of a room."""
        # By the key that made the id, so that it stays the same after a rotation.
        raw = _raw(id)
        begin, tag = raw[:-_TAG_BYTES], raw[-_TAG_BYTES:]
        key = next(key for key in self._keys if hmac.compare_digest(tag, _tag(key, begin)))
        return f"{id[:ROUTING]}/{_text(_digest(key, raw))[:SECRET]}"


def secret_of(id: str) -> str:
    """The second segment of an id, which is the secret of tool hosts, too."""
    return id.partition("/")[2]


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _tag(key: bytes, begin: bytes) -> bytes:
    return _digest(key, begin)[:_TAG_BYTES]


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _raw(id: str) -> bytes:
    return urlsafe_b64decode(id.replace("/", ""))
