"""The audit's file during the life of a server: opened, lost, opened again. Everything here blocks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from .db import AuditDb, Written

# Errors that leave the connection usable: another program has the lock, or there is no room.
_PASSING: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})


class AuditFile:
    """The file of one run, opened again after a loss. Used by one thread at a time, except `abandon`.

    The number of a call of this run is `base` plus its place in the log. `base` never decreases, so a cursor stays
    valid after the file was made anew.
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
        """Write to the open file; returns True if it should be shortened (`shorten`).

        Raises `sqlite3.Error` and `OSError`, and has then written no row.
        """
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
        """Cut back the WAL, if the file is open and has no readers. Raises `sqlite3.Error`."""
        with self._used():
            if self._db is not None:
                self._db.shorten()

    def close(self) -> None:
        """Close the file, if it is open. Raises `sqlite3.Error` and `OSError`."""
        with self._used():
            self._close()

    def abandon(self) -> None:
        """Close the file for good: at once, or at the end of the work of another thread, without waiting for that.

        Any thread may call it. Raises `sqlite3.Error` and `OSError`.
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
