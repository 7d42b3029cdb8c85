"""Rules `roots.*`: the folders that a client names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final
from urllib.parse import unquote

from ....log.bounded import Newest
from ...projection.questions import Question, Reply
from ...projection.views import Message, Session
from ...values import members, shown
from ..predicate import Predicate, judges
from .serving import Serving

# Sessions whose roots are remembered, and changes that were told in one.
_MOST_SESSIONS: Final = 200

# Characters that RFC 3986 does not allow in a URI, and the drive of a path that was put behind `file://` as it is.
_UNESCAPED: Final = re.compile(r"[\x00-\x20\\<>\"^`{|}]|^file://[A-Za-z]:", re.IGNORECASE)


class _Roots(Predicate):
    methods = frozenset({"roots/list", "notifications/roots/list_changed"})


@judges("roots.file-uri")
class RootsFileUri(_Roots):
    """Names its roots by file URIs."""

    def on_reply(self, reply: Reply) -> None:
        for at, root in enumerate(_listed(reply)):
            uri = root.get("uri")
            if not isinstance(uri, str) or reply.hides("roots", str(at)):
                continue
            if not uri.lower().startswith("file://"):
                self.fail(reply.message, f"the root {shown(uri)} is no file:// URI", reply.question.seq)
            elif _UNESCAPED.search(uri):
                self.warn(reply.message, f"the root {shown(uri)} is a path, not escaped as a URI", reply.question.seq)
            else:
                self.ok(reply.message)


@dataclass(slots=True)
class _SessionRoots:
    """The roots of a session by its last answer, and when it last told that they have changed."""

    roots: Mapping[str, Any]
    since: float
    seq: int


@judges("roots.change-told")
class RootsChangeTold(_Roots):
    """Tells when its roots have changed.

    The notification may still be on its way when the second answer is there, and may have left before the first one
    that lacks the change. One that came in another session of the client, or in none, shows that it meant to tell.
    """

    def setup(self) -> None:
        self._known: Newest[Session, _SessionRoots] = Newest(_MOST_SESSIONS)
        self._told: Newest[Session, float] = Newest(_MOST_SESSIONS)
        self._told_anywhere = -inf

    def on_notification(self, message: Message) -> None:
        session = message.session
        self._told_anywhere = message.at
        if session is None:
            return
        self._told.store(session, message.at)
        if not _declares(session):
            self.warn(message, "roots/list_changed came, and roots.listChanged was not declared", session.seq)

    def on_reply(self, reply: Reply) -> None:
        session, message = reply.message.session, reply.message
        if session is None or not isinstance(members(reply.value).get("roots"), list):
            return
        if reply.hides("roots"):
            self._known.pop(session, None)
            return
        roots = {_folder(root.get("uri")): root.get("name") for root in _listed(reply)}
        # A change that the client told after the question was under way may already be in its answer.
        asked = min(message.at - self.allowances.arrival_s, reply.question.delivered or message.at)
        known = self._known.get(session)
        self._known.store(session, _SessionRoots(roots, asked, message.seq))
        if known is not None and known.roots != roots and _declares(session):
            due = message.at + self.allowances.settle_s
            self.let_cross(due, self._look, session, message, known, roots, of=message, also=(known.seq,))

    def on_gap(self) -> None:
        self._known.clear()

    def _look(self, session: Session, message: Message, known: _SessionRoots, roots: Mapping[str, Any]) -> None:
        limited = self.life.suspended is not None and self.life.suspended >= known.since
        if self._told.get(session, -inf) >= known.since:
            self.ok(message, known.seq)
        elif limited or session.closed is not None or self._told_anywhere >= known.since:
            self.unclear(message, "the roots have changed, and roots/list_changed may not have got here", known.seq)
        elif known.roots.keys() == roots.keys():
            self.unclear(message, "only names of roots have changed, and no roots/list_changed came", known.seq)
        else:
            self.fail(message, "the roots have changed, and no roots/list_changed came", known.seq)


@judges("roots.declared-served")
class RootsDeclaredServed(Serving):
    """Serves the roots it declares. No folder open is an empty list, not an error."""

    methods = frozenset({"roots/list"})

    def is_served(self, reply: Reply) -> bool:
        return isinstance(members(reply.value).get("roots"), list)

    def on_question(self, question: Question) -> None:
        self.owe(question, self.allowances.alive_s, self._look)

    def _look(self, question: Question) -> None:
        session, delivered = question.sent.session, question.delivered or 0.0
        if session is None or session.closed is not None or session.last_act <= delivered:
            return
        if self.is_open(question):
            said = f"no answer in {self.allowances.alive_s:g} s to every such question, though it is declared"
            self.deny(question.seq, question, said)
        else:
            self.unclear(question, "the server gave the question up before an answer came")


def _listed(reply: Reply) -> list[Mapping[str, Any]]:
    roots = members(reply.value).get("roots")
    return [members(root) for root in roots] if isinstance(roots, list) else []


def _folder(uri: Any) -> str:
    """A URI as it names the same folder in any spelling."""
    return unquote(str(uri)).casefold().rstrip("/")


def _declares(session: Session) -> bool:
    return members(session.capabilities.get("roots")).get("listChanged") is True
