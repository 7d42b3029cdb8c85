"""The rate limit of clients: a token bucket for each, in a table of bounded size.

A bucket holds `burst` tokens and gets `rate` a second. A client whose bucket is full again needs no entry, so
the table only has clients that came lately.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple


class Admission(NamedTuple):
    """`wait_s` is 0 for a client that may come, else when to come again; `first`: it may not, and could just before."""

    wait_s: float
    first: bool


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float
    short: bool = False


class Rates:
    """The buckets of clients by their keys; of more than `most_keys` the one that was away longest starts anew."""

    def __init__(self, rate: float, burst: int, most_keys: int) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most_keys
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        """The number of clients that have an entry."""
        return len(self._buckets)

    def take(self, key: str, now: float) -> Admission:
        """Take a token, if there is one: for who can be sent away."""
        bucket = self._bucket(key, now)
        wait_s = max(0.0, 1 - bucket.tokens) / self._rate
        bucket.tokens -= not wait_s
        return self._verdict(bucket, wait_s)

    def charge(self, key: str, tokens: int, now: float) -> Admission:
        """Take tokens, whether they are there or not: for who is here already, and may have to wait until they are.

        Each such client waits its own turn, where several that looked again would take each other's. The debt is as
        bounded as those are who wait; nobody new gets in meanwhile.
        """
        bucket = self._bucket(key, now)
        bucket.tokens -= tokens
        return self._verdict(bucket, max(0.0, -bucket.tokens) / self._rate)

    def _verdict(self, bucket: _Bucket, wait_s: float) -> Admission:
        first = wait_s > 0 and not bucket.short
        bucket.short = wait_s > 0
        return Admission(wait_s, first)

    def _bucket(self, key: str, now: float) -> _Bucket:
        self._forget_full(now)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        bucket.tokens = self._filled(bucket, now)
        bucket.filled_at = now
        return bucket

    def _filled(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._rate)

    def _forget_full(self, now: float) -> None:
        # At most two for each that comes, so that no request pays for all.
        for key in [*islice(self._buckets, 2)]:
            if self._filled(self._buckets[key], now) >= self._burst:
                del self._buckets[key]
