"""The probe's side: its event log, read through its API, and the entries of a trial, found by the mark of a call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, TypeAlias

import trio
from pydantic_core import from_json

from ..wire.jsonrpc import encode
from . import refusal
from .client.live import Sending, Target, exchanging
from .client.records import KEPT_BYTES
from .marks import belongs, named_mark, number_in, of_run

Row: TypeAlias = Mapping[str, Any]

_POLL_S: Final = 0.05
_PAGE: Final = 500
_MARK: Final = "x-probe-mark"
_HIDDEN: Final = "[hidden]"


class BehindError(Exception):
    """The log of the probe cannot be read, or does not have this run."""


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """A tool call at the probe: its `call.started`, and all entries about it."""

    started: Row
    rows: tuple[Row, ...]

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row["kind"] == kind]

    @property
    def settled(self) -> Row | None:
        """None while it runs."""
        return next(iter(self.of("call.settled")), None)

    @property
    def cancelled(self) -> Row | None:
        """The first `call.cancelled` with an effect."""
        return next((row for row in self.of("call.cancelled") if row["effect"]), None)

    @property
    def progress(self) -> list[Row]:
        return [row for row in self.of("message.emitted") if row["method"] == "notifications/progress"]


@dataclass(frozen=True)
class Behind:
    """Entries of one trial, as the API gives them, oldest first."""

    entries: tuple[Row, ...]
    _calls: dict[int, list[ProbeCall]] = field(default_factory=dict, compare=False, repr=False)

    def calls(self, mark: int) -> list[ProbeCall]:
        """The calls with this mark, first begun first."""
        if mark not in self._calls:
            self._calls[mark] = [ProbeCall(row, self._about(row)) for row in self._starts() if mark_of(row) == mark]
        return self._calls[mark]

    def all_calls(self, mark: int) -> list[ProbeCall]:
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

    def is_found(self, mark: int) -> bool:
        numbers = (_argument(row) or _named(row) for row in self.entries)
        return any(number is not None and belongs(number, mark) for number in numbers)

    def own_requests(self, mark: int) -> list[Row]:
        return joined(self.entries, mark, strict=True).of("http.request")

    def request_of(self, call: ProbeCall) -> Row | None:
        exchange = call.started["exchange"]
        return next((row for row in self.of("http.request", exchange=exchange)), None)

    def of(self, kind: str, **fields: Any) -> list[Row]:
        """The entries of one kind with these values, such as `of("message.received", method="ping")`."""
        return [
            row
            for row in self.entries
            if row["kind"] == kind and all(row[name] == value for name, value in fields.items())
        ]


def mark_of(started: Row) -> int | None:
    """The mark in the arguments of a call; None without one and for 0, the default."""
    arguments = started["arguments"]
    mark = arguments.get("mark") if isinstance(arguments, dict) else None
    # A gateway may write a number anew: 7 as 7.0.
    if isinstance(mark, int) or (isinstance(mark, float) and mark.is_integer()):
        return int(mark) or None
    return None


def joined(entries: Sequence[Row], mark: int, *, strict: bool = False) -> Behind:
    """The entries of a trial, and those without a mark in its exchanges, sessions and connections.

    A gateway may remove marks, so an entry without an owner is kept; with `strict`, for the direct way, it is dropped.
    """
    owners = _Owners(entries, mark)
    return Behind(tuple(row for row in entries if owners.keep(row, strict=strict)))


def of_others(entries: Iterable[Row], first: int) -> bool:
    """True if any entry has a mark outside the run with this first mark."""
    numbers = (_argument(row) or _named(row) for row in entries)
    return any(number is not None and not of_run(number, first) for number in numbers)


class _Owners:
    """Calls, exchanges, sessions and connections: True for those of a trial, False for those of another one."""

    def __init__(self, entries: Sequence[Row], mark: int) -> None:
        self._calls: dict[str, bool] = {}
        self._exchanges: dict[int, bool] = {}
        self._sessions: dict[str, bool] = {}
        self._connections: dict[str, bool] = {}
        self._read_names(entries, mark)
        self._read_arguments(entries, mark)
        for row in entries:
            _hand_on(row, self._exchanges, "exchange", self._sessions, "session")
        known = set(self._exchanges)
        for row in (row for row in entries if row["exchange"] not in known):
            _hand_on(row, self._sessions, "session", self._exchanges, "exchange")
        for row in entries:
            _hand_on(row, self._exchanges, "exchange", self._connections, "connection")

    def _read_names(self, entries: Sequence[Row], mark: int) -> None:
        for row in entries:
            number = _named(row)
            if number is not None:
                _note(self._exchanges, row["exchange"], own=belongs(number, mark))
                _note(self._sessions, row["session"], own=belongs(number, mark))

    def _read_arguments(self, entries: Sequence[Row], mark: int) -> None:
        called = [(row, number) for row in entries if (number := _argument(row)) is not None]
        # Arguments decide against headers: a gateway may send the headers of another request.
        for row, _ in called:
            self._exchanges.pop(row["exchange"], None)
        for row, number in called:
            _note(self._exchanges, row["exchange"], own=belongs(number, mark))
            _note(self._calls, row["call"], own=belongs(number, mark))

    def keep(self, row: Row, *, strict: bool) -> bool:
        known: tuple[tuple[Mapping[Any, bool], Any], ...] = (
            (self._calls, row["call"]),
            (self._exchanges, row["exchange"]),
            (self._sessions, row["session"]),
        )
        for owned, key in known:
            if key in owned:
                return owned[key]
        # A connection decides for entries without an exchange only: its exchanges may be of several trials.
        if row["exchange"] is None and row["session"] is None and row["connection"] in self._connections:
            return self._connections[row["connection"]]
        return not strict


def _note(owned: dict[Any, bool], key: Any, *, own: bool) -> None:
    if key is not None:
        owned[key] = own or owned.get(key, False)


def _hand_on(row: Row, known: Mapping[Any, bool], by: str, owned: dict[Any, bool], name: str) -> None:
    if row[by] in known:
        _note(owned, row[name], own=known[row[by]])


def _argument(row: Row) -> int | None:
    if row["kind"] == "call.started":
        return mark_of(row)
    if row["kind"] == "message.received" and row["method"] == "tools/call" and isinstance(row["message"], dict):
        params = row["message"].get("params")
        return mark_of({"arguments": params.get("arguments")}) if isinstance(params, dict) else None
    return None


def _named(row: Row) -> int | None:
    if row["kind"] == "http.request":
        return number_in(dict(row["headers"]).get(_MARK, ""))
    if row["kind"] in ("session.opened", "client.seen"):
        return named_mark(str(row["client_name"]))
    return None


def _lighter(row: Row) -> Row:
    message = row.get("message")
    large = isinstance(message, dict) and len(encode(message)) > KEPT_BYTES
    return {**row, "message": None} if large else row


class Follower:
    """Reads the log of one probe page by page, and keeps the rows.

    `secret` values of headers, such as a token for the gateway, are hidden: a gateway may pass them on.
    """

    def __init__(self, api: Target, secret: frozenset[str] = frozenset()) -> None:
        self._api = api
        self._secret = secret
        self.run: str | None = None
        self.next = 0
        self._rows: list[Row] = []
        self._lock = trio.Lock()

    async def begin(self) -> None:
        """Raises `BehindError`."""
        page = await page_of(self._api, "before=1000000000000&limit=1")
        self.run, self.next = page["run"], page["last"]

    async def catch_up(self) -> None:
        """Read all new entries. Raises `BehindError`, also if the log has dropped unread ones."""
        async with self._lock:
            while await self._read_page():
                pass

    async def _read_page(self) -> bool:
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
        """Read on until `met` is true of the entries after number `since`, for at most `seconds`; returns `met`."""
        until = trio.current_time() + seconds
        await self.catch_up()
        # The log is on another machine and sends no signal, so this polls.
        while not met(self.after(since)) and trio.current_time() < until:
            await trio.sleep(_POLL_S)
            await self.catch_up()
        return met(self.after(since))

    def after(self, since: int) -> list[Row]:
        return self._rows[bisect_right(self._rows, since, key=itemgetter("seq")) :]


async def page_of(api: Target, query: str) -> Mapping[str, Any]:
    """One page of the log: `run`, `events`, and `next`, where the next page begins. Raises `BehindError`."""
    at = api.at(f"{api.path}/events?{query}")
    async with exchanging(at, Sending("log", "GET", (("Accept", "application/json"),))) as live:
        await live.wait_over(20.0)
        body = live.body
    record = live.record()
    if record.status != 200 or record.end != "complete":
        raise BehindError(f"the event log of the probe cannot be read: {refusal.why_no_log(api.url, record)}")
    try:
        page = from_json(body)
    except ValueError:
        page = None
    if not isinstance(page, dict) or "events" not in page:
        raise BehindError(f"{api.url} is no API of a probe")
    return page
