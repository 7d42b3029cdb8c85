"""What one client was told in answers: small facts, taken at the delivery, as rules ask for them long after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ...log.bounded import Newest
from ...views.clients import Session
from ...views.retention import members
from ...views.values import Message
from .alike import CACHEABLE
from .listings import PAGED, ListPage, Lists, Pages
from .series import ALWAYS, NEVER
from .skills import METHODS as SKILLS
from .skills import Skills

_MOST_ANSWERS: Final = 5_000
_MOST_SESSIONS: Final = 1_000
# Lists with a further page: of one, a person may not have wanted more.
_FIRST_PAGES: Final = 2


class FirstPage(NamedTuple):
    """A request for a list that had further pages, and when the answer was delivered."""

    seq: int
    method: str
    revision: str | None
    at: float


@dataclass(slots=True, eq=False)
class Known:
    """What one client was told.

    `lists` are all that were delivered to it, `lists_in` those of each legacy session, and `offered` the capabilities
    of the server as it was told them there. `errors` are the codes of errors by the requests that they answer, 0 for a
    tool's, `skills` the entries of skills, and `pages` the results that have pages or a lifetime. `first_pages` are the
    first two lists that had further pages, and `followed` is when it first asked for such a page. `lifetime` is the
    first answer that said how long it may be kept: when it was delivered, and how many seconds.
    """

    lists: Lists = field(default_factory=Lists)
    lists_in: Newest[Session, Lists] = field(default_factory=lambda: Newest(_MOST_SESSIONS))
    offered: Newest[Session, Mapping[str, Any]] = field(default_factory=lambda: Newest(_MOST_SESSIONS))
    errors: Newest[int, int] = field(default_factory=lambda: Newest(_MOST_ANSWERS))
    pages: Newest[int, ListPage] = field(default_factory=lambda: Newest(_MOST_ANSWERS))
    skills: Skills = field(default_factory=Skills)
    first_pages: list[FirstPage] = field(default_factory=list)
    followed: float = ALWAYS
    lifetime: tuple[float, float] | None = None

    def asked(self, request: Message) -> None:
        """The client sent a request."""
        if request.method in PAGED and self.followed == ALWAYS and isinstance(request.params.get("cursor"), str):
            self.followed = request.at

    def answered(self, request: Message, answer: Message, at: float, pages: Pages) -> None:
        """The client has the answer to a request. Raises `ForgottenError`. `pages` reads results."""
        method, session, raw = request.method, request.in_session, answer.raw
        if method in SKILLS:
            self.skills.deliver(request, answer, at)
        if answer.rpc == "error":
            code = members(answer.error).get("code")
            self.errors.store(request.seq, code if isinstance(code, int) else 1)
        elif method == "tools/call":
            if b'"isError"' in raw and members(answer.result).get("isError") is True:
                self.errors.store(request.seq, 0)
        elif method == "initialize" and session is not None and session not in self.offered:
            # Of a second answer in one session a request before it knew nothing.
            self.offered.store(session, members(members(answer.result).get("capabilities")))
        elif method in PAGED or (method in CACHEABLE and b'"ttlMs"' in raw):
            digest, page = pages.read(method, raw, lambda: members(answer.result))
            self.pages.store(request.seq, page)
            if page.ttl_ms and self.lifetime is None:
                self.lifetime = at, page.ttl_ms / 1000
            if method in PAGED:
                self._list(request, digest, page, at)

    def _list(self, request: Message, digest: bytes, page: ListPage, at: float) -> None:
        session, revision = request.in_session, request.revision
        self.lists.deliver(digest, page, at, revision, session)
        if session is not None:
            lists = self.lists_of(session)
            lists.deliver(digest, page, at, revision, session)
            self.lists_in.store(session, lists)
        if page.next_cursor is not None and len(self.first_pages) < _FIRST_PAGES:
            self.first_pages.append(FirstPage(request.seq, page.method, revision, at))

    def lists_of(self, session: Session) -> Lists:
        """The lists that were delivered in a legacy session, which may have made room."""
        return self.lists_in.get(session) or Lists(NEVER if self.lists_in.is_full else ALWAYS)
