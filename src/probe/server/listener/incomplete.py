"""Incomplete WebSocket messages: the one of a connection, and the bytes of all of them."""

from __future__ import annotations

from math import inf

from ...core.budgets import Shares, has_bytes


class Incomplete:
    """The `bytes` of messages of which more is to come, of all WebSockets of a listener: at most `most`."""

    def __init__(self, most: int, share: float) -> None:
        self.bytes = 0
        self._most = most
        self._shares = Shares(share)

    def take(self, holder: str | None, size: int) -> None:
        """Count so many bytes more of what a client has said, also beyond the limit: they are here."""
        self.bytes += size
        self._shares.take("max_incoming_bytes", holder, size)

    def give_back(self, holder: str | None, size: int) -> None:
        """They are here no longer."""
        self.bytes -= size
        self._shares.give_back("max_incoming_bytes", holder, size)

    def excess(self, holder: str | None, message: int) -> str:
        """Why a message of which so many bytes are here is too much; empty if it is not."""
        if not has_bytes(self._most, self.bytes, 0, message):
            return f"more than {self._most} bytes are on their way, 1/8 of it for small ones (max_incoming_bytes)"
        share = self._shares.most(self._most)
        if self._shares.held("max_incoming_bytes", holder) > max(share, message):
            return f"more than {share} bytes of this address are on their way (address_share of max_incoming_bytes)"
        return ""


class PartialMessage:
    """The message of one WebSocket whose parts are coming. Its bytes are counted in `incomplete` until it is complete.

    `began_at` is when its first part came, infinity while there is none.
    """

    def __init__(self, incomplete: Incomplete, holder: str | None) -> None:
        self.began_at = inf
        self._incomplete = incomplete
        self._holder = holder
        self._parts: list[str | bytes | bytearray] = []
        self._size = 0

    def add(self, part: str | bytes | bytearray, now: float, *, last: bool) -> str:
        """Take a part; returns why it is too much, empty if it is not. The last one is never too much."""
        size = len(part.encode() if isinstance(part, str) and not part.isascii() else part)
        if not self._size:
            self.began_at = now
        self._size += size
        self._incomplete.take(self._holder, size)
        # A complete message is on its way no longer.
        if not last and (why := self._incomplete.excess(self._holder, self._size)):
            return why
        self._parts.append(part)
        return ""

    def complete(self) -> dict[str, str | bytes | None]:
        """`text` and `bytes` of all parts, of which one is None. Nothing of the message is kept."""
        texts = [part for part in self._parts if isinstance(part, str)]
        binary = [part for part in self._parts if not isinstance(part, str)]
        self.forget()
        return {"text": None, "bytes": b"".join(binary)} if binary else {"text": "".join(texts), "bytes": None}

    def wait_from(self, now: float) -> None:
        """Count its time from now on: until now it was this server that did not read on."""
        self.began_at = now if self._size else inf

    def forget(self) -> None:
        """Keep nothing of the message."""
        self._parts = []
        self._incomplete.give_back(self._holder, self._size)
        self._size, self.began_at = 0, inf
