"""The probe's side: entries of its event log, read through its API, and what they say of the calls with a mark.

A gateway may change ids, tokens, headers and sessions, and may repeat a request; arguments come through all of them. So
a call is found by the mark in its arguments, and from it, by the context of its entries, its exchange, its session and
its connection. A request without arguments, such as `initialize`, is found by a header, or else by the name of
the client.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, TypeAlias

import trio
from pydantic_core import from_json

from ..wire.jsonrpc import encode
from .client.live import Sending, exchanging
from .client.records import KEPT_BYTES
from .client.target import Target
from .marks import belongs, named_mark, number_in

Row: TypeAlias = Mapping[str, Any]

_POLL_S: Final = 0.05
_PAGE: Final = 500
_MARK: Final = "x-probe-mark"
_HIDDEN: Final = "[hidden]"


class BehindError(Exception):
    """The log of the probe cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """A tool call as the probe ran it: the entry that began it, and all entries that are about it."""

    started: Row
    rows: tuple[Row, ...]

    def of(self, kind: str) -> list[Row]:
        """Its entries of one kind."""
        return [row for row in self.rows if row["kind"] == kind]

    @property
    def settled(self) -> Row | None:
        """Its end."""
        return next(iter(self.of("call.settled")), None)

    @property
    def cancelled(self) -> Row | None:
        """The cancellation that had an effect."""
        return next((row for row in self.of("call.cancelled") if row["effect"]), None)

    @property
    def progress(self) -> list[Row]:
        """The progress notifications that were made for it."""
        return [row for row in self.of("message.emitted") if row["method"] == "notifications/progress"]


@dataclass(frozen=True)
class Behind:
    """Entries of one trial, as the API gives them, oldest first."""

    entries: tuple[Row, ...]
    _calls: dict[int, list[ProbeCall]] = field(default_factory=dict, compare=False, repr=False)

    def calls(self, mark: int) -> list[ProbeCall]:
        """The calls with this mark, in the order in which they began."""
        if mark not in self._calls:
            self._calls[mark] = [ProbeCall(row, self._about(row)) for row in self._starts() if mark_of(row) == mark]
        return self._calls[mark]

    def all_calls(self, mark: int) -> list[ProbeCall]:
        """The calls of the trial with this mark."""
        begun = [row for row in self._starts() if belongs(mark_of(row) or 0, mark)]
        return [ProbeCall(row, self._about(row)) for row in begun]

    def _starts(self) -> list[Row]:
        return [row for row in self.entries if row["kind"] == "call.started" and row["tool"] is not None]

    def _about(self, started: Row) -> tuple[Row, ...]:
        call, exchange = started["call"], started["exchange"]
        return tuple(
            row
            for row in self.entries
            if row["call"] == call or (exchange is not None and row["exchange"] == exchange and row["call"] is None)
        )

    def requests(self, mark: int | None = None) -> list[Row]:
        """The heads of HTTP requests; with a mark, those whose header has it."""
        heads = [row for row in self.entries if row["kind"] == "http.request"]
        return heads if mark is None else [row for row in heads if _header_mark(row) == mark]

    def request_of(self, call: ProbeCall) -> Row | None:
        """The head of the request that brought a call."""
        exchange = call.started["exchange"]
        return next((row for row in self.requests() if row["exchange"] == exchange), None)

    def received(self, method: str, session: str | None = None) -> list[Row]:
        """The messages of this method that the probe received, in any session or in one."""
        return [
            row
            for row in self.entries
            if row["kind"] == "message.received"
            and row["method"] == method
            and (session is None or row["session"] == session)
        ]

    def of(self, kind: str, **fields: Any) -> list[Row]:
        """The entries of one kind with these values."""
        return [
            row
            for row in self.entries
            if row["kind"] == kind and all(row[name] == value for name, value in fields.items())
        ]


def mark_of(started: Row) -> int | None:
    """The mark in the arguments of a call; None where there is none, and for 0, which all calls without one have."""
    arguments = started["arguments"]
    mark = arguments.get("mark") if isinstance(arguments, dict) else None
    # A gateway may write a number anew: 7 as 7.0.
    if isinstance(mark, int) or (isinstance(mark, float) and mark.is_integer()):
        return int(mark) or None
    return None


