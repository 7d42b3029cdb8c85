"""Rules `page.*`: pages of lists and their cursors."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any, Final

from ....log.bounded import Newest
from ...projection.listings import PAGED, Lists
from ...projection.views import Message, Pipe, ProcessChange, Scope, Session
from ...values import shown
from ..predicate import Predicate, judges

_USES: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
# So long after a page a client that wants the next one has asked for it.
_FOLLOW_S: Final = 60.0
# One list with a second page may be one that nobody wanted more of.
_FIRST_PAGES: Final = 2
# "Refreshing a page" three times is what a person may do.
_REFRESHES: Final = 3
_MOST: Final = 1_000


@judges("page.followed")
class PageFollowed(Predicate):
    """Follows nextCursor to the last page.

    A client may show one page and a button for more, so it takes two lists, work that goes on, and a minute for it; or
    the client's process has ended by its own will. Status 0 alone does not show that: a process may end so when it is
    told to.
    """

    methods = PAGED | _USES

    def setup(self) -> None:
        self._has_followed = False
        self._firsts: tuple[Message, ...] = ()
        self._use: Message | None = None
        self._killed = False

    def on_request(self, message: Message) -> None:
        if message.method in PAGED:
            self._has_followed |= isinstance(message.params.get("cursor"), str)
            return
        if self._has_followed or len(self._firsts) < _FIRST_PAGES:
            return
        self._use = message
        if self.now - (self._firsts[-1].answered or 0) >= _FOLLOW_S:
            self._accuse(message)

    def on_process(self, change: ProcessChange) -> None:
        if change.of != "client":
            return
        if change.what != "exited":
            self._killed = change.what in ("killed", "timed_out")
        elif change.status == 0 and not self._killed and self._use is not None and not self._has_followed:
            self._accuse(self._use)

    def _accuse(self, message: Message) -> None:
        firsts, self._firsts, self._use = self._firsts, (), None
        lists = " and ".join(sorted({str(first.method) for first in firsts}))
        remark = f"shows the first page only of {lists}"
        if self.life.whole:
            self.warn(message, remark, *(first.seq for first in firsts))
        else:
            self.unclear(message, f"{remark}, as far as the log goes", *(first.seq for first in firsts))

    def on_end(self) -> None:
        if self._firsts and not self._has_followed:
            lists = " and ".join(sorted({str(first.method) for first in self._firsts}))
            remark = f"asked for no further page of {lists}; a person may not have wanted more, or not yet"
            self.unclear(self._firsts[0], remark, *(first.seq for first in self._firsts))
            self._firsts = ()

    def on_answered(self, request: Message) -> None:
        if request.method not in PAGED or request.answer is None or request.answer.rpc != "response":
            return
        has_more = b'"nextCursor"' in request.answer.raw and isinstance(request.answer.result.get("nextCursor"), str)
        if has_more and len(self._firsts) < _FIRST_PAGES:
            self._firsts = (*self._firsts, request)
        elif not has_more and isinstance(request.params.get("cursor"), str):
            self.ok(request)


@judges("page.cursor-opaque")
class PageCursorOpaque(Predicate):
    """Gives cursors back as they were.

    A person can type a cursor into a workbench, and a client can have one of an earlier run, so only what was made of
    a cursor that was given, or is no cursor at all, is the client's fault.
    """

    methods = PAGED

    def on_request(self, message: Message) -> None:
        method = message.method
        if method is None or "cursor" not in message.params or message.hides("/params/cursor"):
            return
        cursor, lists = message.params["cursor"], self.life.lists
        if cursor == "":
            self.warn(message, "cursor is empty; without one the member is left out")
        elif not isinstance(cursor, str):
            hint = "; without one the member is left out" if cursor is None else ""
            self.fail(message, f"cursor is {shown(cursor)}, not a string{hint}")
        elif lists.gave(method, cursor):
            self.ok(message)
        elif (how := _made_of(cursor, method, lists)) is not None:
            self.fail(message, f"cursor {shown(cursor)} {how}")
        else:
            self.unclear(message, f"cursor {shown(cursor)} was never given in this run")


def _made_of(cursor: str, method: str, lists: Lists) -> str | None:
    """How a cursor that was not given was made of one that was; None where it was not."""
    for given_for, given in lists.cursors():
        if given == cursor:
            return f"is one of {given_for}"
        if given_for != method:
            continue
        plain = _decoded(given)
        if cursor == plain or (plain is not None and cursor == plain.rpartition(":")[2]):
            return f"is what {shown(given)} stands for"
        if cursor != given and cursor.strip().rstrip("=").casefold() == given.casefold():
            return f"is {shown(given)}, changed"
    return None


def _decoded(cursor: str) -> str | None:
    """The text that a cursor of this server stands for; None for what is none of that form."""
    try:
        text = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.isprintable() and ":" in text else None


@judges("page.stops")
class PageStops(Predicate):
    """Ends a list where there is no nextCursor.

    A client that wants more asks within seconds. Where its session or connection ends before, nothing more can come.
    """

    methods = PAGED

    def setup(self) -> None:
        # The end of each list that was read, by its last cursor, and how often that came again.
        self._ends: Newest[tuple[Scope, str, str], tuple[Message, int]] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        key = self._key(message)
        if key is None or key not in self._ends:
            return
        end, count = self._ends[key]
        if message.began - (end.answered or 0) > self.allowances.settle_s:
            return
        self._ends[key] = (end, count + 1)
        if count == _REFRESHES:
            self.warn(message, f"asked for the last page of {message.method} again and again", end.seq)

    def on_answered(self, request: Message) -> None:
        key, answer = self._key(request), request.answer
        if key is None or answer is None or answer.rpc != "response" or answer.result.get("nextCursor") is not None:
            return
        known = self._ends.get(key)
        if known is None or self.now - (known[0].answered or 0) > self.allowances.settle_s:
            self._ends.store(key, (request, 0))
            self.let_cross(self.now + self.allowances.settle_s, self._look, key, request, of=request)

    def on_session_end(self, session: Session) -> None:
        self._over(session.scope)

    def on_pipe_end(self, pipe: Pipe) -> None:
        self._over(pipe.scope)
        if pipe.session is not None:
            self._over(pipe.session.scope)

    def _over(self, scope: Scope) -> None:
        for wait in self._waits:
            key, request = wait.arguments
            if key[0] is scope and not wait.over:
                wait.cancel()
                self._look(key, request)

    def _look(self, key: tuple[Scope, str, str], request: Message) -> None:
        end, count = self._ends.get(key, (request, 0))
        if end is not request:
            return
        if count == 0:
            self.ok(request)
        elif count <= _REFRESHES:
            self.unclear(request, f"asked for the last page {count} times more; a person may have")

    def _key(self, message: Message) -> tuple[Scope, str, str] | None:
        cursor: Any = message.params.get("cursor")
        if not isinstance(cursor, str) or message.method is None:
            return None
        return message.scope, message.method, cursor


@judges("page.not-across-sessions")
class PageNotAcrossSessions(Predicate):
    """Keeps cursors within the session.

    This server gives the same cursors in all sessions, so only one that comes before any was given is from another.
    """

    methods = PAGED
    one_process = True

    def setup(self) -> None:
        self._begun: Newest[tuple[str, str], None] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        session, method = message.session, message.method
        if session is None or method is None or len(self.life.sessions) < 2:
            if session is not None and method is not None:
                self._begun.store((session.label, method), None)
            return
        if (session.label, method) in self._begun:
            return
        self._begun.store((session.label, method), None)
        cursor = message.params.get("cursor")
        if not isinstance(cursor, str):
            self.ok(message)
            return
        given_in = self.life.lists.first_session(method, cursor)
        if given_in is None or session.lists.gave(method, cursor):
            return
        if self.life.whole and not session.lists.fell_out:
            what = f"cursor {shown(cursor)}, which was given in session {given_in} and not in this one"
            self.fail(message, f"the client or a gateway sent {what}")
        else:
            self.unclear(message, f"cursor {shown(cursor)} may have been given in this session, too")
