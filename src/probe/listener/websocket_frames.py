"""The sizes of a peer's WebSocket messages, from the heads of their frames alone (RFC 6455, section 5.2)."""

from __future__ import annotations

_CONTINUATION, _LAST_DATA_OPCODE = 0x0, 0x7
_LONG_LENGTHS = {126: 2, 127: 8}
_MASK_BYTES = 4


class MessageSizes:
    """Finds the head of the frame that would make a message larger than `limit` bytes.

    wsproto gives out a payload as it comes, so a frame that announces too much would be refused only when too much of
    it has come. Everything else that may be wrong with a frame is found by wsproto. `refused` is the payload size that
    such a head announced.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._message = 0
        self._head = bytearray()
        self._payload_left = 0
        self.refused = 0

    def acceptable(self, data: bytes) -> int:
        """How many bytes of `data` stand before the end of a head that announces too much; all where there is none."""
        at = 0
        while at < len(data):
            if self._payload_left:
                step = min(self._payload_left, len(data) - at)
                self._payload_left -= step
                at += step
                continue
            self._head.append(data[at])
            at += 1
            if self._is_whole() and not self._begin_frame():
                return at - 1
        return at

    def _is_whole(self) -> bool:
        return len(self._head) >= 2 and len(self._head) == self._head_bytes()

    def _head_bytes(self) -> int:
        masked = self._head[1] & 0x80
        return 2 + _LONG_LENGTHS.get(self._head[1] & 0x7F, 0) + (_MASK_BYTES if masked else 0)

    def _begin_frame(self) -> bool:
        """Take a whole head; whether its message is still small enough."""
        opcode, short = self._head[0] & 0x0F, self._head[1] & 0x7F
        more = _LONG_LENGTHS.get(short, 0)
        size = int.from_bytes(self._head[2 : 2 + more]) if more else short
        self._head.clear()
        self._payload_left = size
        if opcode <= _LAST_DATA_OPCODE:
            self._message = size + (self._message if opcode == _CONTINUATION else 0)
        if self._message > self._limit:
            self.refused = size
        return self._message <= self._limit
