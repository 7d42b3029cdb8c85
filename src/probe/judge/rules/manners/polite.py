"""Rules `polite.*`: rates, repeats and reconnects."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median
from typing import Any, Final

from ....log.bounded import Newest
from ...projection.listings import CHANGES, LISTS
from ...projection.views import Control, Exchange, Message, Pipe, Scope, Sent, ServerStream, Session, members
from ..predicate import Predicate, Wait, judges
from .requests import same_body, same_request

_MOST: Final = 1_000
# RFC 9110 section 15.5: these answers are about the request itself, so the same one gets the same answer.
_FOR_GOOD: Final = frozenset({400, 404, 405, 406, 413, 415})
_WINDOW_S: Final = 60.0
_FEW_REFUSALS: Final = 5
_MANY_REFUSALS: Final = 20
# "5 or more attempts" are an opportunity; "more than 30 within 30 s" are too many.
_ATTEMPTS: Final = 5
_MANY_ATTEMPTS: Final = 30
_ATTEMPTS_S: Final = 30.0
# With a second between attempts nobody is flooded.
_CALM_S: Final = 1.0
# Gaps that grow less are those of a clock that is not exact.
_GROWTH: Final = 1.5
# A list a minute each for six lists is calm, one every two seconds is polling.
_SOME_LISTS: Final = 3
_FEW_LISTS: Final = 6
_MANY_LISTS: Final = 30
# "Nobody types at 20 keys a second for long."
_KEYS: Final = 10
_FEW_KEYS: Final = 5
_TYPED_S: Final = 0.05
# At most 50 requests a second over 10 s are calm, more than 500 are a flood.
_RATE_S: Final = 10.0
_CALM: Final = 500
_FLOOD: Final = 5_000
_SOME: Final = 10


class _Refused:
    """A request that was refused for good: when it was within the last minute, and since when that is watched."""

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=_MANY_REFUSALS + 1)
        self.is_watched = False


@judges("polite.refused-not-hammered")
class PoliteRefusedNotHammered(Predicate):
    """Does not repeat what was refused for good. Equal are requests with the same bytes but for the id."""

    def setup(self) -> None:
        self._refused: Newest[tuple[Any, ...], _Refused] = Newest(_MOST)

    def on_response(self, exchange: Exchange) -> None:
        if exchange.status not in _FOR_GOOD or not exchange.is_endpoint or exchange.hidden:
            return
        if any(message.hidden for message in exchange.messages):
            return
        bodies = tuple(same_body(message) for message in exchange.messages)
        key = (exchange.method, exchange.path, exchange.query, exchange.status, *bodies)
        refused = self._refused.get(key)
        if refused is None:
            refused = _Refused()
            self._refused.store(key, refused)
        refused.times.append(self.now)
        if not refused.is_watched:
            refused.is_watched = True
            self.give_time(self.now + _WINDOW_S, self._look, exchange, refused, of=exchange)
        if len(refused.times) > _MANY_REFUSALS and self.now - refused.times[0] <= _WINDOW_S:
            refused.times.clear()
            remark = f"{_MANY_REFUSALS + 1} equal requests within {_WINDOW_S:g} s, each answered {exchange.status}"
            self.warn(exchange, remark, exchange.response_seq or exchange.seq)

    def is_decided_at_end(self, wait: Wait) -> bool:
        exchange, refused = wait.arguments
        restless = len(refused.times) > _FEW_REFUSALS
        if restless:
            self._look(exchange, refused)
        return restless or not refused.times

    def _look(self, exchange: Exchange, refused: _Refused) -> None:
        refused.is_watched = False
        count = len(refused.times)
        if 0 < count <= _FEW_REFUSALS:
            self.ok(exchange)
        elif count:
            self.unclear(exchange, f"{count} equal requests within {_WINDOW_S:g} s; a person may press retry")
        refused.times.clear()


@judges("polite.reconnect-rate")
class PoliteReconnectRate(Predicate):
    """Backs off when it reconnects.

    An attempt is a GET, an initialize, or a new WebSocket or process. A stream that was closed with a `retry` says when
    to come back, and what was refused for good is judged by `polite.refused-not-hammered`.
    """

    one_process = True

    def setup(self) -> None:
        self._times: deque[float] = deque(maxlen=_MANY_ATTEMPTS + 1)
        self._failed = False

    def on_exchange(self, exchange: Exchange) -> None:
        if exchange.method == "GET" and exchange.is_endpoint:
            self._attempt(exchange)

    def on_request(self, message: Message) -> None:
        if message.method == "initialize" and message.pipe is None:
            self._attempt(message)

    def on_pipe(self, pipe: Pipe) -> None:
        self._attempt(pipe)

    def on_response(self, exchange: Exchange) -> None:
        if exchange.status in _FOR_GOOD or exchange.is_limited:
            self._times.clear()
            self._failed = False
        elif exchange.status is not None and exchange.status >= 400:
            self._failed = True

    def on_left(self, exchange: Exchange) -> None:
        if exchange.status is None or (exchange.method == "GET" and exchange.is_endpoint):
            self._failed = True

    def on_pipe_end(self, pipe: Pipe) -> None:
        self._failed = True

    def on_control(self, stream: ServerStream, exchange: Exchange, control: Control) -> None:
        if control.retry_ms is not None:
            self._times.clear()

    def on_answered(self, request: Message) -> None:
        # Any answered request is a success.
        self._done()

    def on_told(self, notification: Sent) -> None:
        self._done()

    def on_gap(self) -> None:
        self._times.clear()
        self._failed = False

    def _attempt(self, of: Exchange | Message | Pipe) -> None:
        if not self._failed:
            return
        self._failed = False
        self._times.append(self.now)
        if len(self._times) > _MANY_ATTEMPTS and self.now - self._times[0] <= _ATTEMPTS_S:
            self._times.clear()
            self.warn(of, f"{_MANY_ATTEMPTS + 1} attempts to connect within {_ATTEMPTS_S:g} s")
        elif len(self._times) == _ATTEMPTS:
            gaps = [later - sooner for sooner, later in pairwise(self._times)]
            grow = gaps == sorted(gaps) and gaps[-1] >= _GROWTH * gaps[0]
            if sum(gaps) / len(gaps) >= _CALM_S or grow:
                self.ok(of)

    def _done(self) -> None:
        if self._times:
            self._times.clear()
        self._failed = False


class _ListRequests:
    """How often a list was asked for in the last minute."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.times: deque[float] = deque(maxlen=_MANY_LISTS + 1)
        self.count = 0


