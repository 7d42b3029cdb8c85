"""Common parts of all queries in URLs (docs/observation.md)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ..wire.jsonrpc import clip

# More than any count of a run has; `int` takes quadratic time over digits.
_MOST_DIGITS = 15


class QueryError(ValueError):
    """A query has an unknown parameter or value; the message lists the known ones.

    `known` are the known parameters, or the known values of one; `given` is the unknown one.
    """

    def __init__(self, message: str, known: Iterable[str] = (), given: str = "") -> None:
        super().__init__(message)
        self.known = tuple(known)
        self._given = given

    @property
    def hint(self) -> str:
        """The end of the message with the probable name, such as `; did you mean session?`; empty if none is near."""
        near = difflib.get_close_matches(self._given.lower(), self.known, n=1)
        return f"; did you mean {near[0]}?" if near else ""


def unknown(name: str, known: Iterable[str]) -> QueryError:
    """The error for an unknown parameter."""
    names = tuple(known)
    what = f"known are {', '.join(names)}" if names else "this page takes none"
    return QueryError(f"there is no parameter {clip(name)!r}; {what}", names)


def twice(name: str) -> QueryError:
    """The error for a parameter given twice: two values could mean both, or either."""
    return QueryError(f"{clip(name)} stands twice; it can be given once")


def switch(name: str, value: str | None) -> bool:
    """The value of a parameter that is 0 or 1; 0 if it is missing. Raises `QueryError`."""
    if value not in (None, "0", "1"):
        raise QueryError(f"{name} must be 0 or 1, got {clip(value)!r}", ("0", "1"))
    return value == "1"


def whole_number(text: str, most_digits: int = _MOST_DIGITS) -> int | None:
    """A number without a sign; None for anything else, and for one of more digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None
