"""Byte budgets of all HTTP exchanges: incomplete request bodies, and responses that wait for their clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.budgets import has_bytes
from ..log.context import Recorder
from ..log.events import LimitReached
from ..wire.errors import busy
from .shares import AddressLimitError, AddressShares

_RETRY_S = 5


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
