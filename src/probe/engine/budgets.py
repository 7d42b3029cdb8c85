"""Limits of what clients use together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from ..core.budgets import Shares, has_bytes
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


class _Room:
    """The bytes of one limit for all exchanges of an endpoint."""

    def __init__(self, limit: str, what: str, most: int, shares: AddressShares) -> None:
        self.bytes = 0
        self._limit = limit
        self._what = what
        self._most = most
        self._shares = shares

    def take(self, holder: str | None, recorder: Recorder, size: int, held: int = 0, declared: int = 0) -> None:
        """Count `size` bytes more, of a body or response that has `held` and declared `declared` bytes.

        Raises `Rejection` if there is no room: 503 for all together, 429 for this `holder`.
        """
        if not has_bytes(self._most, self.bytes, size, held, declared):
            recorder.append(LimitReached(self._limit, self._most))
            only = "" if self.bytes + size > self._most else ", and the last eighth of it is for small ones"
            raise busy(f"Too many {self._what}: the limit {self._limit} is {self._most}{only}", _RETRY_S)
        # A single body may be larger than a share, also if it comes in parts.
        if self._shares.held(self._limit, holder) > held:
            self._check_share(holder, recorder, size)
        self._shares.take(self._limit, holder, size)
        self.bytes += size

    def _check_share(self, holder: str | None, recorder: Recorder, size: int) -> None:
        try:
            self._shares.check(self._limit, holder, recorder, size)
        except AddressLimitError as full:
            raise full.rejection() from None

    def give_back(self, holder: str | None, size: int) -> None:
        """Count `size` bytes less."""
        self._shares.give_back(self._limit, holder, size)
        self.bytes -= size


class Unsent(_Room):
    """The bytes of responses that wait for their sockets."""

    def __init__(self, shares: AddressShares) -> None:
        most = shares.total("max_unsent_bytes")
        super().__init__("max_unsent_bytes", "answers wait to be read", most, shares)


class Arriving(_Room):
    """The bytes of request bodies that are not complete."""

    def __init__(self, most: int, shares: AddressShares) -> None:
        super().__init__("max_incoming_bytes", "requests are on their way", most, shares)

    def look(self, holder: str | None, recorder: Recorder, size: int) -> None:
        """Check that there was room for a body of this size, which came in one piece. Raises `Rejection`."""
        if holder is None and has_bytes(self._most, self.bytes, size):
            return
        self.take(holder, recorder, size)
        self.give_back(holder, size)

    @contextmanager
    def counting(self, holder: str | None, recorder: Recorder, declared: int = 0) -> Iterator[Callable[[int], None]]:
        """Count one body while it is read: the block calls the value with the size of each part before it keeps it.

        The value raises `Rejection` if there is no room for a part.
        """
        held = 0

        def count(size: int) -> None:
            nonlocal held
            if size:
                self.take(holder, recorder, size, held, declared)
                held += size

        try:
            yield count
        finally:
            self.give_back(holder, held)


# Some tenths of a millisecond of encoding, for this many bytes or this many small objects.
_TURN_BYTES: Final = 64 * 1024
_OVERHEAD: Final = 1024


class Turns:
    """Counts the work since other tasks ran.

    Of all that share a `lock` one goes on at a time, so that many of them take no more time from others than one.
    """

    def __init__(self, lock: trio.Lock | None = None) -> None:
        self._lock = lock
        self._done = 0

    async def done(self, size: int) -> None:
        """Count work on `size` bytes. Other tasks run now if it was enough."""
        self._done += size + _OVERHEAD
        if self._done > _TURN_BYTES:
            self._done = 0
            if self._lock is None:
                await trio.lowlevel.checkpoint()
            else:
                # A trio lock passes to its waiters in order, and `acquire` is a checkpoint even if the lock is free. So
                # of all that share it, one does a piece in each pass of the scheduler.
                async with self._lock:
                    pass
