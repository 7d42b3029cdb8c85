"""Small facts from the answers to one client, taken at the delivery, and its equal requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

from ...log.bounded import Newest
from ...views.clients import Connection, Scope, Session
from ...views.retention import members
from ...views.values import Exchange, Message
from ..retention import BOUNDS
from .listings import PAGED, ListPage, Lists, Pages
from .series import ALWAYS, NEVER, Series
from .skills import METHODS as SKILLS
from .skills import Skills

CACHEABLE: Final = frozenset({*PAGED, "server/discover", "resources/read", "skills/get"}) - {"resources/directory/read"}
"""The requests whose results say how long they may be kept (2026-07-28 server/utilities/caching)."""

FOR_GOOD: Final = frozenset({400, 404, 405, 406, 413, 415})
"""RFC 9110 section 15.5: these answers are about the request itself, so the same one gets the same answer."""

Place: TypeAlias = Scope | Connection | None

_ASKED_AGAIN: Final = CACHEABLE | PAGED | {"subscriptions/listen"}
_NONE: Final[Series[Any]] = Series()


class Alike:
    """Requests and refused exchanges of one client, each with those that are equal to it."""

    def __init__(self) -> None:
        # Of two kinds of view; and each request is in two places.
        self._keys: Newest[int, bytes] = Newest(2 * BOUNDS.views)
        # By what was asked: when it first lacked which capabilities.
        self._lacking: Newest[bytes, tuple[float, frozenset[str]]] = Newest(BOUNDS.places)
        self._series: Newest[tuple[Place, bytes], Series[Any]] = Newest(2 * BOUNDS.places)

    def ask(self, request: Message) -> None:
        """A request is found where its id counts, and on its connection."""
        if request.method in _ASKED_AGAIN:
            self._add(request, request.at, _asked(request), {request.scope, request.place} - {None})

    def refuse(self, exchange: Exchange, at: float) -> None:
        """A response came. Requests with hidden parts may differ, so they are equal to none."""
        request, messages = exchange.request, exchange.messages
        if exchange.status not in FOR_GOOD or not exchange.is_endpoint or request.hidden:
            return
        if not any(message.hidden for message in messages):
            bodies = [without_id(message.value) for message in messages]
            unreadable = None if exchange.unreadable is None else getattr(exchange.unreadable.fact, "head", "")
            key = [request.method, request.path, request.query, exchange.status, bodies, unreadable]
            self._add(exchange, at, _digest(key), {None})

    def lack(self, request: Message, error: Mapping[str, Any], at: float) -> None:
        """A request needs capabilities that it did not declare."""
        key, required = _asked(request), members(members(error.get("data")).get("requiredCapabilities"))
        self._add(request, at, key, {None})
        if key not in self._lacking:
            self._lacking.store(key, (at, frozenset(required)))

    def lacked(self, request: Message) -> frozenset[str] | None:
        """The capabilities that an equal request lacked before this one; None without such a request."""
        at, required = (self._lacking and self._lacking.get(_asked(request))) or (ALWAYS, None)
        return required if at < request.at else None

    def _add(self, view: Any, at: float, key: bytes, places: set[Any]) -> None:
        self._keys.store(view.seq, key)
        for place in places:
            series = self._series.get((place, key))
            if series is None:
                series = Series()
            series.add(at, view)
            self._series.store((place, key), series)

    def are_equal(self, one: Message, other: Message) -> bool:
        """True if two requests for lists and the like ask for the same, whatever their ids and `_meta`."""
        key = self._keys.get(one.seq)
        return key is not None and key == self._keys.get(other.seq)

    def series(self, view: Any, place: Place) -> Series[Any]:
        """The equal requests or refused exchanges, this one among them."""
        key = self._keys.get(view.seq)
        return _NONE if key is None else self._series.get((place, key), _NONE)


def without_id(value: Any) -> Any:
    """A message but for its id."""
    return {name: each for name, each in value.items() if name != "id"} if isinstance(value, dict) else value


def _asked(request: Message) -> bytes:
    return _digest([request.method, {name: value for name, value in request.params.items() if name != "_meta"}])


def _digest(value: Any) -> bytes:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


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
    """Facts from the answers to one client.

    `lists` are all that were delivered, `lists_in` those of each legacy session, and `offered` the capabilities of the
    server there. `errors` are the codes of errors by the requests that they answer, 0 for a tool's, `skills` the
    entries of skills, and `pages` the results that have pages or a lifetime. `first_pages` are the first two lists with
    further pages, `followed` is the time of the first request for such a page. `lifetime` is the first answer with a
    lifetime: when it was delivered, and how many seconds.
    """

    lists: Lists = field(default_factory=Lists)
    lists_in: Newest[Session, Lists] = field(default_factory=lambda: Newest(BOUNDS.places))
    offered: Newest[Session, Mapping[str, Any]] = field(default_factory=lambda: Newest(BOUNDS.places))
    errors: Newest[int, int] = field(default_factory=lambda: Newest(BOUNDS.views))
    pages: Newest[int, ListPage] = field(default_factory=lambda: Newest(BOUNDS.views))
    skills: Skills = field(default_factory=Skills)
    first_pages: list[FirstPage] = field(default_factory=list)
    followed: float = ALWAYS
    lifetime: tuple[float, float] | None = None

    def asked(self, request: Message) -> None:
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
        """The lists of a legacy session, which may have made room."""
        return self.lists_in.get(session) or Lists(NEVER if self.lists_in.is_full else ALWAYS)
