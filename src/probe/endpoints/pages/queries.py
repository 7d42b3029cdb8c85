"""The query of a URL: what a page takes, and nothing else, so that a misspelt name cannot look like an empty answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quart import request

from ...wire.jsonrpc import Json, clip

# More digits than any count of a run has; `int` takes quadratic time over digits.
LONGEST_NUMBER = 15


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a page, as the description of the API shows it.

    With a `pattern` it stands for all names that fit it.
    """

    name: str
    description: str
    schema: Json = field(default_factory=lambda: {"type": "string"})
    pattern: str | None = None


class BadQueryError(ValueError):
    """A query is not what the page takes. `known` are the names that it takes, where one was unknown."""

    def __init__(self, message: str, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


@dataclass(frozen=True, slots=True)
class Query:
    """The page's own parameters, each at most once, and the `filters` beside them, in their order."""

    own: Mapping[str, str]
    filters: tuple[tuple[str, str], ...] = ()

    def number(self, name: str, default: int, low: int = 0) -> int:
        """A whole number. Raises `BadQueryError`."""
        given = self.own.get(name)
        if given is None:
            return default
        fits = given.isascii() and given.isdecimal() and len(given) <= LONGEST_NUMBER
        if not fits or int(given) < low:
            raise BadQueryError(f"{name} must be a whole number from {low}, got {clip(given)!r}")
        return int(given)


def read(own: Sequence[Parameter] = (), filters: Sequence[Parameter] = ()) -> Query:
    """The query of the present request. Raises `BadQueryError` for an unknown name and for an own one given twice.

    What may stand twice among the filters is for them to say.
    """
    names, beside = {item.name for item in own}, {item.name for item in filters if item.pattern is None}
    prefixes = tuple(f"{item.name}." for item in filters if item.pattern is not None)
    values: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for name, value in request.args.items(multi=True):
        if name in names:
            if name in values:
                raise BadQueryError(f"{name} stands twice; it can be given once")
            values[name] = value
        elif name in beside or name.startswith(prefixes):
            rest.append((name, value))
        else:
            raise _unknown(name, [*own, *filters])
    return Query(values, tuple(rest))


def _unknown(name: str, takes: Sequence[Parameter]) -> BadQueryError:
    known = [item.name if item.pattern is None else f"{item.name}.…" for item in takes]
    what = f"known are {', '.join(known)}" if known else "this page takes none"
    return BadQueryError(f"there is no parameter {clip(name)!r}; {what}", known)
