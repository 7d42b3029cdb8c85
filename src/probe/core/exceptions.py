"""Exceptions in groups, and the cause of an error in a few words."""

from __future__ import annotations


def first(error: BaseException) -> BaseException:
    """The first exception in nested groups; an exception without a group is returned as it is."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException, unknown: str = "") -> str:
    """The innermost cause of an error of a connection, such as "Connection refused"."""
    while (inner := error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__) is not None:
        error = inner
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or unknown or type(error).__name__
