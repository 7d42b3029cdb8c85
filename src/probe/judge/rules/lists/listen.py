"""Rules `listen.*`: changes of lists, and subscriptions to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import nextafter
from typing import Any, Final

from ....views.retention import members
from ....views.values import Message
from ....wire.v2026.meta import CLIENT_CAPABILITIES
from ...clients.listings import CHANGES, LISTS
from ...clients.series import ALWAYS
from ...clients.tasks import EXTENSION
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import CHANGED, NOTIFICATION, REQUEST, TOLD
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace

_USES: Final[Mapping[str, str]] = {
    "tools/call": "notifications/tools/list_changed",
    "prompts/get": "notifications/prompts/list_changed",
    "resources/read": "notifications/resources/list_changed",
}
"""The requests that use an item of a list, and the notification that it has changed."""

_CHANGE_OF: Final[Mapping[str, str]] = {method: told for told, methods in CHANGES.items() for method in methods}
_FLAGS: Final = frozenset({"toolsListChanged", "promptsListChanged", "resourcesListChanged"})
# The tasks extension adds `taskIds`.
_NAMES: Final = frozenset({"resourceSubscriptions", "taskIds"})
_ABOUT_LISTS: Final = re.compile(r"tool|prompt|resource|listchanged")
_REPEATS: Final = 3


@rule("listen.relists", each=REQUEST, methods=LISTS)
def relists(request: Message, trace: Trace) -> Finding | None:
    """A client with several sessions needs to ask in one of them."""
    method = str(request.method)
    for told in trace.seen.newest(TOLD, _CHANGE_OF[method]):
        if told.had is None or trace.seen.has(REQUEST, method, since=told.had, until=request.at):
            return None
        if trace.seen.has(REQUEST, method, until=told.had, scope=told.scope):
            return PASS(request, at=told)
    return None


@rule("listen.relists", each=REQUEST, methods=_USES, one_process=True, after=CHANGED)
def uses_changed(use: Message, trace: Trace) -> Finding | None:
    """A lazy client lists before it uses an item. A use that was on its way is no reaction."""
    known = use.began - trace.allowances.settle_s
    told = trace.seen.last(TOLD, _USES[str(use.method)], until=known, scope=use.scope)
    if told is None or told.had is None:
        return None
    due = max(use.at, told.had + trace.allowances.alive_s)
    missing = awaited(told, told.had, due, trace)
    changed_again = trace.seen.has(TOLD, _USES[str(use.method)], since=known, until=due, scope=use.scope)
    if not missing or changed_again or trace.nth(told.seq) > 1:
        return None
    trace.sure.had_time(told.had, due - told.had, told)
    trace.sure.began(use, told)
    return WARN(f"{told.method} came, and {use.method} without {missing[0]} before it", use, at=told)


@rule("listen.relists", each=TOLD, methods=CHANGES, one_process=True)
def goes_on(told: Message, trace: Trace) -> Finding | None:
    """A client without a use has five minutes, if it does other work in them."""
    had, scope, until = trace.at, told.scope, trace.at + trace.allowances.person_s
    missing = awaited(told, had, until, trace)
    if not missing or trace.seen.has(TOLD, str(told.method), since=nextafter(had, ALWAYS), until=until, scope=scope):
        return None
    trace.sure.had_time(had, "person_s")
    uses = [use for use, change in _USES.items() if change == told.method]
    if trace.seen.has(REQUEST, *uses, since=had + trace.allowances.settle_s, until=until, scope=scope):
        return None
    later = had + trace.allowances.alive_s
    requests = trace.seen.all(REQUEST, since=later, until=until, scope=scope)
    notified = trace.seen.has(NOTIFICATION, since=later, until=until, scope=scope)
    if notified or any(each.method != "ping" for each in requests):
        return WARN(f"{told.method} came, and no {missing[0]} followed in five minutes")
    return None


def awaited(told: Message, had: float, until: float, trace: Trace) -> Sequence[str]:
    """The lists asked for before the client had news of a change, and not since."""
    return [
        method
        for method in CHANGES[str(told.method)]
        if trace.seen.has(REQUEST, method, until=had, scope=told.scope)
        and not trace.seen.has(REQUEST, method, since=had, until=until)
    ]


@rule("listen.filter-known", each=REQUEST, methods={"subscriptions/listen"})
def asks_for_known(request: Message, trace: Trace) -> Finding | None:
    """Members of extensions are free."""
    wanted = request.params.get("notifications")
    if not isinstance(wanted, dict):
        return None
    declared = members(members(request.meta.get(CLIENT_CAPABILITIES)).get("extensions")).keys() - {EXTENSION}
    wrong = [remark for name, value in wanted.items() if (remark := _wrong(name, value, bool(declared))) is not None]
    return FAIL("; ".join(wrong[:5])) if wrong else PASSED


def _wrong(name: str, value: Any, has_extensions: bool) -> str | None:
    if name in _FLAGS:
        return None if isinstance(value, bool) else f"{name} is no boolean"
    if name in _NAMES:
        strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return None if strings else f"{name} is no list of strings"
    plain = re.sub(r"[^a-z]", "", name.casefold())
    known = has_extensions or not _ABOUT_LISTS.search(plain)
    return None if known else f"{name[:100]} is no member of the filter"


@rule("listen.partly-granted", each=TOLD, methods={"notifications/subscriptions/acknowledged"})
def accepts_part(told: Message, trace: Trace) -> Finding | None:
    """After a stream that others ended the client may subscribe again.

    A repeat counts beside an open stream, and after one that the client left.
    """
    request, had, until = told.request, trace.at, trace.at + trace.allowances.repeat_s
    if request is None or is_granted(members(request.params.get("notifications")), told):
        return None
    equal = trace.subject.alike.series(request, request.scope).between(request.at, until, BOUNDS.searched)
    repeats = [again for before, again in pairwise(equal) if _is_needless(before, again)]
    if len(repeats) > _REPEATS:
        why = f"{MISSING_ENTRIES}; the ends of subscriptions may be among them"
        if trace.gap_in(request.at, repeats[_REPEATS].at):
            return UNCLEAR(why, request, at=repeats[_REPEATS])
        return WARN("asked again and again for what the server had granted in part only", request, at=repeats[_REPEATS])
    trace.sure.had_time(had, "repeat_s")
    return PASSED if trace.seen.acted(None, had, until) else None


def _is_needless(before: Message, again: Message) -> bool:
    exchange = before.exchange
    return exchange is None or not exchange.closed_by(again.at) or exchange.ended_by == "client"


def is_granted(wanted: Mapping[str, Any], told: Message) -> bool:
    granted = members(told.params.get("notifications"))
    for name, value in wanted.items():
        if isinstance(value, list):
            given = granted.get(name)
            if any(each not in (given if isinstance(given, list) else ()) for each in value):
                return False
        elif value and granted.get(name) != value:
            return False
    return True
