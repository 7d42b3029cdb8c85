"""Input of a WebSocket's peer (RFC 6455): the handshake, the heads of frames, and an incomplete message."""

from __future__ import annotations

from base64 import b64decode
from math import inf
from typing import Final

from wsproto.utilities import generate_accept_token

from ...log.events import Opcode
from .request_head import Headers, RequestHead
from .transport import Incomplete

_VERSION = b"13"
_KEY_BYTES = 16

NOT_VALID = ((b"content-length", b"0"), (b"connection", b"close"), (b"sec-websocket-version", _VERSION))
"""The headers of the answer to a wrong handshake; the last one is the supported version (section 4.4)."""

_NAMES: Final[dict[int, Opcode]] = {
    0x0: "continuation", 0x1: "text", 0x2: "binary", 0x8: "close", 0x9: "ping", 0xA: "pong",
}  # fmt: skip
_CONTINUATION, _LAST_DATA_OPCODE = 0x0, 0x7
_LONG_LENGTHS = {126: 2, 127: 8}
_MASK_BYTES = 4
# The first byte has the opcode, the second one the mask bit and the length, or the size of the length that follows.
_FIRST_BYTES = 2


def is_valid(head: RequestHead) -> bool:
    """True if the handshake is valid by section 4.2.1, and has no body, which would be parsed as frames."""
    keys = _items(head.headers, b"sec-websocket-key")
    bodiless = not _items(head.headers, b"transfer-encoding")
    bodiless = bodiless and set(_items(head.headers, b"content-length")) <= {b"0"}
    version = _items(head.headers, b"sec-websocket-version") == [_VERSION]
    return head.http_version == "1.1" and bodiless and version and len(keys) == 1 and _is_key(keys[0])


def subprotocols(head: RequestHead) -> list[str]:
    """The offers of the client, in its order."""
    return [name.decode("latin-1") for name in _items(head.headers, b"sec-websocket-protocol")]


def accepting(head: RequestHead, subprotocol: str | None) -> Headers:
    """The headers of the 101."""
    key = _items(head.headers, b"sec-websocket-key")[0]
    accepted: Headers = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", generate_accept_token(key)),
    ]
    return [*accepted, (b"sec-websocket-protocol", subprotocol.encode())] if subprotocol else accepted


def _items(headers: Headers, name: bytes) -> list[bytes]:
    return [item.strip() for key, value in headers if key == name for item in value.split(b",")]


def _is_key(value: bytes) -> bool:
    try:
        return len(b64decode(value, validate=True)) == _KEY_BYTES
    except ValueError:
        return False


class FrameHeads:
    """Divides received bytes into frames, and finds the head that would make a message larger than `limit` bytes.

    wsproto finds all other errors of frames, but refuses a large one only when too much of it has come, and without its
    kind. `opcode` and `size` belong to the frame of the last head; `size` is that of its payload in bytes, 0 until the
    head is whole.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._message = 0
        self._head = bytearray()
        self._payload_left = 0
        self.opcode: Opcode = "reserved"
        self.size = 0

    @property
    def too_large(self) -> bool:
        """True if the last head announced too much; the bytes after it must not be used."""
        return self._message > self._limit

    def part_end(self, data: bytes, at: int) -> int:
        """The end of the frame with a part at `at`, of `data`, or of a head that announces too much."""
        if not self._payload_left:
            if not self._head:
                self.opcode, self.size = _NAMES.get(data[at] & 0x0F, "reserved"), 0
            while missing := self._missing():
                if at == len(data):
                    return at
                self._head += data[at : at + missing]
                at = min(at + missing, len(data))
            self._begin_payload()
            if self.too_large:
                return at
        end = min(at + self._payload_left, len(data))
        self._payload_left -= end - at
        return end

    def _missing(self) -> int:
        """The bytes missing from the head; before its second byte is known, only those up to it."""
        head = self._head
        if len(head) < _FIRST_BYTES:
            return _FIRST_BYTES - len(head)
        mask = _MASK_BYTES if head[1] & 0x80 else 0
        return _FIRST_BYTES + _LONG_LENGTHS.get(head[1] & 0x7F, 0) + mask - len(head)

    def _begin_payload(self) -> None:
        opcode, short = self._head[0] & 0x0F, self._head[1] & 0x7F
        more = _LONG_LENGTHS.get(short, 0)
        self.size = self._payload_left = int.from_bytes(self._head[2 : 2 + more]) if more else short
        self._head.clear()
        if opcode <= _LAST_DATA_OPCODE:
            self._message = self.size + (self._message if opcode == _CONTINUATION else 0)


class PartialMessage:
    """The incomplete message of one WebSocket. Its bytes are counted in `incomplete` until it is complete.

    `began_at` is the time of its first part, infinity if there is no message.
    """

    def __init__(self, incomplete: Incomplete, holder: str | None) -> None:
        self.began_at = inf
        self._incomplete = incomplete
        self._holder = holder
        self._parts: list[str | bytes | bytearray] = []
        self._size = 0

    def add(self, part: str | bytes | bytearray, now: float, *, last: bool) -> str:
        """Add a part; returns the reason if the message is too much, else an empty text.

        The last part is never too much.
        """
        size = len(part.encode() if isinstance(part, str) and not part.isascii() else part)
        if not self._size:
            self.began_at = now
        self._size += size
        self._incomplete.take(self._holder, size)
        # A complete message no longer counts as incomplete.
        if not last and (why := self._incomplete.excess(self._holder, self._size)):
            return why
        self._parts.append(part)
        return ""

    def complete(self) -> dict[str, str | bytes | None]:
        """Return `text` and `bytes` of all parts, one of them None, and drop the message."""
        texts = [part for part in self._parts if isinstance(part, str)]
        binary = [part for part in self._parts if not isinstance(part, str)]
        self.forget()
        return {"text": None, "bytes": b"".join(binary)} if binary else {"text": "".join(texts), "bytes": None}

    def wait_from(self, now: float) -> None:
        self.began_at = now if self._size else inf

    def forget(self) -> None:
        self._parts = []
        self._incomplete.give_back(self._holder, self._size)
        self._size, self.began_at = 0, inf
