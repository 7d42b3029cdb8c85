"""Rules `cache.*`: how long results are kept (2026-07-28 server/utilities/caching)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ....views.values import Message
from ...clients.known import CACHEABLE
from ...clients.listings import CHANGES
from ...trace.findings import PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import ANSWERED, PIPE, REQUEST, SESSION, TOLD
from ...trace.rules import rule
from ...trace.trace import Trace, lacks_head

# Shorter ones are no reason to keep anything.
_WORTH_KEEPING_S: Final = 10.0
# SDKs keep an answer for 24 hours at most, also where its ttl is longer.
_LONGEST_S: Final = 24 * 3600.0
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


def ttl_s(request: Message, trace: Trace) -> float:
    page = trace.subject.known.pages.get(request.seq)
    return 0.0 if page is None or page.ttl_ms is None else min(page.ttl_ms / 1000, _LONGEST_S)


@rule("cache.fresh-kept", each=REQUEST, methods=CACHEABLE, one_process=True)
def keeps_fresh(request: Message, trace: Trace) -> Finding | None:
    """Each process has a cache of its own; a new one shows only by its connection, its pipe or its discovery.

    A request that began before the answer was delivered could not know it.
    """
    equal = trace.subject.alike.series(request, request.place).newest(request.at, _MANY + 1)
    fresh = oldest_fresh(request, equal, trace)
    if fresh is None or fresh.answered is None:
        return None
    again = 1 + sum(each.began > fresh.answered for each in equal)
    if again > _MANY:
        for each in (request, *equal):
            trace.sure.began(each, fresh)
        return WARN(f"asked {again} times more within a ttl of {ttl_s(fresh, trace):g} s", fresh)
    remark = f"asked {again} times more within a ttl; a person may have reloaded it"
    return UNCLEAR(remark, fresh) if again > _FEW else PASS(fresh)


def oldest_fresh(request: Message, equal: Sequence[Message], trace: Trace) -> Message | None:
    """The oldest of some equal requests with an answer that could be used again, and no reason to ask anew since."""
    found = None
    for each in reversed(equal):
        answered, ttl = each.answered, ttl_s(each, trace)
        if answered is not None and ttl >= _WORTH_KEEPING_S and answered < request.began <= answered + ttl:
            if has_reason(request, answered, request.at, trace):
                break
            found = each
    return found


def has_reason(request: Message, since: float, until: float, trace: Trace) -> bool:
    """True if something between is a reason to ask again, or a part of that is not known."""
    seen, method = trace.seen, request.method
    told = [name for name, lists in CHANGES.items() if method in lists]
    return (
        trace.gap_in(since, until)
        or trace.disturbance(since, until) is not None
        or seen.has(TOLD, "notifications/resources/updated", *told, since=since, until=until)
        or (method != "server/discover" and seen.has(REQUEST, "server/discover", since=since, until=until))
        or seen.has(SESSION, since=since, until=until)
        or seen.has(PIPE, since=since, until=until)
        or any(seen.error_of(each) not in (None, 0) for each in seen.all(ANSWERED, since=since, until=until))
    )


@rule("cache.no-ttl-polling", each=REQUEST, methods=CACHEABLE)
def polls_by_ttl(request: Message, trace: Trace) -> Finding | None:
    newest = trace.seen.newest(REQUEST, None, _AT_ENDS + 1)
    if len(newest) <= _AT_ENDS or trace.gap_in(newest[-1].at, request.at):
        return None
    if not all(is_at_end(later, before, trace) for later, before in pairwise(newest)):
        return None
    return WARN(f"{_AT_ENDS} fetches of {request.method} in a row, each at the end of a ttl", newest[1])


@rule("cache.no-ttl-polling", each=REQUEST)
def stays(request: Message, trace: Trace) -> Finding | None:
    """A client that has stayed for five ttls could have fetched at the end of each."""
    lifetime = trace.subject.known.lifetime
    if lifetime is None or request.at <= lifetime[0] + _AT_ENDS * lifetime[1]:
        return None
    newest = trace.seen.newest(REQUEST, None, 2)
    return None if len(newest) > 1 and is_at_end(newest[0], newest[1], trace) else PASSED


def is_at_end(request: Message, before: Message, trace: Trace) -> bool:
    """True if a request came just when the ttl of the answer to an equal one had ended."""
    ttl, answered = ttl_s(before, trace), before.answered
    if not ttl or answered is None or not trace.subject.alike.are_equal(request, before):
        return False
    return 0 <= request.at - answered - ttl <= _AT_END_S


@rule("cache.jitter", each=REQUEST, methods=CACHEABLE)
def jitters(request: Message, trace: Trace) -> Finding | None:
    """Statistics prove nothing, so it is never a FAIL."""
    newest = trace.seen.newest(REQUEST, None, _GAPS + 1)
    if len(newest) <= _GAPS or not all(trace.subject.alike.are_equal(request, each) for each in newest):
        return None
    if trace.gap_in(newest[-1].at, request.at) or any(map(lacks_head, newest)):
        return None
    gaps = [later.began - before.began for later, before in pairwise(newest)]
    mean = sum(gaps) / _GAPS
    spread = (max(gaps) - min(gaps)) / mean if mean > 0 else 0.0
    if spread < _NO_JITTER:
        return WARN(f"ten fetches of {request.method}, all {mean:.3g} s apart")
    if spread > _JITTER:
        return PASSED
    return UNCLEAR(f"ten fetches about {mean:.3g} s apart; they differ by {spread:.1%}")
