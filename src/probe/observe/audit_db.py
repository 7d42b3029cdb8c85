"""The audit in a file: SQLite in WAL mode. Everything here blocks, and belongs into a thread.

One server writes a file, which a lock beside it ensures; anybody may read. Each writing is one transaction, so that a
server which dies leaves a whole file behind, without its last moments.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from pydantic_core import from_json

from ..wire.jsonrpc import encode
from .audit_schema import APPLICATION_ID, MIGRATIONS

# The first bytes of every SQLite 3 file, and where its header has the version of the schema and the application.
_MAGIC: Final = b"SQLite format 3\0"
_USER_VERSION: Final = slice(60, 64)
_APPLICATION: Final = slice(68, 72)
# Runs below a million million entries each, and eight million runs, in the 63 bits of a key.
_RUN_SHIFT: Final = 40
# How long a lock of another program is waited for within one attempt; the attempts go on.
_BUSY_S: Final = 0.5
# Rows that go in one writing, so that a smaller `audit_rows` or a long run does not hold up what is to be written.
_MOST_REMOVED: Final = 5000
# Pages given back to the file system in one writing: 8 MB.
_MOST_FREED: Final = 2000
# Beyond it the WAL is cut back once it has been copied into the file.
_WAL_BYTES: Final = 16 * 1024 * 1024

FIELDS: Final = (
    *("run", "tool", "toolset", "outcome", "session", "client_name", "era", "revision", "transport", "task"),
    "started_at",
)
"""The fields of a row that stand in columns of their own."""

_UPSERT: Final = f"""
    INSERT INTO calls (number, id, complete, {", ".join(FIELDS)}) VALUES (?, ?, ?, {", ".join("?" * len(FIELDS))})
    ON CONFLICT (number) DO UPDATE SET outcome = excluded.outcome, task = excluded.task,
        complete = min(complete, excluded.complete)
"""  # noqa: S608 - the names are constants


class AuditFileError(Exception):
    """The file cannot be the audit's; it was left as it is. The message is one line that names it."""


@dataclass(frozen=True, slots=True)
class Written:
    """One row as it is written: its place in the log, its id, `FIELDS`, the JSON, and what is new of its evidence.

    `entries` are pairs of a sequence number and the entry's JSON; some may have been written before. They are not
    `complete` where some of them are lost.
    """

    seq: int
    id: str
    fields: tuple[Any, ...]
    row: bytes
    entries: Sequence[tuple[int, bytes]]
    complete: bool


class AuditDb:
    """The writer of one file. Made by `open`; not to be used by two threads at the same time.

    Raises `sqlite3.Error` and `OSError` where the file cannot be used; nothing is then written of what was asked for.
    """

    def __init__(self, path: Path, lock: int, connection: sqlite3.Connection, run_number: int, rows: int) -> None:
        self._path = path
        self._lock = lock
        self._connection = connection
        self._file = _identity(path)
        self._rows = rows
        self.base = run_number << _RUN_SHIFT

    @classmethod
    def open(cls, path: Path, run: str, started_at: float, migrations: Sequence[str] = MIGRATIONS) -> Self:
        """Open or make the file, bring it to the present version, and enter this run.

        Calls that an earlier run left running become `lost`. Raises `AuditFileError` for a file that is not the
        audit's, that is newer than this program, or that another server writes.
        """
        lock = _locked(path)
        try:
            _check_header(path, len(migrations))
            connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection, path, migrations)
                number, rows = _begin_run(connection, run, started_at)
                return cls(path, lock, connection, number, rows)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            os.close(lock)
            raise

    def close(self) -> None:
        """Close the file; another server may then have it."""
        try:
            self._connection.close()
        finally:
            os.close(self._lock)

    @property
    def in_place(self) -> bool:
        """Whether the file still stands under its name: into one that was deleted SQLite goes on writing unseen."""
        return _identity(self._path) == self._file

    def write(self, batch: Sequence[Written], most_rows: int) -> None:
        """Write rows, all of them or none, and remove the oldest beyond `most_rows`."""
        cursor = self._connection.cursor()
        with _transaction(cursor):
            added = sum(self._write(cursor, item) for item in batch)
            removed = _remove_oldest(cursor, min(self._rows + added - most_rows, _MOST_REMOVED))
        self._rows += added - removed
        if removed:
            # It takes a step for each page, and has no columns: `execute` would take the first one only.
            cursor.executescript(f"PRAGMA incremental_vacuum({_MOST_FREED})")

    def _write(self, cursor: sqlite3.Cursor, item: Written) -> int:
        number = self.base + item.seq
        known = cursor.execute("SELECT 1 FROM calls WHERE number = ?", (number,)).fetchone()
        cursor.execute(_UPSERT, (number, item.id, item.complete, *item.fields))
        cursor.execute("INSERT OR REPLACE INTO rows (number, row) VALUES (?, ?)", (number, item.row))
        evidence = [(number, seq, entry) for seq, entry in item.entries]
        cursor.executemany("INSERT OR IGNORE INTO evidence (number, seq, entry) VALUES (?, ?, ?)", evidence)
        return known is None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _locked(path: Path) -> int:
    # Not the file itself: SQLite's own locks on it would be lost when a second descriptor of it is closed.
    beside = path.with_name(path.name + "-lock")
    lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise AuditFileError(f"the audit file {path} is written by another server") from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _check_header(path: Path, newest: int) -> None:
    """Look at the file before SQLite does, which might finish what another program has begun in it."""
    # A journal means that a transaction was cut off; what the file is, SQLite can tell once it has undone that.
    if not path.exists() or path.with_name(path.name + "-journal").exists():
        return
    if not path.is_file():
        raise AuditFileError(f"{path} is no file")
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise AuditFileError(f"{path} is no SQLite file; the audit leaves it alone")
    _check_owner(path, _number(header[_APPLICATION]), _number(header[_USER_VERSION]), newest)


