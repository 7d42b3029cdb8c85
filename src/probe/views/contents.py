"""The contents of messages, parsed: many readers ask for those of the newest, and parsed JSON takes much room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic_core import from_json

# Bytes of messages that stay parsed: more than come before the answer to most requests.
_MOST_PARSED: Final = 128 * 1024


class Contents:
    """The newest contents that somebody asked for stay parsed; older ones are parsed anew each time."""

    __slots__ = ("_bytes", "_values")

    def __init__(self) -> None:
        self._values: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def value(self, seq: int, raw: bytes) -> Any:
        """The JSON of the message of an entry."""
        found = self._values.get(seq)
        if found is not None:
            return found[0]
        value = from_json(raw)
        self._values[seq] = value, len(raw)
        self._bytes += len(raw)
        # The newest one is kept, however large it is.
        while self._bytes > _MOST_PARSED and len(self._values) > 1:
            self._bytes -= self._values.popitem(last=False)[1][1]
        return value


def members(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def covers(hidden: Iterable[tuple[str, str]], place: str) -> bool:
    """True if the member at a JSON pointer, or one below or above it, is among those that are hidden in the log."""
    return any(path == place or path.startswith(place + "/") or place.startswith(path + "/") for path, _ in hidden)
