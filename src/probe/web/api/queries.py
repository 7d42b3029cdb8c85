"""The query of a URL. Unknown names are refused: otherwise `?tol=echo` would look like `?tool=echo` without results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quart import request

from ...log.query import QueryError, switch, twice, unknown, whole_number
from ...wire.jsonrpc import Json, clip


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a page, as the description of the API shows it.

    With a `pattern` it stands for all names of this form.
    """

    name: str
    description: str
    schema: Json = field(default_factory=lambda: {"type": "string"})
    pattern: str | None = None

    @property
    def shown(self) -> str:
        """Its name in the list of known parameters."""
        return self.name if self.pattern is None else f"{self.name}.PATH"


@dataclass(frozen=True, slots=True)
class Query:
    """The page's own parameters, each at most once, and the `filters` beside them, in their order."""

    own: Mapping[str, str]
    filters: tuple[tuple[str, str], ...] = ()

    def switch(self, name: str) -> bool:
        """A parameter of 0 or 1, by default 0. Raises `QueryError`."""
        return switch(name, self.own.get(name))

    def number(self, name: str, default: int, low: int = 0) -> int:
        """A whole number. Raises `QueryError`."""
        given = self.own.get(name)
        if given is None:
            return default
        number = whole_number(given)
        if number is None or number < low:
            raise QueryError(f"{name} must be a whole number from {low}, got {clip(given)!r}")
        return number


def read(own: Sequence[Parameter] = (), filters: Sequence[Parameter] = ()) -> Query:
    """The query of the present request. Raises `QueryError` for an unknown name and for an own one given twice.

    The filters check repeated names of their own.
    """
    names, beside = {item.name for item in own}, {item.name for item in filters if item.pattern is None}
    prefixes = tuple(f"{item.name}." for item in filters if item.pattern is not None)
    values: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for name, value in request.args.items(multi=True):
        if name in names:
            if name in values:
                raise twice(name)
            values[name] = value
        elif name in beside or name.startswith(prefixes):
            rest.append((name, value))
        else:
            raise unknown(name, [item.shown for item in (*own, *filters)])
    return Query(values, tuple(rest))