def joined(entries: Sequence[Row], mark: int, others: Iterable[int]) -> Behind:
    """The entries that came while a trial ran, without those that are known to be about another one."""
    foreign = tuple(other for other in others if other != mark)
    sessions: set[str] = set()
    exchanges: set[int] = set()
    own_sessions: set[str] = set()
    own_exchanges: set[int] = set()
    for row in entries:
        number = _mark_in(row)
        if number is None:
            continue
        if belongs(number, mark):
            own_sessions.add(row["session"] or "")
            if row["kind"] == "call.started":
                # An argument says more than a header: a gateway may send the headers of another request.
                own_exchanges.add(row["exchange"] or -1)
        elif any(belongs(number, other) for other in foreign):
            sessions.add(row["session"] or "")
            exchanges.add(row["exchange"] or -1)
    sessions -= own_sessions | {""}
    exchanges -= own_exchanges
    kept = [row for row in entries if row["session"] not in sessions and row["exchange"] not in exchanges]
    return Behind(tuple(kept))


def _mark_in(row: Row) -> int | None:
    if row["kind"] == "call.started":
        return mark_of(row)
    if row["kind"] == "http.request":
        return _header_mark(row)
    if row["kind"] in ("session.opened", "client.seen"):
        return named_mark(str(row["client_name"]))
    return None


def _header_mark(head: Row) -> int | None:
    return number_in(dict(head["headers"]).get(_MARK, ""))


def _lighter(row: Row) -> Row:
    """The row without a message that is too large to keep: what is compared of that is what arrived."""
    message = row.get("message")
    large = isinstance(message, dict) and len(encode(message)) > KEPT_BYTES
    return {**row, "message": None} if large else row


class Follower:
    """Reads the log of one probe, page by page, and keeps what it has read.

    Values of headers that are `secret` are hidden, as a gateway may pass them on.
    """

    def __init__(self, api: Target, secret: frozenset[str] = frozenset()) -> None:
        self._api = api
        self._secret = secret
        self.run: str | None = None
        self.next = 0
        self._rows: list[Row] = []
        self._lock = trio.Lock()

    async def begin(self) -> None:
        """Note where the log stands; what was before is not read. Raises `BehindError`."""
        page = await page_of(self._api, "before=1000000000000&limit=1")
        self.run, self.next = page["run"], page["last"]

    async def catch_up(self) -> None:
        """Read what is new. Raises `BehindError`, also where entries were pushed out before they were read."""
        async with self._lock:
            while await self._read_page():
                pass

    async def _read_page(self) -> bool:
        """Read one page; whether there is another one."""
        page = await page_of(self._api, f"since={self.next}&limit={_PAGE}")
        if page["run"] != self.run:
            raise BehindError("the probe was started anew in the middle of the run")
        if page["gap"] is not None:
            raise BehindError("the log of the probe is too small for its traffic: entries were lost unread")
        self._rows.extend(_lighter(self._hidden(row)) for row in page["events"])
        moved = page["next"] > self.next
        self.next = page["next"]
        return bool(moved and self.next < page["last"])

    def _hidden(self, row: Row) -> Row:
        if row["kind"] != "http.request" or not self._secret:
            return row
        return {
            **row,
            "headers": [[name, _HIDDEN if value in self._secret else value] for name, value in row["headers"]],
        }

    async def wait(self, met: Callable[[Sequence[Row]], bool], since: int, seconds: float) -> bool:
        """Read on until the entries after number `since` are so, or so many seconds have passed; whether they are."""
        until = trio.current_time() + seconds
        await self.catch_up()
        # The log is on another machine, so there is nothing to wait on but the clock.
        while not met(self.after(since)) and trio.current_time() < until:
            await trio.sleep(_POLL_S)
            await self.catch_up()
        return met(self.after(since))

    def after(self, since: int) -> list[Row]:
        """The entries after a number."""
        return self._rows[bisect_right(self._rows, since, key=itemgetter("seq")) :]


async def page_of(api: Target, query: str) -> Mapping[str, Any]:
    """One page of the log: `run`, `events`, and `next`, where the next page begins. Raises `BehindError`."""
    at = api.at(f"{api.path}/events?{query}")
    async with exchanging(at, Sending("log", "GET", (("Accept", "application/json"),))) as live:
        await live.wait_over(20.0)
        body = live.body
    record = live.record()
    if record.status != 200 or record.end != "complete":
        came = record.problem or f"status {record.status}, {record.end}"
        raise BehindError(f"the event log of the probe at {api.url} cannot be read: {came}")
    page = from_json(body)
    if not isinstance(page, dict) or "events" not in page:
        raise BehindError(f"{api.url} is no API of a probe")
    return page
