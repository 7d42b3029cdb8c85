"""Incomplete WebSocket messages: one for each connection, and the bytes of all together."""

from __future__ import annotations

from math import inf

from ...core.budgets import Shares, has_bytes


class Incomplete:
    """The `bytes` of incomplete messages of all WebSockets of a listener, at most `most`."""

    def __init__(self, most: int, share: float) -> None:
        self.bytes = 0
        self._most = most
        self._shares = Shares(share)

    def take(self, holder: str | None, size: int) -> None:
        """Count `size` bytes more of a client, also beyond the limit, since they have come already."""
        self.bytes += size
        self._shares.take("max_incoming_bytes", holder, size)

    def give_back(self, holder: str | None, size: int) -> None:
        """Subtract bytes that are no longer kept."""
        self.bytes -= size
        self._shares.give_back("max_incoming_bytes", holder, size)

    def excess(self, holder: str | None, message: int) -> str:
        """The reason why an incomplete message of `message` bytes is too much; empty if it is not."""
        if not has_bytes(self._most, self.bytes, 0, message):
            return f"more than {self._most} bytes are on their way, 1/8 of it for small ones (max_incoming_bytes)"
        share = self._shares.most(self._most)
        if self._shares.held("max_incoming_bytes", holder) > max(share, message):
            return f"more than {share} bytes of this address are on their way (address_share of max_incoming_bytes)"
        return ""


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
        """Restart its time: until `now` this server did not read."""
        self.began_at = now if self._size else inf

    def forget(self) -> None:
        """Drop the message."""
        self._parts = []
        self._incomplete.give_back(self._holder, self._size)
        self._size, self.began_at = 0, inf
