"""The frames of a WebSocket's peer, from their heads alone (RFC 6455, section 5.2)."""

from __future__ import annotations

from typing import Final

from ...log.events import Opcode

_NAMES: Final[dict[int, Opcode]] = {
    0x0: "continuation", 0x1: "text", 0x2: "binary", 0x8: "close", 0x9: "ping", 0xA: "pong",
}  # fmt: skip
_CONTINUATION, _LAST_DATA_OPCODE = 0x0, 0x7
_LONG_LENGTHS = {126: 2, 127: 8}
_MASK_BYTES = 4
# The first byte has the opcode, the second one the mask bit and the length, or the size of the length that follows.
_FIRST_BYTES = 2


class FrameHeads:
    """Divides received bytes into frames, and finds the head that would make a message larger than `limit` bytes.

    wsproto returns a payload in pieces, so it would refuse a frame that is too large only when too much of it has come;
    nor does it return the kind of a refused frame. wsproto finds all other errors of frames. `opcode` and `size` belong
    to the frame of the last head; `size` is that of its payload in bytes, 0 until the head is whole.
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
        """Whether the last head announced too much; the bytes after it must not be used."""
        return self._message > self._limit

    def part_end(self, data: bytes, at: int) -> int:
        """The end of the frame with a part at `at`, or the end of `data` if that comes first.

        A head that announces too much is an end too.
        """
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
