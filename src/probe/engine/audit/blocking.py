"""Work on the audit's file, in a thread beside the protocol, and what may come of it."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from typing import Final, TypeVar

import trio

from .claim import AuditFileError

_T = TypeVar("_T")

UNUSABLE: Final = (sqlite3.Error, OSError, AuditFileError)
"""The errors that say that the file cannot be used now."""


async def in_thread(work: Callable[[], _T], limiter: trio.CapacityLimiter, *, to_its_end: bool = False) -> _T:
    """Run the work in a thread, and return its result. Raises its errors, and `OSError` without a thread or memory.

    Unless it has to go `to_its_end`, a caller that is cancelled leaves the thread behind.
    """
    try:
        return await trio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=not to_its_end)
    except MemoryError:
        raise OSError(errno.ENOMEM, "out of memory") from None
    except RuntimeError as error:
        # "can't start new thread": of an exhausted system Python tells in this way.
        raise OSError(errno.EAGAIN, str(error)) from None


def why(error: BaseException) -> str:
    """The words for an error that anybody may read: they name no path of this machine."""
    if isinstance(error, AuditFileError):
        return f"the file {error.why}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    name = getattr(error, "sqlite_errorname", None)
    return f"{error} ({name})" if name else str(error)
