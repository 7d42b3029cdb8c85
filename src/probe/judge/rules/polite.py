"""Rules `polite.*`: rates, repeats and reconnects."""

from __future__ import annotations

from collections import deque
from itertools import pairwise, takewhile
from statistics import median
from typing import Final

from msgspec import Struct, field

from ...views.clients import Connection
from ...views.retention import members
from ...views.values import Exchange, Message
from ..clients.known import FOR_GOOD
from ..clients.listings import CHANGES, LISTS
from ..clients.moments import Control
from ..clients.series import ALWAYS, NEVER
from ..trace.findings import PASS, PASSED, UNCLEAR, WARN, Finding
from ..trace.opportunities import (
    ANSWERED,
    CONTROL,
    DENIED,
    EXCHANGE,
    LEFT,
    PIPE,
    PIPE_END,
    REQUEST,
    SESSION,
    TOLD,
)
from ..trace.rules import rule
from ..trace.trace import MISSING_ENTRIES, Trace

_WINDOW_S: Final = 60.0
_FEW_REFUSALS: Final = 5
_MANY_REFUSALS: Final = 20
# "5 or more attempts" are an opportunity; "more than 30 within 30 s" are too many.
_ATTEMPTS: Final = 5
_MANY_ATTEMPTS: Final = 30
_ATTEMPTS_S: Final = 30.0
# With a second between attempts the server is not flooded.
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
_USES: Final = ("tools/call", "resources/read", "prompts/get", "completion/complete")


@rule("polite.refused-not-hammered", each=DENIED)
def hammers(exchange: Exchange, trace: Trace) -> Finding | None:
    """Equal are requests with the same bytes but for the id."""
    at, equal = trace.at, trace.subject.alike.series(exchange, None)
    later = equal.between(at, at + _WINDOW_S, _MANY_REFUSALS + 1)
    if not later:
        return None
    around = [*equal.between(at - _WINDOW_S, at)[-_MANY_REFUSALS:], *later]
    times = [each.response.mono for each in around if each.response is not None]
    ends = (last for first, last in zip(times, times[_MANY_REFUSALS:], strict=False) if last - first < _WINDOW_S)
    end = next(ends, None)
    if end is not None:
        trace.passed(at, end - at)
        # Requests without their bodies look equal.
        if trace.gap_in(around[0].began.mono, end):
            return UNCLEAR(f"{MISSING_ENTRIES}; the requests may differ in them")
        return WARN(
            f"one of {_MANY_REFUSALS + 1} equal requests within {_WINDOW_S:g} s, each answered {exchange.status}"
        )
    if len(later) <= _FEW_REFUSALS:
        trace.sure.had_time(at, _WINDOW_S)
        return PASSED
    trace.passed(at, _WINDOW_S)
    return UNCLEAR(f"{len(later)} equal requests within {_WINDOW_S:g} s; a person may press retry")


