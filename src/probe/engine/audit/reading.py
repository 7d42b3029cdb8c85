"""Reads the audit file: its schema, its queries on one connection each, and rows of older versions.

Everything here blocks. Each function raises `sqlite3.Error` if the file cannot be read, or not within its time.

    runs        one life of a server, and the version of the format of its rows and entries
    calls       the columns for filters, one row for each call: small and quick to read
    rows        the rows, in JSON
    evidence    the log's entries of a call, in JSON

`number` orders the calls of all runs: the number of the run times 2^40, plus the place in the log.

Rows of an earlier version keep their bytes, because a file may have gigabytes of them (`row_as_now`, `entry_as_now`).

    format 1   a row has no `label`. An entry has `pair` in place of `cause`, with the same meaning, and only those
               members of its context that its kind had as fields. A `dispatch.cancelled` has `cause` in place of `by`.

A row of any format may lack `cancelled_how`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic_core import from_json, to_json

from ...log.context import Context
from ...views.records import cancelled_how
from ...views.search.call_filter import CallFilter, Condition

# Room for 10^12 entries in each run, and for eight million runs, in the 63 bits of a key.
RUN_SHIFT = 40

FORMAT = 2
"""The format of rows and entries in the file."""

APPLICATION_ID = 0x4D435041
"""`MCPA` in the header marks the audit's files."""

MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE,
        started_at REAL NOT NULL
    );
    CREATE TABLE calls (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        run TEXT NOT NULL,
        tool TEXT NOT NULL,
        toolset TEXT NOT NULL,
        outcome TEXT,
        session TEXT,
        client_name TEXT NOT NULL,
        era TEXT NOT NULL,
        revision TEXT NOT NULL,
        transport TEXT NOT NULL,
        task TEXT,
        started_at REAL NOT NULL,
        complete INTEGER NOT NULL
    );
    CREATE INDEX calls_tool ON calls (tool, number);
    CREATE INDEX calls_outcome ON calls (outcome, number);
    CREATE INDEX calls_session ON calls (session, number);
    CREATE INDEX calls_client ON calls (client_name, number);
    CREATE INDEX calls_started ON calls (started_at);
    CREATE TABLE rows (number INTEGER PRIMARY KEY, row BLOB NOT NULL);
    CREATE TABLE evidence (number INTEGER NOT NULL, seq INTEGER NOT NULL, entry BLOB NOT NULL);
    CREATE UNIQUE INDEX evidence_place ON evidence (number, seq);
    """,
    """
    ALTER TABLE runs ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE calls ADD COLUMN label TEXT;
    CREATE INDEX calls_label ON calls (label, number);
    """,
)
"""The script at place n changes version n to n + 1. A released one never changes; new ones follow it."""


def row_as_now(row: bytes) -> bytes:
    """A row of format 1 in the form of format 2."""
    return b'{"label":null,' + row[1:]


def with_how(row: bytes) -> bytes:
    """A row with `cancelled_how`, which is made of `cancelled_by` where the row was written without it."""
    # The arguments of a call may have members of any name, and come last.
    if b'"cancelled_how":' in row.partition(b',"arguments":')[0]:
        return row
    by = from_json(row)["cancelled_by"]
    how = to_json(None if by is None else cancelled_how(by))
    return b'{"cancelled_how":' + how + b"," + row[1:]


def entry_as_now(entry: bytes) -> bytes:
    """An entry of format 1 in the present form."""
    value = from_json(entry)
    if value["kind"] == "dispatch.cancelled":
        entry = _renamed(entry, b"cause", b"by")
    entry = _renamed(entry, b"pair", b"cause")
    none = "".join(f'"{name}":null,' for name in Context.__struct_fields__ if name not in value)
    return b"{" + none.encode() + entry[1:]


def _renamed(entry: bytes, old: bytes, new: bytes) -> bytes:
    # Quotation marks inside strings are escaped, and stored JSON is last: so the first match is the member itself.
    return entry.replace(b',"%b":' % old, b',"%b":' % new, 1)


# The time for one query, in seconds: enough for a million rows on a slow disk, and not too long for a person.
_SECONDS: Final = 5.0
# Steps of SQLite's machine between two comparisons with the clock: about a millisecond.
_STEPS: Final = 10_000
MOST_READ: Final = 2000
"""Rows that are read for one page. If the filter passes few of them, the next page goes on."""

# Further bounds for one page: the bytes of the rows, and seconds from the first row on.
_MOST_READ_BYTES: Final = 16 * 1024 * 1024
_LOOKING_S: Final = 1.0
# To read rows takes the interpreter's lock, and the protocol's thread would get it every 5 ms only. So after this many
# bytes the reader sleeps for a moment; this takes a fifth of the time.
_TURN_BYTES: Final = 32 * 1024
_TURN_S: Final = 0.0001
# Above the number of every call.
_BEYOND: Final = 2**63


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows with their numbers, newest first. All above `reached` were considered; None: all rows were."""

    rows: list[tuple[int, bytes]]
    reached: int | None


@dataclass(frozen=True, slots=True)
class KeptRow:
    """One call in the file; `entries` are its evidence with their sequence numbers, in order."""

    row: bytes
    complete: bool
    entries: list[tuple[int, bytes]]


