"""The schema of the audit file, and the migration of an older one.

The fields that filters ask for stand in `calls`, apart from the rows themselves, so that all of them are read quickly.

    runs        one life of a server, and the version of the format in which its rows and entries are written
    calls       what filters ask for, of each row
    rows        the rows, in JSON
    evidence    entries of the log that belong to a call, in JSON

`number` orders the calls of all runs: the number of the run, and within it the place in the log.

Rows of an earlier version are never written anew, because a file may have gigabytes of them. They stay byte for byte,
and `audit_reading` shows them in the form of today (`audit_older`).
"""

from __future__ import annotations

from collections.abc import Sequence

# Runs below a million million entries each, and eight million runs, in the 63 bits of a key.
RUN_SHIFT = 40

FORMAT = 2
"""The format of rows and entries in the file. In format 1 rows have no `label`, and entries have no `cause`."""

APPLICATION_ID = 0x4D435041
"""`MCPA` in the header of the file says whose it is."""

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
"""The one at place n makes version n + 1 of version n. A released one is never changed, only followed."""
