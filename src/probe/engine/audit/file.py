"""The audit's file: its lock, its owner, its transactions, and its life while a server runs.

A lock beside the file ensures that one server writes it; any process may read it. Each write is one transaction in WAL
mode. All but `in_thread` blocks, and must run in a thread.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, Self, TypeVar

import trio
from pydantic_core import from_json

from ...wire.jsonrpc import encode
from .reading import APPLICATION_ID, FORMAT, MIGRATIONS, RUN_SHIFT

# The wait for a lock of another program within one attempt; further attempts follow.
_BUSY_S: Final = 0.5
# Rows that one write removes, so that a smaller `audit_rows` or a long run does not delay new rows.
_MOST_REMOVED: Final = 5000
# Pages that one write returns to the file system: 8 MB.
_MOST_FREED: Final = 2000
_WAL_BYTES: Final = 16 * 1024 * 1024
FIELDS: Final = (
    *("run", "tool", "toolset", "outcome", "session", "client_name", "label", "era", "revision", "transport", "task"),
    "started_at",
)
"""The fields of a row with columns of their own."""
_UPSERT: Final = f"""
    INSERT INTO calls (number, id, complete, {", ".join(FIELDS)}) VALUES (?, ?, ?, {", ".join("?" * len(FIELDS))})
    ON CONFLICT (number) DO UPDATE SET outcome = excluded.outcome, task = excluded.task,
        complete = min(complete, excluded.complete)
"""  # noqa: S608 - the names are constants
# Errors that leave the connection usable: another program has the lock, or there is no room.
_PASSING: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})
_T = TypeVar("_T")


# The first bytes of every SQLite 3 file, and the places of schema version and application in its header.
_MAGIC: Final = b"SQLite format 3\0"
_USER_VERSION: Final = slice(60, 64)
_APPLICATION: Final = slice(68, 72)


class AuditFileError(Exception):
    """The file cannot be the audit's; it was not changed. The message is one line with its path, `why` has no path."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the audit file {path} {why}")
        self.why = why


def lock(path: Path) -> int:
    """Take the lock beside a file. Returns its descriptor; to close that frees the lock.

    Raises `AuditFileError` if another server has it, and `OSError`.
    """
    # Not on the file itself: SQLite's own locks on it would be lost when a second descriptor of it is closed.
    beside = path.with_name(path.name + "-lock")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise AuditFileError(path, "is written by another server") from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_header(path: Path, newest: int) -> None:
    """Check the file before SQLite opens it, since that might finish an interrupted transaction of another program.

    Raises as `check_owner`, and `OSError`.
    """
    # A journal means an interrupted transaction; SQLite knows the header only after it has undone that.
    if not path.exists() or path.with_name(path.name + "-journal").exists():
        return
    if not path.is_file():
        raise AuditFileError(path, "is no file")
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise AuditFileError(path, "is no SQLite file; the audit leaves it alone")
    check_owner(path, _number(header[_APPLICATION]), _number(header[_USER_VERSION]), newest)


def _number(field: bytes) -> int:
    return int.from_bytes(field, "big", signed=True)


def check_owner(path: Path, application: int, version: int, newest: int) -> None:
    """Raise `AuditFileError` for a database of another program, or of a version after `newest`."""
    if application not in (APPLICATION_ID, 0) or (application == 0 and version != 0):
        raise AuditFileError(path, "is the database of another program; the audit leaves it alone")
    if version > newest:
        raise AuditFileError(path, f"has version {version} of the audit; this program knows {newest}")


@dataclass(frozen=True, slots=True)
class Written:
    """One row as it is written: its place in the log, its id, `FIELDS`, the JSON, and its new evidence.

    `entries` are pairs of a sequence number and the entry's JSON; some may have been written before. They are not
    `complete` if some are lost, or if they continue entries (`continues`) that the file no longer has.
    """

    seq: int
    id: str
    fields: tuple[Any, ...]
    row: bytes
    entries: Sequence[tuple[int, bytes]]
    complete: bool
    continues: bool = False