def page(
    path: Path, wanted: CallFilter, before: int | None, limit: int, max_bytes: int, skip: Collection[int] = frozenset()
) -> FoundRows:
    """At most `limit` rows below the number `before` that pass the filter, without those in `skip`.

    `max_bytes` ends the page early, but never before its first row.
    """
    inside = replace(wanted, conditions=())
    with _reading(path) as connection:
        first = _first_of_now(connection)
        found = connection.execute(*_query(wanted.conditions, before))
        rows = ((number, with_how(row if number >= first else row_as_now(row))) for number, row in found)
        return _collect(rows, inside, limit, max_bytes, skip)


def _first_of_now(connection: sqlite3.Connection) -> int:
    (run,) = connection.execute("SELECT min(number) FROM runs WHERE format >= ?", (FORMAT,)).fetchone()
    return _BEYOND if run is None else int(run) << RUN_SHIFT


def _collect(
    rows: Iterator[tuple[int, bytes]], inside: CallFilter, limit: int, max_bytes: int, skip: Collection[int]
) -> FoundRows:
    found: list[tuple[int, bytes]] = []
    size, reached = 0, None
    bounds = _PageBounds() if inside.looks_inside else None
    for number, row in rows:
        full = len(found) == limit or (bool(found) and size + len(row) > max_bytes)
        if full or (bounds is not None and bounds.enough):
            return FoundRows(found, reached)
        reached = number
        if bounds is not None:
            bounds.at(row)
        if number not in skip and inside.matches_row(row):
            found.append((number, row))
            size += len(row)
    return FoundRows(found, None)


class _PageBounds:
    def __init__(self) -> None:
        self._until = time.monotonic() + _LOOKING_S
        self._rows = 0
        self._bytes = 0
        self._turn = 0

    @property
    def enough(self) -> bool:
        much = self._rows >= MOST_READ or self._bytes > _MOST_READ_BYTES or time.monotonic() > self._until
        return self._rows > 0 and much

    def at(self, row: bytes) -> None:
        self._rows += 1
        self._bytes += len(row)
        if self._bytes - self._turn > _TURN_BYTES:
            self._turn = self._bytes
            time.sleep(_TURN_S)


def _query(conditions: tuple[Condition, ...], before: int | None) -> tuple[str, list[str | float]]:
    parts, values = ["1"], list[str | float]()
    if before is not None:
        parts.append("calls.number < ?")
        values.append(before)
    for condition in conditions:
        part, bound = _compared(condition) if condition.operator != "in" else _among(condition)
        parts.append(part)
        values += bound
    # The outer table of a CROSS JOIN is the left one: only rows that meet all conditions are read.
    where = " AND ".join(parts)
    query = f"""
        SELECT calls.number, rows.row FROM calls CROSS JOIN rows ON rows.number = calls.number
        WHERE {where} ORDER BY calls.number DESC
    """  # noqa: S608 - names come from `call_filter`, values are bound
    return query, values


def _compared(condition: Condition) -> tuple[str, list[str | float]]:
    """A condition, with a range of numbers for it: numbers have nearly the same order, so other rows are not read."""
    field, operator, value = condition.field, condition.operator, condition.values[0]
    assert value is not None, "nothing is compared with null"
    bound = ("calls.number >=", "min") if operator == ">=" else ("calls.number <=", "max")
    nearest = f"(SELECT {bound[1]}(number) FROM calls WHERE {field} {operator} ?)"  # noqa: S608 - as above
    return f"{bound[0]} {nearest} AND +calls.{field} {operator} ?", [value, value]


def _among(condition: Condition) -> tuple[str, list[str | float]]:
    """A single value uses its index, in the order of numbers; with several, the rows would have to be sorted."""
    field, given = f"calls.{condition.field}", [value for value in condition.values if value is not None]
    if condition.values == (None,):
        return f"{field} IS NULL", []
    if len(condition.values) == 1:
        return f"{field} = ?", given
    among = f"+{field} IN ({', '.join('?' * len(given))})"
    return f"({among} OR +{field} IS NULL)" if None in condition.values else among, given


def find(path: Path, id: str, max_bytes: int) -> KeptRow | None:
    """One call by its whole id, with the first `max_bytes` of its evidence; with more it is not complete."""
    with _reading(path) as connection:
        known = connection.execute("SELECT number, complete FROM calls WHERE id = ?", (id,)).fetchone()
        if known is None:
            return None
        number, complete = known
        (row,) = connection.execute("SELECT row FROM rows WHERE number = ?", (number,)).fetchone()
        evidence = connection.execute("SELECT seq, entry FROM evidence WHERE number = ? ORDER BY seq", (number,))
        entries, whole = _first_bytes(evidence, max_bytes)
        if number < _first_of_now(connection):
            row, entries = row_as_now(row), [(seq, entry_as_now(entry)) for seq, entry in entries]
        return KeptRow(with_how(row), bool(complete) and whole, entries)


def _first_bytes(evidence: sqlite3.Cursor, max_bytes: int) -> tuple[list[tuple[int, bytes]], bool]:
    entries: list[tuple[int, bytes]] = []
    size = 0
    for seq, entry in evidence:
        size += len(entry)
        if size > max_bytes:
            return entries, False
        entries.append((seq, entry))
    return entries, True


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1, isolation_level=None)
    try:
        until = time.monotonic() + _SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()
