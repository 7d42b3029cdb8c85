"""Rules `cache.*`: how long results are kept (2026-07-28 server/utilities/caching)."""

from __future__ import annotations

from typing import Final, TypeAlias

from ....log.bounded import Newest
from ...projection.listings import LISTS
from ...projection.views import Message, Pipe, Sent, Session
from ..predicate import Predicate, Wait, judges
from .requests import same_request

_CACHEABLE: Final = frozenset({*LISTS, "server/discover", "resources/read", "skills/list", "skills/get"})
# Shorter ones are no reason to keep anything.
_WORTH_KEEPING_S: Final = 10.0
# "At most 2 such repeats in a ttl" is good, "more than 5" is not.
_FEW: Final = 2
_MANY: Final = 5
# A fetch so soon after the end of a ttl was made by its end.
_AT_END_S: Final = 2.0
_AT_ENDS: Final = 5
# Ten gaps between polls that differ by less have no jitter; by more, they have.
_GAPS: Final = 10
_NO_JITTER: Final = 0.01
_JITTER: Final = 0.05
_MOST: Final = 1_000

Key: TypeAlias = tuple[str, bytes]


def _ttl_s(request: Message) -> float | None:
    """How long the answer to a request may be kept; None where it does not say, and for an error."""
    answer = request.answer
    if answer is None or answer.rpc != "response" or b'"ttlMs"' not in answer.raw:
        return None
    ttl = answer.result.get("ttlMs")
    return ttl / 1000 if isinstance(ttl, int) and not isinstance(ttl, bool) else None


class _Fresh:
    """An answer that may be kept, and how often it was asked for again."""

    def __init__(self, request: Message, since: float, ttl_s: float) -> None:
        self.request = request
        self.since = since
        self.ttl_s = ttl_s
        self.repeats = 0


@judges("cache.fresh-kept")
class CacheFreshKept(Predicate):
    """Keeps a list while it is fresh.

    Each process has a cache of its own, and a new one can only be seen by its connection, its pipe or its discovery.
    """

    one_process = True

    def setup(self) -> None:
        self._fresh: Newest[Key, _Fresh] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        if message.method not in _CACHEABLE or not self._fresh:
            return
        if message.method == "server/discover":
            self._forget()
        key = self._key(message)
        fresh = self._fresh.get(key)
        # A request that began before the answer was delivered could not know it.
        if (
            fresh is None
            or self._has_changed(message, fresh)
            or not fresh.since < message.began <= fresh.since + fresh.ttl_s
        ):
            return
        fresh.repeats += 1
        if fresh.repeats > _MANY:
            remark = f"asked {fresh.repeats} times more within a ttl of {fresh.ttl_s:g} s"
            self.warn(message, remark, fresh.request.seq)

    def on_answered(self, request: Message) -> None:
        if request.answer is not None and request.answer.rpc == "error":
            # An error is a reason to look again.
            self._forget()
        if request.method not in _CACHEABLE:
            return
        ttl, key = _ttl_s(request), self._key(request)
        known = self._fresh.get(key)
        if ttl is None or ttl < _WORTH_KEEPING_S:
            return
        if known is None or self.now > known.since + known.ttl_s:
            fresh = _Fresh(request, self.now, ttl)
            self._fresh.store(key, fresh)
            self.give_time(self.now + ttl, self._look, key, fresh, of=request)

    def on_told(self, notification: Sent) -> None:
        if notification.method == "notifications/resources/updated":
            self._forget()

    def on_session(self, session: Session) -> None:
        self._forget()

    def on_pipe(self, pipe: Pipe) -> None:
        self._forget()

    def on_gap(self) -> None:
        self._forget()

    def give_up(self, why: str) -> None:
        # Nothing is owed while an answer is fresh: an end that was not seen is no opportunity.
        for wait in self._waits:
            wait.cancel()
        self._fresh.clear()

    def is_decided_at_end(self, wait: Wait) -> bool:
        # The client did with the answer what it had to do until its end.
        self._look(*wait.arguments)
        return True

    def _forget(self) -> None:
        for key in [key for key, fresh in self._fresh.items() if fresh.request.method != "server/discover"]:
            del self._fresh[key]

    def _has_changed(self, message: Message, fresh: _Fresh) -> bool:
        changed = self.life.lists.changed.get(message.method or "")
        if changed is None or changed < fresh.since:
            return False
        self._forget()
        return True

    def _look(self, key: Key, fresh: _Fresh) -> None:
        if self._fresh.get(key) is not fresh or fresh.repeats == 0:
            return
        if fresh.repeats <= _FEW:
            self.ok(fresh.request)
        elif fresh.repeats <= _MANY:
            self.unclear(fresh.request, f"asked {fresh.repeats} times more within a ttl; a person may have reloaded it")

    def _key(self, message: Message) -> Key:
        connection = message.exchange.connection if message.exchange is not None else None
        return connection or (message.pipe.label if message.pipe is not None else ""), same_request(message)


@judges("cache.no-ttl-polling")
class CacheNoTtlPolling(Predicate):
    """Does not refetch in the background whenever a ttl ends."""

    def setup(self) -> None:
        self._last: tuple[bytes, Message] | None = None
        self._row = 0
        self._since: float | None = None

    def on_request(self, message: Message) -> None:
        if message.method not in _CACHEABLE:
            self._last, self._row = None, 0
            self._stayed(message)
            return
        key = same_request(message)
        before = None if self._last is None or self._last[0] != key else self._last[1]
        ttl = None if before is None else _ttl_s(before)
        self._last = (key, message)
        if before is not None and ttl and 0 <= message.at - (before.answered or message.at) - ttl <= _AT_END_S:
            self._row += 1
            if self._row >= _AT_ENDS:
                remark = f"{self._row} fetches of {message.method} in a row, each at the end of a ttl"
                self.warn(message, remark, before.seq)
        else:
            self._row = 0
        self._stayed(message)

    def on_answered(self, request: Message) -> None:
        if self._since is None and request.method in _CACHEABLE:
            ttl = _ttl_s(request)
            if ttl:
                self._since = self.now + _AT_ENDS * ttl

    def on_gap(self) -> None:
        self._last, self._row, self._since = None, 0, None

    def _stayed(self, message: Message) -> None:
        """A client that has stayed for five ttls could have fetched at the end of each."""
        if self._since is not None and message.at > self._since and self._row == 0:
            self._since = None
            self.ok(message)


@judges("cache.jitter")
class CacheJitter(Predicate):
    """Polls with jitter if it polls. Statistics prove nothing, so it is never a FAIL."""

    def setup(self) -> None:
        self._last: tuple[bytes, Message] | None = None
        self._gaps: list[float] = []

    def on_request(self, message: Message) -> None:
        if message.method not in _CACHEABLE:
            self.on_gap()
            return
        key = same_request(message)
        if self._last is None or self._last[0] != key:
            self._last, self._gaps = (key, message), []
            return
        self._gaps.append(message.began - self._last[1].began)
        self._last = (key, message)
        if len(self._gaps) < _GAPS:
            return
        gaps, self._gaps = self._gaps, []
        mean = sum(gaps) / _GAPS
        spread = (max(gaps) - min(gaps)) / mean if mean > 0 else 0.0
        if spread < _NO_JITTER:
            self.warn(message, f"ten fetches of {message.method}, all {mean:.3g} s apart")
        elif spread > _JITTER:
            self.ok(message)
        else:
            self.unclear(message, f"ten fetches about {mean:.3g} s apart; they differ by {spread:.1%}")

    def on_gap(self) -> None:
        self._last, self._gaps = None, []