@judges("polite.no-list-polling")
class PoliteNoListPolling(Predicate):
    """Does not ask for lists again and again.

    Most clients list once a turn, and a turn has calls. `cache.fresh-kept` judges lists that may be kept for a time.
    """

    methods = frozenset({*LISTS, *CHANGES, "tools/call", "resources/read", "prompts/get", "completion/complete"})
    one_process = True

    def setup(self) -> None:
        self._asked: Newest[tuple[Scope, bytes], _ListRequests] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        if message.method not in LISTS:
            self._asked.clear()
            return
        if message.era == "modern":
            # There the answers say how long they may be kept.
            return
        key = (message.scope, same_request(message))
        asked = self._asked.get(key)
        if asked is None:
            asked = _ListRequests(message)
            self._asked.store(key, asked)
            self.give_time(message.at + _WINDOW_S, self._look, key, asked, of=message)
        asked.count += 1
        asked.times.append(message.at)
        if len(asked.times) > _MANY_LISTS and message.at - asked.times[0] <= _WINDOW_S:
            self.warn(message, f"{_MANY_LISTS + 1} times {message.method} within {_WINDOW_S:g} s", asked.message.seq)

    def on_told(self, notification: Sent) -> None:
        self._asked.clear()

    def on_session(self, session: Session) -> None:
        self._asked.clear()

    def on_gap(self) -> None:
        self._asked.clear()

    def give_up(self, why: str) -> None:
        # A minute that was not seen whole is no opportunity.
        for wait in self._waits:
            wait.cancel()
        self._asked.clear()

    def is_decided_at_end(self, wait: Wait) -> bool:
        key, asked = wait.arguments
        if asked.count > _FEW_LISTS:
            self._look(key, asked)
        # A minute that was not seen whole is no opportunity.
        return True

    def _look(self, key: tuple[Scope, bytes], asked: _ListRequests) -> None:
        if self._asked.get(key) is not asked:
            return
        if _SOME_LISTS <= asked.count <= _FEW_LISTS:
            self.ok(asked.message)
        elif asked.count > _FEW_LISTS:
            self.unclear(asked.message, f"{asked.count} times {asked.message.method} within {_WINDOW_S:g} s")
        del self._asked[key]


@judges("polite.completion-debounced")
class PoliteCompletionDebounced(Predicate):
    """Debounces completions."""

    methods = frozenset({"completion/complete"})

    def setup(self) -> None:
        self._count = 0
        self._last: tuple[Any, str, float] | None = None
        self._gaps: list[float] = []

    def on_request(self, message: Message) -> None:
        argument = members(message.params.get("argument"))
        value, what = argument.get("value"), (message.scope, message.params.get("ref"), argument.get("name"))
        if not isinstance(value, str) or message.hides("/params/argument"):
            return
        self._count += 1
        last, self._last = self._last, (what, value, message.began)
        grows = last is not None and last[0] == what and len(value) == len(last[1]) + 1 and value.startswith(last[1])
        if not grows or last is None:
            self._gaps = []
        else:
            self._gaps = [*self._gaps[-2 * _KEYS :], message.began - last[2]]
        if len(self._gaps) >= _KEYS - 1 and median(self._gaps) < _TYPED_S:
            remark = f"{len(self._gaps) + 1} completions in a row, {median(self._gaps) * 1000:.0f} ms apart"
            self._gaps = []
            self.warn(message, remark)
        elif self._count >= _FEW_KEYS and (not self._gaps or median(self._gaps) >= _TYPED_S):
            self.ok(message)


@judges("polite.call-rate")
class PoliteCallRate(Predicate):
    """Does not flood. A load test does, so it is a remark."""

    def setup(self) -> None:
        self._begin = float("-inf")
        self._count = 0
        self._total = 0
        self._most = 0

    def on_request(self, message: Message) -> None:
        self._total += 1
        if message.at - self._begin > _RATE_S:
            self._end(message)
            self._begin, self._count = message.at, 0
        self._count += 1
        if self._count == _FLOOD + 1:
            self.warn(message, f"more than {_FLOOD / _RATE_S:g} requests a second over {_RATE_S:g} s")
        elif self._total == _SOME:
            self.ok(message)

    def _end(self, message: Message) -> None:
        """Ten seconds are over."""
        if self._count > self._most:
            self._most = self._count
            self.measure("most requests in 10 s", self._most)
        if _CALM < self._count <= _FLOOD:
            self.unclear(message, f"{self._count / _RATE_S:g} requests a second over {_RATE_S:g} s")
