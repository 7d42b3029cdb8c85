"""The query of a reader of the feed: the URL's, and `Last-Event-ID`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qsl

from ...core.inbound import HttpHead
from ...log.event_filter import EventFilter, parse
from ...log.query import QueryError, switch, twice, whole_number
from ...views.search.words import Word
from ...views.search.words import read as read_line
from ...views.tables.tables import TABLES, TableName
from ...wire.jsonrpc import clip

OWN = ("since", "tail", "tables", "filter", "view", "passes")
"""The parameters of the feed beside the filters of events."""

_TAIL = 100


@dataclass(frozen=True, slots=True)
class Wishes:
    """The query of one reader. It continues after the event id `since`; None for the newest `tail` passing entries.

    An entry passes if it is `wanted` and passes the `words` of the filter line. `packed`: the reader takes gzip.
    `view`: each entry has its `view`, and the rows of their exchanges come before. `passes` are words of another line:
    views and rows get marks for it, and none is left out.
    """

    wanted: EventFilter
    words: tuple[Word, ...]
    tables: tuple[TableName, ...]
    tail: int
    since: str | None
    packed: bool
    view: bool = False
    passes: tuple[Word, ...] = ()


def read(head: HttpHead, query: str) -> Wishes:
    """The query of a request. Raises `QueryError` for unknown names and values."""
    pairs = parse_qsl(query, keep_blank_values=True)
    own: dict[str, str] = {}
    for name, value in pairs:
        if name in own:
            raise twice(name)
        if name in OWN:
            own[name] = value
    wanted = parse([pair for pair in pairs if pair[0] not in OWN], beside=OWN)
    # An EventSource reconnects with the same query; the header has its newest event id.
    since = head.get("last-event-id") or own.get("since")
    packed = _takes_gzip(head.all("accept-encoding"))
    words = read_line(own.get("filter", ""))
    tables, tail, view = _tables(own.get("tables")), _tail(own.get("tail")), switch("view", own.get("view"))
    passes = read_line(own.get("passes", ""))
    if passes and not view:
        raise QueryError("passes needs view=1")
    return Wishes(wanted, words, tables, tail, since, packed, view, passes)


def _tables(value: str | None) -> tuple[TableName, ...]:
    names = [] if value is None else value.split(",")
    for name in names:
        if name not in TABLES:
            raise QueryError(f"there is no table {clip(name)!r}; known are {', '.join(TABLES)}", TABLES)
    return tuple(cast("TableName", name) for name in dict.fromkeys(names))


def _tail(value: str | None) -> int:
    if value is None:
        return _TAIL
    number = whole_number(value)
    if number is None:
        raise QueryError(f"tail must be a whole number from 0, got {clip(value)!r}")
    return number


def _takes_gzip(accept: str) -> bool:
    """Whether gzip is named with a weight above zero (RFC 9110, section 12.5.3)."""
    for part in accept.lower().replace(" ", "").split(","):
        name, _, weight = part.partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


def place(id: str, run: str, last: int) -> int | None:
    """The number of the entry in an event id; None for an id that this run cannot have given out."""
    named, _, number = id.rpartition("-")
    seq = whole_number(number)
    return seq if named == run and seq is not None and seq <= last else None
