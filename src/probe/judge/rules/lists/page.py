"""Rules `page.*`: pages of lists and their cursors."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ....views.values import Message
from ...clients.known import FirstPage
from ...clients.listings import PAGED, Lists
from ...clients.moments import ClientEnd, ProcessChange
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASSED, UNCLEAR, WARN, Finding, Undecided
from ...trace.opportunities import ANSWERED, END, FURTHER, PROCESS, REQUEST, SESSION
from ...trace.rules import MISSING, member, rule
from ...trace.trace import MISSING_ENTRIES, Trace
from ...values import shown

_USES: Final = ("tools/call", "resources/read", "prompts/get")
# Of one list with a second page, a person may not have wanted more.
_LISTS: Final = 2
# So long after a page a client that wants the next one has asked for it.
_FOLLOW_S: Final = 60.0
# "Refreshing a page" three times is what a person may do.
_REFRESHES: Final = 3


@rule("page.followed", each=ANSWERED, methods=PAGED)
def follows(request: Message, trace: Trace) -> Finding | None:
    return PASSED if _is_last_page(request, trace) else None


def _is_last_page(request: Message, trace: Trace) -> bool:
    page = trace.subject.known.pages.get(request.seq)
    return page is not None and page.next_cursor is None and isinstance(request.params.get("cursor"), str)


@rule("page.followed", each=REQUEST, methods=_USES, after=FURTHER)
def goes_on(use: Message, trace: Trace) -> Finding | None:
    """A client may show one page and a button for more: it takes two lists, further work, and a minute."""
    firsts = _first_pages(use.at, trace)
    if len(firsts) < _LISTS or use.at - firsts[-1].at < _FOLLOW_S or trace.nth() > 1:
        return None
    return first_only(firsts, use, trace)


@rule("page.followed", each=PROCESS)
def ends(change: ProcessChange, trace: Trace) -> Finding | None:
    """Or the process has ended by its own will. A process that was killed may have status 0, too."""
    firsts, fact = _first_pages(change.at, trace), change.fact
    before = [each.fact.what for each in trace.seen.newest(PROCESS, None, 2)[1:]]
    is_told = bool({"killed", "timed_out"} & set(before))
    if change.of != "client" or (fact.what, fact.status) != ("exited", 0) or is_told or len(firsts) < _LISTS:
        return None
    uses = trace.seen.all(REQUEST, *_USES, since=firsts[-1].at, until=change.at)
    return first_only(firsts, uses[-1], trace) if uses and trace.nth() == 1 else None


def _first_pages(until: float, trace: Trace) -> Sequence[FirstPage]:
    """The first two lists with a further page before a time; none where it ever asked for such a page."""
    known = trace.subject.known
    return () if known.followed < until else [each for each in known.first_pages if each.at < until]


def first_only(firsts: Sequence[FirstPage], use: Message, trace: Trace) -> Finding:
    """It never asked for a further page, and used what it had."""
    remark = f"shows the first page only of {_named(firsts)}"
    trace.sure.whole(f"{remark}, as far as the log goes", use, *firsts)
    return WARN(remark, *firsts, at=use)


@rule("page.followed", each=END)
def never_asked(end: ClientEnd, trace: Trace) -> Finding | None:
    firsts = _first_pages(trace.at, trace)
    if not firsts or trace.nth() > 1:
        return None
    remark = f"asked for no further page of {_named(firsts)}; a person may not have wanted more, or not yet"
    return UNCLEAR(remark, *firsts, at=firsts[0])


def _named(firsts: Sequence[FirstPage]) -> str:
    return " and ".join(sorted({first.method for first in firsts}))


@rule("page.cursor-opaque", each=REQUEST, methods=PAGED)
def keeps_cursor(request: Message, trace: Trace) -> Finding | None:
    """A person can type a cursor into a workbench, and a client can have one of an earlier run.

    The client's fault is one made of a given cursor, such as `resources:50` of its Base64, or no cursor at all, such as
    50.
    """
    cursor, method, lists = member(request, "/params/cursor"), str(request.method), trace.seen.lists()
    if cursor is MISSING:
        return None
    if cursor == "":
        return WARN("cursor is empty; without one the member is left out")
    if not isinstance(cursor, str):
        hint = "; without one the member is left out" if cursor is None else ""
        return FAIL(f"cursor is {shown(cursor)}, not a string{hint}")
    if lists.gave(method, cursor, request.at):
        return PASSED
    how = _made_of(cursor, method, lists, request.at)
    if how is not None:
        trace.sure.whole(f"{MISSING_ENTRIES}; cursor {shown(cursor)} {how}, as far as the log goes")
        return FAIL(f"cursor {shown(cursor)} {how}")
    return UNCLEAR(f"cursor {shown(cursor)} was never given in this run")


def _made_of(cursor: str, method: str, lists: Lists, at: float) -> str | None:
    """How a cursor that was not given was made of one that was; None where it was not."""
    for given_for, given in lists.cursors(at):
        if given == cursor:
            return f"is one of {given_for}"
        if given_for != method:
            continue
        plain = _decoded(given)
        if plain is not None and cursor in (plain, plain.rpartition(":")[2]):
            return f"is what {shown(given)} stands for"
        if cursor.strip().rstrip("=").casefold() == given.casefold():
            return f"is {shown(given)}, changed"
    return None


@lru_cache(maxsize=1_000)
def _decoded(cursor: str) -> str | None:
    """The text that a cursor of this server stands for; None for what is none of that form."""
    try:
        text = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.isprintable() and ":" in text else None


@rule("page.stops", each=ANSWERED, methods=PAGED)
def stops(request: Message, trace: Trace) -> Finding | None:
    """A client that wants more asks within seconds, or its session or connection ends before."""
    had, until = trace.at, trace.at + trace.allowances.settle_s
    if not _is_last_page(request, trace):
        return None
    again = [
        each
        for each in trace.subject.alike.series(request, request.scope).between(had, until, BOUNDS.searched)
        if each.began > had
    ]
    if len(again) > _REFRESHES:
        for each in again[: _REFRESHES + 1]:
            trace.sure.began(each, request)
        return WARN(f"asked for the last page of {request.method} again and again", request, at=again[_REFRESHES])
    places = (request.in_session, request.pipe)
    ends = [place.closed.mono for place in places if place is not None and place.closed is not None]
    trace.sure.crossed(had, min([until, *ends]) - had)
    return UNCLEAR(f"asked for the last page {len(again)} times more; a person may have") if again else PASSED


@rule("page.not-across-sessions", each=REQUEST, methods=PAGED, one_process=True)
def forgets_cursors(request: Message, trace: Trace) -> Finding | None:
    """Cursors are the same in all sessions, so only one that comes before any was given is from another."""
    session, method, lists = request.in_session, str(request.method), trace.seen.lists()
    if session is None or trace.nth((session.label, method)) > 1 or len(trace.seen.newest(SESSION, None, 2)) < 2:
        return None
    cursor = request.params.get("cursor")
    if not isinstance(cursor, str):
        return PASSED
    given_in = lists.first_session(method, cursor, request.at)
    own = trace.seen.lists(session)
    if given_in is None or own.gave(method, cursor, request.at):
        return None
    doubt = f"cursor {shown(cursor)} may have been given in this session, too"
    trace.sure.whole(doubt)
    if own.forgot < request.at:
        raise Undecided(doubt)
    what = f"cursor {shown(cursor)}, which was given in session {given_in.label} and not in this one"
    return FAIL(f"the client or a gateway sent {what}")
