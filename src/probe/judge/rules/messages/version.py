"""Rules `version.*`: which revision and era a client speaks."""

from __future__ import annotations

from collections import deque
from typing import Final

from ....log.bounded import Newest
from ....wire.errors import Code
from ....wire.v2026.meta import CLIENT_CAPABILITIES
from ...projection.views import Message, members
from ..manners.requests import same_request
from ..predicate import Predicate, judges

_DISCOVER: Final = "server/discover"
# The time for which an answer of server/discover may be kept where it says nothing about that.
_TTL_S: Final = 60.0
_WINDOW_S: Final = 600.0
_FEWEST_REQUESTS: Final = 10
_FEW_PROBES: Final = 3
_MANY_PROBES: Final = 10
_SPAN_S: Final = 60.0
_AGAIN_S: Final = 60.0
_TOO_OFTEN: Final = 3
_MOST: Final = 200


@judges("version.era-remembered")
class VersionEraRemembered(Predicate):
    """Remembers which era the server speaks.

    A new process knows nothing yet, so only a probe that follows another on the same connection counts, and only while
    the answer to that may still be kept.
    """

    one_process = True
    any_revision = True

    def setup(self) -> None:
        self._requests = 0
        self._began = 0.0
        self._probes = 0
        self._needless: deque[float] = deque(maxlen=_MANY_PROBES + 1)
        self._last: tuple[str, float] | None = None
        self._ttl_s = _TTL_S
        self._is_modern = False
        self._is_told = False

    def on_answered(self, request: Message) -> None:
        if request.era == "modern" and request.answer is not None and request.answer.rpc == "response":
            self._is_modern = True
            ttl = request.answer.result.get("ttlMs") if request.method == _DISCOVER else None
            if isinstance(ttl, (int, float)):
                self._ttl_s = ttl / 1000

    def on_request(self, message: Message) -> None:
        if message.era != "modern" and not (message.method == "initialize" and self._is_modern):
            return
        if not self._requests:
            self._began = message.at
        self._requests += 1
        if message.method in (_DISCOVER, "initialize"):
            self._probe(message)
        elif self._requests >= _FEWEST_REQUESTS and message.at - self._began >= _SPAN_S and not self._is_told:
            self._is_told = True
            if self._probes <= _FEW_PROBES:
                self.ok(message)

    def _probe(self, message: Message) -> None:
        self._probes += 1
        exchange = message.exchange
        place = message.pipe.label if message.pipe is not None else None if exchange is None else exchange.connection
        before, self._last = self._last, None if place is None else (place, message.at)
        if before is None or before[0] != place or message.at - before[1] >= self._ttl_s:
            return
        self._needless.append(message.at)
        often = len(self._needless) > _MANY_PROBES and message.at - self._needless[0] <= _WINDOW_S
        if often and self._requests >= _FEWEST_REQUESTS and self._probes * 2 >= self._requests:
            self.fail(message, f"{self._probes} probes in {self._requests} requests")


@judges("version.missing-capability-learned")
class VersionMissingCapabilityLearned(Predicate):
    """Does not repeat a request the server cannot serve it.

    A model may try a tool once more, so it takes three within a minute.
    """

    def setup(self) -> None:
        self._refused: Newest[bytes, deque[Message]] = Newest(_MOST)
        self._required: Newest[bytes, frozenset[str]] = Newest(_MOST)

    def on_answered(self, request: Message) -> None:
        error = members(request.answer.error) if request.answer is not None else {}
        if error.get("code") != Code.MISSING_CLIENT_CAPABILITY:
            return
        key = same_request(request)
        times = self._refused.get(key)
        if times is None:
            times = deque(maxlen=_TOO_OFTEN)
            required = members(members(error.get("data")).get("requiredCapabilities"))
            self._refused.store(key, times)
            self._required.store(key, frozenset(required))
            self.give_time(request.at + _AGAIN_S, self._look, key, request, of=request)
        times.append(request)
        if len(times) == _TOO_OFTEN and request.at - times[0].at <= _AGAIN_S:
            lacks = ", ".join(sorted(self._required.get(key, ())))
            self.fail(request, f"{request.method} was sent again without {lacks}", *(each.seq for each in times))

    def on_request(self, message: Message) -> None:
        if not self._refused:
            return
        required = self._required.get(same_request(message))
        if required is not None and required <= members(message.meta.get(CLIENT_CAPABILITIES)).keys():
            self.ok(message)

    def _look(self, key: bytes, request: Message) -> None:
        times = self._refused.get(key)
        if times is not None and len(times) < _TOO_OFTEN and self.life.last_act > request.at:
            self.ok(request)
