"""The requests of a log, as far as they are compared with those of another one.

Fed with the entries of one or more runs. Of each request only names, sizes and times are kept, of at most 10,000
requests: `is_full` says that more came. `is_whole` says that no entry is missing, so that the n-th request of a kind is
known to be the n-th.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ...log.header import End
from ...log.ndjson import Item
from ...wire.jsonrpc import ProgressToken, RequestId, encode, id_length, is_id
from ..values import members

MOST: Final = 10_000
"""The number of requests of a log that are compared at most."""

# Requests whose head has come, and not yet their message.
_MOST_HEADS: Final = 1_000
# A request with more or longer names says nothing about its names.
_MOST_NAMES: Final = 200
_LONGEST_NAME: Final = 200
_LONGEST_TOKEN: Final = 1024
# Parameters that say on every way which request it is. A cursor or the id of a task is another one in each run.
_SAYING: Final = ("name", "uri", "arguments", "ref", "argument")
# These are open as long as the client likes.
_OPEN: Final = frozenset({"subscriptions/listen"})
_BY_THE_CLIENT: Final = frozenset({"notification", "disconnect", "tasks_cancel"})

Key: TypeAlias = tuple[str, bytes]
"""A request's method, and a digest of the parameters that say which one it is."""

Names: TypeAlias = frozenset[str]
"""Names of headers or members."""


@dataclass(slots=True, eq=False)
class Request:
    """One request. `place` and `ended_place` are the places of entries in all runs; `run` says which run it is of.

    `headers` and `meta` are names, None where they are not known. `at` and `ended` are the clock at its arrival, and at
    its answer or cancellation, in seconds. `steps` are the progress notifications of its call, `unsent` the reports
    that were coalesced or dropped.
    """

    key: Key
    run: int
    place: int
    at: float
    id: RequestId | None
    token: ProgressToken | None
    headers: Names | None
    meta: Names | None
    session: str | None
    exchange: int | None
    further_page: bool
    more_pages: bool = False
    ended_place: int | None = None
    ended: float | None = None
    steps: int = 0
    unsent: int = 0
    cancelled: bool = False
    asked_to_cancel: bool = False
    ran_ms: float | None = None

    @property
    def method(self) -> str:
        """The method."""
        return self.key[0]

    def ends_before(self, other: Request) -> bool:
        """Whether it had its answer before another one came."""
        return self.ended_place is not None and self.ended_place < other.place


