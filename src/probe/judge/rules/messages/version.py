"""Rules `version.*`: which revision and era a client speaks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ....views.retention import members
from ....views.values import Message
from ....wire.errors import Code
from ....wire.v2026.meta import CLIENT_CAPABILITIES
from ...trace.findings import FAIL, PASS, Finding
from ...trace.opportunities import ANSWERED, REQUEST
from ...trace.rules import rule
from ...trace.trace import Trace

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


@dataclass
class _Probing:
    """How often a client probed, and when it did so needlessly."""

    began: float
    requests: int = 0
    probes: int = 0
    last: Message | None = None
    needless: deque[float] = field(default_factory=lambda: deque(maxlen=_MANY_PROBES + 1))
    is_judged: bool = False


def _is_modern(request: Message) -> bool:
    return request.era == "modern" and request.answer is not None and request.answer.rpc == "response"


@rule("version.era-remembered", each=REQUEST, any_revision=True, one_process=True)
def remembers_era(request: Message, trace: Trace) -> Finding | None:
    """Remembers which era the server speaks.

    A new process knows nothing yet, so only a probe that follows another on the same connection counts, and only while
    the answer to that may still be kept.
    """
    at, method = request.at, request.method
    is_back = method == "initialize" and trace.seen.first(ANSWERED, None, _is_modern, until=at) is not None
    if request.era != "modern" and not is_back:
        return None
    known = trace.kept(lambda: _Probing(at))
    known.requests += 1
    if method in (_DISCOVER, "initialize"):
        return _probes(request, known, trace)
    if known.is_judged or known.requests < _FEWEST_REQUESTS or at - known.began < _SPAN_S:
        return None
    known.is_judged = True
    return PASS() if known.probes <= _FEW_PROBES else None


def _probes(request: Message, known: _Probing, trace: Trace) -> Finding | None:
    at, before, known.last = request.at, known.last, request
    known.probes += 1
    told = trace.seen.last(ANSWERED, _DISCOVER, until=at)
    page = None if told is None else trace.seen.page(told)
    ttl_s = _TTL_S if page is None or page.ttl_ms is None else page.ttl_ms / 1000
    if before is None or before.place is None or before.place is not request.place or at - before.at >= ttl_s:
        return None
    known.needless.append(at)
    often = len(known.needless) > _MANY_PROBES and at - known.needless[0] <= _WINDOW_S
    if not often or known.requests < _FEWEST_REQUESTS or known.probes * 2 < known.requests:
        return None
    return FAIL(f"{known.probes} probes in {known.requests} requests")


@rule("version.missing-capability-learned", each=ANSWERED)
def learns_capability(request: Message, trace: Trace) -> Finding | None:
    """Does not repeat a request the server cannot serve it.

    A model may try a tool once more, so it takes three within a minute.
    """
    had = trace.at
    if trace.seen.error_of(request) != Code.MISSING_CLIENT_CAPABILITY:
        return None
    before = trace.seen.equal(request, None).between(had - _AGAIN_S, had, _TOO_OFTEN)[1 - _TOO_OFTEN :]
    if len(before) + 1 >= _TOO_OFTEN:
        lacks = ", ".join(sorted(trace.seen.lacked(request) or ()))
        return FAIL(f"{request.method} was sent again without {lacks}", *before)
    if before:
        return None
    trace.sure.had_time(had, _AGAIN_S)
    return PASS() if trace.seen.acted(None, had, had + _AGAIN_S) else None


@rule("version.missing-capability-learned", each=REQUEST)
def declares_lacked(request: Message, trace: Trace) -> Finding | None:
    """The same request with the capability is right."""
    lacked = trace.seen.lacked(request)
    declared = members(request.meta.get(CLIENT_CAPABILITIES)).keys()
    return PASS() if lacked is not None and lacked <= declared else None