class AuditDb:
    """The writer of one file. Made by `open`; used by one thread at a time.

    Raises `sqlite3.Error` and `OSError` if the file cannot be used; the failed operation has then written no row.
    """

    def __init__(self, path: Path, lock: int, connection: sqlite3.Connection, run_number: int, rows: int) -> None:
        self._path = path
        self._lock = lock
        self._connection = connection
        self._file = _identity(path)
        self._rows = rows
        self.base = run_number << RUN_SHIFT

    @classmethod
    def open(
        cls, path: Path, run: str, started_at: float, migrations: Sequence[str] = MIGRATIONS, least_base: int = 0
    ) -> Self:
        """Open or make the file, bring it to the present version, and add this run, with at least the given `base`.

        Calls that an earlier run left running become `lost`. Raises `AuditFileError` for a file that is not the
        audit's, that is newer than this program, or that another server writes.
        """
        descriptor = lock(path)
        try:
            check_header(path, len(migrations))
            connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection, path, migrations)
                number, rows = _begin_run(connection, run, started_at, least_base >> RUN_SHIFT)
                return cls(path, descriptor, connection, number, rows)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            os.close(descriptor)
            raise

    def close(self) -> None:
        try:
            self._connection.close()
        finally:
            os.close(self._lock)

    @property
    def in_place(self) -> bool:
        """True if the file still has its name. SQLite would write on into a deleted file without an error."""
        return _identity(self._path) == self._file

    @property
    def is_long(self) -> bool:
        """True if the WAL is above its bound, because some reader was always active."""
        try:
            return self._path.with_name(self._path.name + "-wal").stat().st_size > _WAL_BYTES
        except FileNotFoundError:
            return False

    def shorten(self) -> None:
        """Copy the WAL into the file and cut it back, as far as no reader needs it."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def write(self, batch: Sequence[Written], most_rows: int, most_bytes: int | None = None) -> None:
        """Write rows, all of them or none, and remove the oldest beyond `most_rows` or `most_bytes` of the file."""
        cursor = self._connection.cursor()
        with _transaction(cursor):
            rows = self._rows + sum(self._write(cursor, item) for item in batch)
            left = rows - _remove_oldest(cursor, min(rows - most_rows, _MOST_REMOVED))
            while most_bytes is not None and rows - left < _MOST_REMOVED:
                used = _used_bytes(cursor)
                count = -(-left * max(0, used - most_bytes) // used)
                removed = _remove_oldest(cursor, min(count, _MOST_REMOVED))
                left -= removed
                if not removed:
                    break
        self._rows = left
        if left < rows:
            # The pragma takes a step for each page and returns no columns: `execute` would do one step only.
            cursor.executescript(f"PRAGMA incremental_vacuum({_MOST_FREED})")

    def _write(self, cursor: sqlite3.Cursor, item: Written) -> int:
        number = self.base + item.seq
        known = cursor.execute("SELECT 1 FROM calls WHERE number = ?", (number,)).fetchone()
        complete = item.complete and not (item.continues and known is None)
        cursor.execute(_UPSERT, (number, item.id, complete, *item.fields))
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


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    check_owner(path, application, version, len(migrations))
    if application == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise AuditFileError(path, "is the database of another program; the audit leaves it alone")
        # Before the first table: a later change would rewrite the whole file.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    if version < len(migrations):
        _migrate(connection, version, migrations)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    # In WAL mode this keeps the file whole also after a crash of the machine.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}").fetchall()


def _pragma(on: sqlite3.Connection | sqlite3.Cursor, name: str) -> int:
    (value,) = on.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _used_bytes(cursor: sqlite3.Cursor) -> int:
    return (_pragma(cursor, "page_count") - _pragma(cursor, "freelist_count")) * _pragma(cursor, "page_size")


def _migrate(connection: sqlite3.Connection, version: int, migrations: Sequence[str]) -> None:
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
        # Some errors, such as a full disk, have ended the transaction already.
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK")
        raise


def _begin_run(connection: sqlite3.Connection, run: str, started_at: float, least: int) -> tuple[int, int]:
    cursor = connection.cursor()
    with _transaction(cursor):
        _settle_lost(cursor, run)
        cursor.execute(
            """
            INSERT OR IGNORE INTO runs (number, run, started_at, format)
            SELECT max(?, 1 + ifnull(max(number), 0)), ?, ?, ? FROM runs
            """,
            (least, run, started_at, FORMAT),
        )
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
    # Before its arguments, a row has no JSON within JSON, so these quotes are not part of a string. The rest is the
    # client's JSON, and stays as it is.
    head, name, rest = row.partition(b',"arguments":')
    return encode({**from_json(head + b"}"), "outcome": "lost"})[:-1] + name + rest


def _remove_oldest(cursor: sqlite3.Cursor, count: int) -> int:
    if count <= 0:
        return 0
    (upto,) = cursor.execute(
        "SELECT max(number) FROM (SELECT number FROM calls ORDER BY number LIMIT ?)", (count,)
    ).fetchone()
    for table in ("rows", "evidence", "calls"):
        cursor.execute(f"DELETE FROM {table} WHERE number <= ?", (upto,))  # noqa: S608 - constants
    removed = cursor.rowcount
    cursor.execute("DELETE FROM runs WHERE number < (SELECT min(number) >> ? FROM calls)", (RUN_SHIFT,))
    return removed


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The state of the audit. While it is `failing`, the file cannot be written `since` then; `why` has the reason.

    `lost` rows had no room in that time, and are not in the file.
    """

    store: Literal["memory", "file"]
    state: Literal["ok", "failing"]
    since: float | None
    why: str | None
    lost: int