class Attempts(Struct):
    """The newest attempts to connect without a success, and the time of the last failure."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=_MANY_ATTEMPTS + 1))
    failed: float = NEVER


@rule("polite.reconnect-rate", each=CONTROL)
def is_told_to_wait(control: Control, trace: Trace) -> Finding | None:
    """A stream that was closed with a `retry` names the time to come back."""
    if control.fact.retry_ms is not None:
        trace.kept(Attempts).times.clear()
    return None


@rule("polite.reconnect-rate", each=DENIED)
def is_refused(exchange: Exchange, trace: Trace) -> Finding | None:
    """Refusals for good are judged by `polite.refused-not-hammered`."""
    if exchange.status in FOR_GOOD or exchange.limited_by(ALWAYS):
        attempts = trace.kept(Attempts)
        attempts.times.clear()
        attempts.failed = NEVER
    else:
        trace.kept(Attempts).failed = trace.at
    return None


@rule("polite.reconnect-rate", each=LEFT)
def loses_stream(exchange: Exchange, trace: Trace) -> Finding | None:
    if exchange.status is None or _is_stream(exchange):
        trace.kept(Attempts).failed = trace.at
    return None


@rule("polite.reconnect-rate", each=PIPE_END)
def loses_pipe(pipe: Connection, trace: Trace) -> Finding | None:
    trace.kept(Attempts).failed = trace.at
    return None


@rule("polite.reconnect-rate", each=EXCHANGE, methods={"GET"}, one_process=True)
def opens_stream(exchange: Exchange, trace: Trace) -> Finding | None:
    return attempt(trace) if _is_stream(exchange) else None


@rule("polite.reconnect-rate", each=REQUEST, methods={"initialize"}, one_process=True)
def initializes(request: Message, trace: Trace) -> Finding | None:
    return attempt(trace) if request.pipe is None else None


@rule("polite.reconnect-rate", each=PIPE, one_process=True)
def connects(pipe: Connection, trace: Trace) -> Finding | None:
    return attempt(trace)


def attempt(trace: Trace) -> Finding | None:
    attempts, now = trace.kept(Attempts), trace.at
    failed, attempts.failed, times = attempts.failed, NEVER, attempts.times
    since = times[-1] if times else NEVER
    if _has_succeeded(since, now, trace):
        times.clear()
    if failed == NEVER or _has_succeeded(failed, now, trace):
        return None
    if trace.gap_in(times[0] if times else failed, now):
        times.clear()
        return None
    times.append(now)
    if len(times) > _MANY_ATTEMPTS and now - times[0] <= _ATTEMPTS_S:
        times.clear()
        return WARN(f"{_MANY_ATTEMPTS + 1} attempts to connect within {_ATTEMPTS_S:g} s")
    gaps = [later - sooner for sooner, later in pairwise(times)]
    if len(times) != _ATTEMPTS:
        return None
    grow = gaps == sorted(gaps) and gaps[-1] >= _GROWTH * gaps[0]
    return PASSED if grow or sum(gaps) / len(gaps) >= _CALM_S else None


def _has_succeeded(since: float, until: float, trace: Trace) -> bool:
    return trace.seen.has(ANSWERED, since=since, until=until) or trace.seen.has(TOLD, since=since, until=until)


def _is_stream(exchange: Exchange) -> bool:
    return exchange.head is not None and exchange.request.method == "GET" and exchange.is_endpoint


@rule("polite.no-list-polling", each=REQUEST, methods=LISTS, one_process=True)
def polls_lists(request: Message, trace: Trace) -> Finding | None:
    """Most clients list once a turn, and a turn has calls.

    Answers of the modern era have a ttl: `cache.fresh-kept`. A minute with a gap is no opportunity.
    """
    at, until = request.at, request.at + _WINDOW_S
    if request.era == "modern":
        return None
    equal = trace.subject.alike.series(request, request.scope).between(at, until, _MANY_LISTS + 1)
    seen = equal[-1].at if len(equal) > _MANY_LISTS else trace.passed(at, _WINDOW_S)
    if len(equal) < _SOME_LISTS or not is_idle(at, seen, trace):
        return None
    if len(equal) > _MANY_LISTS:
        return WARN(f"{len(equal)} times {request.method} within {_WINDOW_S:g} s", request, at=equal[-1])
    if len(equal) > _FEW_LISTS:
        return UNCLEAR(f"{len(equal)} times {request.method} within {_WINDOW_S:g} s")
    return PASSED if seen >= until else None


def is_idle(since: float, until: float, trace: Trace) -> bool:
    """True if the client did not work, and had no reason to list, in a window that is known."""
    seen = trace.seen
    return not (
        trace.gap_in(since, until)
        or trace.disturbance(since, until) is not None
        or seen.has(REQUEST, *_USES, since=since, until=until)
        or seen.has(TOLD, *CHANGES, since=since, until=until)
        or seen.has(SESSION, since=since, until=until)
    )


@rule("polite.completion-debounced", each=REQUEST, methods={"completion/complete"})
def debounces(request: Message, trace: Trace) -> Finding | None:
    newest = trace.seen.newest(REQUEST, "completion/complete", 2 * _KEYS + 1)
    if not _has_value(request):
        return None
    typed = [each for each in takewhile(lambda each: request.at - each.at < _RATE_S, newest) if _has_value(each)]
    rows = takewhile(lambda pair: _grows(*pair), pairwise(typed))
    gaps = [later.began - before.began for later, before in rows]
    pace = median(gaps) if gaps else _TYPED_S
    if len(gaps) >= _KEYS - 1 and pace < _TYPED_S:
        for each in typed:
            trace.sure.began(each)
        return WARN(f"{len(gaps) + 1} completions in a row, {pace * 1000:.0f} ms apart")
    return PASSED if len(newest) >= _FEW_KEYS and pace >= _TYPED_S else None


def _has_value(message: Message) -> bool:
    argument = members(message.params.get("argument"))
    return isinstance(argument.get("value"), str) and not message.hides("/params/argument")


def _grows(later: Message, before: Message) -> bool:
    """True if a completion is that of the one before with one more character."""
    new, old = members(later.params.get("argument")), members(before.params.get("argument"))
    is_other = later.params.get("ref") != before.params.get("ref") or new.get("name") != old.get("name")
    if is_other or later.scope is not before.scope:
        return False
    return bool(new["value"]) and bool(new["value"][:-1] == old["value"])


class Rate(Struct):
    """The requests of the last ten seconds, of the busiest ten, and of all."""

    since: float = NEVER
    count: int = 0
    most: int = 0
    total: int = 0


@rule("polite.call-rate", each=REQUEST)
def floods(request: Message, trace: Trace) -> Finding | None:
    """A load test does, so it is a remark."""
    rate = trace.kept(Rate)
    rate.total += 1
    rate.count += 1
    if request.at - rate.since <= _RATE_S:
        if rate.count == _FLOOD + 1:
            return WARN(f"more than {_FLOOD / _RATE_S:g} requests a second over {_RATE_S:g} s")
        return PASSED if rate.total == _SOME else None
    count, rate.since, rate.count = rate.count - 1, request.at, 1
    measured = {"most requests in 10 s": count} if count > rate.most else None
    rate.most = max(rate.most, count)
    if _CALM < count <= _FLOOD:
        return UNCLEAR(f"{count / _RATE_S:g} requests a second over {_RATE_S:g} s", measured=measured)
    return PASS(measured=measured) if rate.total >= _SOME else Finding("nothing", measured=measured)
