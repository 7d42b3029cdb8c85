"""The claim on an audit file: the audit writes only its own files, and one server at a time writes a file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from .schema import APPLICATION_ID

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
