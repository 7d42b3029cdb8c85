"""Limits that all clients share, and the largest share of them for one client address (`address_share`).

The code that hands out something acquires a place, and releases it afterwards. A refusal is recorded. It has HTTP
status 503 if all places are taken, and 429 if only those of this address are; both are JSON-RPC errors. For example,
with a limit of 1,000 sessions and an `address_share` of 0.25, one address gets 429 at its 251st session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..core.budgets import Shares
from ..log.context import Recorder
from ..log.events import LimitReached
from ..settings.limits import Limits
from ..wire.errors import Code, McpError, Rejection, busy, too_many
from ..wire.jsonrpc import RequestId

_RETRY_S = 5
_UNSENT: Final = "max_unsent_bytes"


class LimitError(McpError):
    """A limit has no room; the client may try again after `retry_s` seconds."""

    def __init__(self, why: str, retry_s: int = _RETRY_S) -> None:
        super().__init__(Code.BUSY, why)
        self.retry_s = retry_s

    def rejection(self, id: RequestId | None = None) -> Rejection:
        """The refusal of an HTTP request for this limit: 503."""
        return busy(self.message, self.retry_s, id)


class AddressLimitError(LimitError):
    """An address has its full share of a limit; other addresses may still have room."""

    def __init__(self, limit: str, most: int) -> None:
        super().__init__(f"Too many from this address: its share of {limit} is {most} (address_share)")

    def rejection(self, id: RequestId | None = None) -> Rejection:
        """The refusal of an HTTP request for this share: 429."""
        return too_many(self.message, self.retry_s, id)


class AddressShares(Shares):
    """The shares of one engine, by the names of their limits."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.address_share)
        self._limits = limits

    def total(self, limit: str) -> int:
        """The amount of a limit for all clients together."""
        return int(getattr(self._limits, limit))

    def share(self, limit: str) -> int:
        """The amount of a limit for one address."""
        return self.most(self.total(limit))

    def check(self, limit: str, holder: str | None, recorder: Recorder, amount: int = 1) -> None:
        """Raise `AddressLimitError`, and record it, if an address has its full share."""
        if not self.has_room(limit, holder, self.total(limit), amount):
            recorder.append(LimitReached(f"address_share:{limit}", self.share(limit)))
            raise AddressLimitError(limit, self.share(limit))


class Limit:
    """The places of one limit: `most` in all, of which `held` are taken.

    `why` is the message of a refusal, with `{name}` and `{most}` as placeholders. A holder is a client address; None
    has the whole limit as its share. No method waits.
    """

    def __init__(self, name: str, why: str, shares: AddressShares, *, retry_s: int = _RETRY_S) -> None:
        self.name = name
        self.most = shares.total(name)
        self.held = 0
        self._why = why.format(name=name, most=self.most)
        self._shares = shares
        self._retry_s = retry_s

    def full(self, recorder: Recorder) -> LimitError:
        """Record that all places are taken; returns the error for it."""
        recorder.append(LimitReached(self.name, self.most))
        return LimitError(self._why, self._retry_s)

    def check(self, holder: str | None, recorder: Recorder) -> None:
        """Raise `LimitError`, and record it, if no place is free, or none for this holder."""
        if self.held >= self.most:
            raise self.full(recorder)
        self._shares.check(self.name, holder, recorder)

    def take(self, holder: str | None) -> None:
        """Take a place. The caller has checked for it in the same step."""
        self.held += 1
        self._shares.take(self.name, holder)

    def acquire(self, holder: str | None, recorder: Recorder) -> None:
        """Take a place. Raises `LimitError`, and records it, when there is none."""
        self.check(holder, recorder)
        self.take(holder)

    def release(self, holder: str | None) -> None:
        """Give a place back."""
        self.held -= 1
        self._shares.give_back(self.name, holder)

    @contextmanager
    def holding(self, holder: str | None, recorder: Recorder) -> Iterator[None]:
        """Hold a place while the block lasts. Raises `LimitError`, and records it, when there is none."""
        self.acquire(holder, recorder)
        try:
            yield
        finally:
            self.release(holder)


class PipedBytes:
    """The unsent bytes of all connections that carry everything, counted in `max_unsent_bytes`."""

    def __init__(self, shares: AddressShares) -> None:
        self.bytes = 0
        self._shares = shares
        self._most = shares.total(_UNSENT)

    def count(self, holder: str | None, before: int, now: int) -> None:
        """Count `now` bytes of a connection in place of `before`."""
        self.bytes += now - before
        self._shares.take(_UNSENT, holder, now)
        self._shares.give_back(_UNSENT, holder, before)

    def too_many(self, holder: str | None, first: int) -> bool:
        """True if all clients or one address have too many. `first` is the size of a message that may always wait."""
        return self.bytes > self._most or self._shares.held(_UNSENT, holder) - first > self._shares.share(_UNSENT)