class AuditFile:
    """The file of one run, opened again after a loss. Used by one thread at a time, except `abandon`.

    The methods raise `sqlite3.Error` and `OSError`. The number of a call of this run is `base` plus its place in the
    log. `base` never decreases, so a cursor stays valid after the file was made anew.
    """

    def __init__(self, path: Path, run: str, started_at: float) -> None:
        self.path = path
        self.base = 0
        self._run = run
        self._started_at = started_at
        self._db: AuditDb | None = None
        self._in_use = Lock()
        self._abandoned = False

    def ensure(self) -> bool:
        """Open the file unless it is open. Returns True if it was opened now, and so may lack earlier rows.

        Raises as `AuditDb.open`.
        """
        with self._used():
            if self._db is not None and not self._db.in_place:
                self._close()
            if self._db is not None:
                return False
            self._db = AuditDb.open(self.path, self._run, self._started_at, least_base=self.base)
            self.base = self._db.base
            return True

    def write(self, batch: Sequence[Written], most_rows: int, most_bytes: int | None = None) -> bool:
        """Returns True if the file should be shortened. Where it raises, it has written no row."""
        with self._used():
            assert self._db is not None, "the owner calls `ensure` first"
            try:
                self._db.write(batch, most_rows, most_bytes)
            except sqlite3.Error as error:
                # Extended codes have the plain one in their last byte.
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _PASSING:
                    self._close()
                raise
            return self._db.is_long

    def shorten(self) -> None:
        with self._used():
            if self._db is not None:
                self._db.shorten()

    def close(self) -> None:
        with self._used():
            self._close()

    def abandon(self) -> None:
        """Close the file for good: at once, or at the end of the work of another thread, without waiting for that.

        Any thread may call it.
        """
        self._abandoned = True
        self._close_abandoned()

    @contextmanager
    def _used(self) -> Iterator[None]:
        try:
            with self._in_use:
                yield
        finally:
            self._close_abandoned()

    def _close_abandoned(self) -> None:
        # Either `abandon` finds the file unused, or the thread that used it finds it abandoned.
        if self._abandoned and self._in_use.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._in_use.release()

    def _close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()


UNUSABLE: Final = (sqlite3.Error, OSError, AuditFileError)
"""The errors of a file that cannot be used now."""


async def in_thread(work: Callable[[], _T], limiter: trio.CapacityLimiter, *, to_its_end: bool = False) -> _T:
    """Run the work in a thread. Raises its errors, and `OSError` without a thread or memory.

    A cancelled caller leaves the thread behind, except with `to_its_end`.
    """
    try:
        return await trio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=not to_its_end)
    except MemoryError:
        raise OSError(errno.ENOMEM, "out of memory") from None
    except RuntimeError as error:
        # Python raises "can't start new thread" for this when the system has no more threads.
        raise OSError(errno.EAGAIN, str(error)) from None


def why(error: BaseException) -> str:
    """The words for an error that any reader may see: without a path of this machine."""
    if isinstance(error, AuditFileError):
        return f"the file {error.why}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    name = getattr(error, "sqlite_errorname", None)
    return f"{error} ({name})" if name else str(error)