class Traffic:
    """The requests of each client of a log, by the client's label; None where it has none."""

    def __init__(self) -> None:
        self.clients: dict[str | None, list[Request]] = {}
        self.programs: dict[str | None, set[tuple[str, str]]] = {}
        self.is_full = False
        self.is_whole = True
        self._place = 0
        self._run = 0
        self._count = 0
        self._heads: Newest[int, Names | None] = Newest(_MOST_HEADS)
        self._by_entry: dict[int, Request] = {}
        self._by_call: dict[str, Request] = {}
        self._names: Newest[Names, Names] = Newest(_MOST_HEADS)
        self._takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.HttpRequest: self._head,
            events.SessionOpened: self._program,
            events.ClientSeen: self._program,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.MessageDropped: self._dropped,
            events.CallStarted: self._started,
            events.CallCancelled: self._cancelled,
            events.CallSettled: self._settled,
        }

    def begin(self) -> None:
        """Another run begins, whose numbers have begun anew."""
        self._run += 1
        self._heads.clear()
        self._by_entry.clear()
        self._by_call.clear()

    def end(self, end: End | None) -> None:
        """The log of the run is over; None where it was cut off."""
        if end is None or end.why != "complete":
            self.is_whole = False

    def take(self, item: Item) -> None:
        """The next item of the run."""
        if not isinstance(item, Entry):
            self.is_whole = False
            return
        self._place += 1
        taker = self._takers.get(type(item.fact))
        if taker is not None:
            taker(item, item.fact)

    def _head(self, entry: Entry, fact: events.HttpRequest) -> None:
        if entry.context.exchange is not None:
            self._heads.store(entry.context.exchange, self._shared(name for name, _ in fact.headers))

    def _shared(self, names: Any) -> Names | None:
        """These names, once for all requests that have the same."""
        found = frozenset(names)
        if len(found) > _MOST_NAMES or any(len(name) > _LONGEST_NAME for name in found):
            return None
        known = self._names.get(found)
        if known is None:
            self._names.store(found, found)
        return known or found

    def _program(self, entry: Entry, fact: events.SessionOpened | events.ClientSeen) -> None:
        known = self.programs.setdefault(entry.context.label, set())
        # Two are several already.
        if len(known) < 2:
            known.add((fact.client_name, fact.client_version))

    def _received(self, entry: Entry, fact: events.MessageReceived) -> None:
        if fact.rpc != "request" or fact.method is None or fact.method in _OPEN:
            return
        if self._count >= MOST:
            self.is_full = True
            return
        self._count += 1
        context = entry.context
        params = members(members(from_json(fact.message)).get("params"))
        meta = members(params.get("_meta"))
        token = meta.get("progressToken")
        saying = {name: _plain(params[name]) for name in _SAYING if name in params}
        request = Request(
            key=(fact.method, sha256(encode(saying)).digest()),
            run=self._run,
            place=self._place,
            at=entry.mono,
            id=fact.id,
            token=_short(token) if is_id(token) else None,
            headers=None if context.exchange is None else self._heads.get(context.exchange),
            meta=self._shared(name for name in meta if name != "progressToken"),
            session=context.session if events.is_session(context.session) else None,
            exchange=context.exchange,
            further_page="cursor" in params,
        )
        self.clients.setdefault(context.label, []).append(request)
        self._by_entry[entry.seq] = request

    def _emitted(self, entry: Entry, fact: events.MessageEmitted) -> None:
        if fact.rpc in ("response", "error"):
            request = None if entry.cause is None else self._by_entry.get(entry.cause)
            if request is not None:
                self._end(request, entry)
                if request.method.endswith("/list"):
                    result = members(members(from_json(fact.message)).get("result"))
                    request.more_pages = result.get("nextCursor") is not None
        elif fact.method == "notifications/progress":
            request = self._by_call.get(entry.context.call or "")
            if request is not None:
                request.steps += 1

    def _end(self, request: Request, entry: Entry) -> None:
        if request.ended is None:
            request.ended, request.ended_place = entry.mono, self._place

    def _dropped(self, entry: Entry, fact: events.MessageDropped) -> None:
        request = self._by_call.get(entry.context.call or "")
        if request is not None and fact.method == "notifications/progress":
            request.unsent += 1

    def _started(self, entry: Entry, fact: events.CallStarted) -> None:
        request = None if entry.cause is None else self._by_entry.get(entry.cause)
        if request is not None and entry.context.call is not None:
            self._by_call[entry.context.call] = request

    def _cancelled(self, entry: Entry, fact: events.CallCancelled) -> None:
        request = self._by_call.get(entry.context.call or "")
        if request is not None:
            request.asked_to_cancel = True
            if fact.effect:
                request.cancelled = fact.by in _BY_THE_CLIENT
                self._end(request, entry)

    def _settled(self, entry: Entry, fact: events.CallSettled) -> None:
        request = self._by_call.get(entry.context.call or "")
        if request is not None:
            request.ran_ms = fact.duration_ms
            request.unsent += fact.coalesced


def _short(token: ProgressToken) -> ProgressToken:
    if id_length(token) <= _LONGEST_TOKEN:
        return token
    return token[:_LONGEST_TOKEN] if isinstance(token, str) else 0


def _plain(value: Any) -> Any:
    """A JSON value in one form: some gateways write 1 as 1.0, or order members anew."""
    if isinstance(value, dict):
        return {name: _plain(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
