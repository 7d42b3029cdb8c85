"""The bytes of incomplete WebSocket messages, over all connections of a listener."""

from __future__ import annotations

from ..core.shares import Shares, has_bytes


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
