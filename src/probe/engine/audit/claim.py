"""The claim on an audit file: the audit writes only its own files, one server at a time, and no others."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from .schema import APPLICATION_ID

# The first bytes of every SQLite 3 file, and where its header has the version of the schema and the application.
_MAGIC: Final = b"SQLite format 3\0"
_USER_VERSION: Final = slice(60, 64)
_APPLICATION: Final = slice(68, 72)


class AuditFileError(Exception):
    """The file cannot be the audit's; it was left as it is. The message is one line that names it, `why` does not."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the audit file {path} {why}")
        self.why = why


def lock(path: Path) -> int:
    """Take the lock beside a file; returns its descriptor, whose closing frees it.

    Raises `AuditFileError` where another server has it, and `OSError`.
    """
    # Not the file itself: SQLite's own locks on it would be lost when a second descriptor of it is closed.
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
    """Look at the file before SQLite does, which might finish what another program has begun in it.

    Raises as `check_owner`, and `OSError`.
    """
    # A journal means that a transaction was cut off; what the file is, SQLite can tell once it has undone that.
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
    """Raise `AuditFileError` for a database of another program, or of a version after the `newest` that is known."""
    if application not in (APPLICATION_ID, 0) or (application == 0 and version != 0):
        raise AuditFileError(path, "is the database of another program; the audit leaves it alone")
    if version > newest:
        raise AuditFileError(path, f"has version {version} of the audit; this program knows {newest}")
