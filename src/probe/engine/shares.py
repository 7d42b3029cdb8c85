"""What one client address may hold of what all clients share (`address_share`)."""

from __future__ import annotations

from ..core.shares import Shares
from ..observe.context import Recorder
from ..observe.events import LimitReached
from ..settings import Limits
from ..wire.errors import Code, McpError, Rejection, too_many
from ..wire.jsonrpc import RequestId

_RETRY_S = 5


class AddressLimitError(McpError):
    """An address holds as much of a limit as one may; others are served."""

    def __init__(self, limit: str, most: int) -> None:
        super().__init__(Code.BUSY, f"Too many from this address: its share of {limit} is {most} (address_share)")

    def rejection(self, id: RequestId | None = None) -> Rejection:
        """The same where an HTTP request is refused: 429."""
        return too_many(self.message, _RETRY_S, id)


class AddressShares(Shares):
    """The shares of one engine, by the names of the limits they are parts of."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.address_share)
        self._limits = limits

    def share(self, limit: str) -> int:
        """How much of a limit one address may hold."""
        return self.most(getattr(self._limits, limit))

    def check(self, limit: str, holder: str | None, recorder: Recorder, amount: int = 1) -> None:
        """Raise `AddressLimitError`, and record it, when an address holds its share already."""
        if not self.has_room(limit, holder, getattr(self._limits, limit), amount):
            recorder.append(LimitReached(f"address_share:{limit}", self.share(limit)))
            raise AddressLimitError(limit, self.share(limit))