def _number(field: bytes) -> int:
    return int.from_bytes(field, "big", signed=True)


def _check_owner(path: Path, application: int, version: int, newest: int) -> None:
    if application not in (APPLICATION_ID, 0) or (application == 0 and version != 0):
        raise AuditFileError(f"{path} is the database of another program; the audit leaves it alone")
    if version > newest:
        raise AuditFileError(f"{path} has version {version} of the audit; this program knows {newest}")


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    _check_owner(path, application, version, len(migrations))
    if application == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise AuditFileError(f"{path} is the database of another program; the audit leaves it alone")
        # Before the first table: later it would need the whole file to be written anew.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    if version < len(migrations):
        _migrate(connection, version, migrations)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    # In WAL mode that is enough for a file that is whole after a crash of the machine, too.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}").fetchall()


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _migrate(connection: sqlite3.Connection, version: int, migrations: Sequence[str]) -> None:
    """All steps in one transaction: a file is of one version or of the other."""
    cursor = connection.cursor()
    with _transaction(cursor):
        for statements in migrations[version:]:
            for statement in filter(str.strip, statements.split(";")):
                cursor.execute(statement)
        cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        cursor.execute(f"PRAGMA user_version = {len(migrations)}")


@contextmanager
def _transaction(cursor: sqlite3.Cursor) -> Iterator[None]:
    cursor.execute("BEGIN IMMEDIATE")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        # Some errors, such as a full disk, have ended it already.
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK")
        raise


def _begin_run(connection: sqlite3.Connection, run: str, started_at: float) -> tuple[int, int]:
    """The number of the run, and how many rows there are."""
    cursor = connection.cursor()
    with _transaction(cursor):
        _settle_lost(cursor, run)
        cursor.execute("INSERT INTO runs (run, started_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (run, started_at))
        (number,) = cursor.execute("SELECT number FROM runs WHERE run = ?", (run,)).fetchone()
        (rows,) = cursor.execute("SELECT count(*) FROM calls").fetchone()
    return number, rows


def _settle_lost(cursor: sqlite3.Cursor, run: str) -> None:
    running = cursor.execute("SELECT number FROM calls WHERE outcome IS NULL AND run != ?", (run,)).fetchall()
    for (number,) in running:
        (row,) = cursor.execute("SELECT row FROM rows WHERE number = ?", (number,)).fetchone()
        cursor.execute("UPDATE rows SET row = ? WHERE number = ?", (_lost(row), number))
        cursor.execute("UPDATE calls SET outcome = 'lost' WHERE number = ?", (number,))


def _lost(row: bytes) -> bytes:
    # Before its arguments a row has no JSON in JSON, so these quotes are no part of a string. What follows is the
    # client's, and stays as it is.
    head, name, rest = row.partition(b',"arguments":')
    return encode({**from_json(head + b"}"), "outcome": "lost"})[:-1] + name + rest


def _remove_oldest(cursor: sqlite3.Cursor, count: int) -> int:
    """Returns how many went."""
    if count <= 0:
        return 0
    (upto,) = cursor.execute(
        "SELECT max(number) FROM (SELECT number FROM calls ORDER BY number LIMIT ?)", (count,)
    ).fetchone()
    for table in ("rows", "evidence", "calls"):
        cursor.execute(f"DELETE FROM {table} WHERE number <= ?", (upto,))  # noqa: S608 - constants
    removed = cursor.rowcount
    cursor.execute("DELETE FROM runs WHERE number < (SELECT min(number) >> ? FROM calls)", (_RUN_SHIFT,))
    return removed


# Errors after which the connection is as good as before: somebody else has the file, or there is no room.
_PASSING: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})


class AuditFile:
    """The file of one run, opened anew where it was lost. Used by one thread at a time.

    `base` plus the place in the log is the number of a call of this run.
    """

    def __init__(self, path: Path, run: str, started_at: float) -> None:
        self.path = path
        self.base = 0
        self._run = run
        self._started_at = started_at
        self._db: AuditDb | None = None

    def ensure(self) -> bool:
        """Have the file open; returns whether it had to be opened, and so may lack what was written before.

        Raises as `AuditDb.open`.
        """
        if self._db is not None and not self._db.in_place:
            self.close()
        if self._db is not None:
            return False
        self._db = AuditDb.open(self.path, self._run, self._started_at)
        self.base = self._db.base
        return True

    def write(self, batch: Sequence[Written], most_rows: int) -> None:
        """Write to the file, which is open. Raises `sqlite3.Error` and `OSError`; nothing is written then."""
        assert self._db is not None, "the owner calls `ensure` first"
        try:
            self._db.write(batch, most_rows)
        except sqlite3.Error as error:
            # Extended codes have the plain one in their last byte.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _PASSING:
                self.close()
            raise

    def close(self) -> None:
        """Close the file, if it is open."""
        db, self._db = self._db, None
        if db is not None:
            db.close()
