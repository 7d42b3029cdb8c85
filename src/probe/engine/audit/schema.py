"""The schema of the audit file, and the migration of an older one.

Filters use columns of `calls`. The rows themselves are in another table, so that `calls` is small and quick to read.

    runs        one life of a server, and the version of the format of its rows and entries
    calls       the columns for filters, one row for each call
    rows        the rows, in JSON
    evidence    the log's entries of a call, in JSON

`number` orders the calls of all runs: the number of the run times 2^40, plus the place in the log. For example, a call
that begins with entry 17 of run 3 has the number 3 * 2^40 + 17.

Rows of an earlier version are not rewritten, because a file may have gigabytes of them. They keep their bytes, and
`audit.reading` returns them in the present form (`audit.older`).
"""

from __future__ import annotations

from collections.abc import Sequence

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
