"""The schema of the audit file, and the migration of an older one.

Filters use columns of `calls`. The rows themselves are in another table, so that `calls` is small and quick to read.

    runs        one life of a server, and the version of the format of its rows and entries
    calls       the columns for filters, one row for each call
    rows        the rows, in JSON
    evidence    the log's entries of a call, in JSON

`number` orders the calls of all runs: the number of the run times 2^40, plus the place in the log.

Rows of an earlier version are not rewritten, because a file may have gigabytes of them. They keep their bytes, and
`audit.reading` returns them in the present form (`row_as_now`, `entry_as_now`).

    format 1   a row has no `label`. An entry has `pair` in place of `cause`, with the same meaning, and only those
               members of its context that its kind had as fields. A `dispatch.cancelled` has `cause` in place of `by`.

Such an entry lacks newer fields of its kind. All else is unchanged: stored JSON keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import from_json

from ...log.context import Context

# Room for 10^12 entries in each run, and for eight million runs, in the 63 bits of a key.
RUN_SHIFT = 40

FORMAT = 2
"""The format of rows and entries in the file. In format 1 rows have no `label`, and entries have no `cause`."""

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
    """A row of format 1 in the present form."""
    return b'{"label":null,' + row[1:]


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
