"""Work on the audit's file in a thread beside the protocol, and its errors."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from typing import Final, TypeVar

import trio

from .claim import AuditFileError

_T = TypeVar("_T")

UNUSABLE: Final = (sqlite3.Error, OSError, AuditFileError)
"""The errors of a file that cannot be used now."""


async def in_thread(work: Callable[[], _T], limiter: trio.CapacityLimiter, *, to_its_end: bool = False) -> _T:
    """Run the work in a thread, and return its result. Raises its errors, and `OSError` without a thread or memory.

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
