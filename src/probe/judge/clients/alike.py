"""What a client asks again and again: equal requests for lists and the like, and what was refused for good."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from ...log.bounded import Newest
from ...views.clients import Connection, Scope
from ...views.retention import members
from ...views.values import Exchange, Message
from .listings import PAGED
from .series import ALWAYS, Series

CACHEABLE: Final = frozenset({*PAGED, "server/discover", "resources/read", "skills/get"}) - {"resources/directory/read"}
"""The requests whose results say how long they may be kept (2026-07-28 server/utilities/caching)."""

FOR_GOOD: Final = frozenset({400, 404, 405, 406, 413, 415})
"""RFC 9110 section 15.5: these answers are about the request itself, so the same one gets the same answer."""

Place: TypeAlias = Scope | Connection | None

_ASKED_AGAIN: Final = CACHEABLE | PAGED | {"subscriptions/listen"}
_MOST_VIEWS: Final = 10_000
_MOST_KEYS: Final = 2_000
_NONE: Final[Series[Any]] = Series()


class Alike:
    """Requests and refused exchanges of one client, each with those that are equal to it."""

    def __init__(self) -> None:
        self._keys: Newest[int, bytes] = Newest(_MOST_VIEWS)
        # By what was asked: when it first lacked which capabilities.
        self._lacking: Newest[bytes, tuple[float, frozenset[str]]] = Newest(_MOST_KEYS)
        self._series: Newest[tuple[Place, bytes], Series[Any]] = Newest(_MOST_KEYS)

    def ask(self, request: Message) -> None:
        """A request came; it is found where its id counts, and on its connection."""
        if request.method in _ASKED_AGAIN:
            self._add(request, request.at, _asked(request), {request.scope, request.place} - {None})

    def refuse(self, exchange: Exchange, at: float) -> None:
        """A response came; what is hidden in the log may differ."""
        request, messages = exchange.request, exchange.messages
        if exchange.status not in FOR_GOOD or not exchange.is_endpoint or request.hidden:
            return
        if not any(message.hidden for message in messages):
            bodies = [without_id(message.value) for message in messages]
            unreadable = None if exchange.unreadable is None else getattr(exchange.unreadable.fact, "head", "")
            key = [request.method, request.path, request.query, exchange.status, bodies, unreadable]
            self._add(exchange, at, _digest(key), {None})

    def lack(self, request: Message, error: Mapping[str, Any], at: float) -> None:
        """The client was told that a request needs capabilities that it did not declare."""
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
        """Those that are equal to a request or a refused exchange, itself among them."""
        key = self._keys.get(view.seq)
        return _NONE if key is None else self._series.get((place, key), _NONE)


def without_id(value: Any) -> Any:
    """A message but for its id."""
    return {name: each for name, each in value.items() if name != "id"} if isinstance(value, dict) else value


def _asked(request: Message) -> bytes:
    return _digest([request.method, {name: value for name, value in request.params.items() if name != "_meta"}])


def _digest(value: Any) -> bytes:
    """Tells a JSON value from others, however long it is."""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()
