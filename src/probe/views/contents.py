"""The parsed contents of messages. Many readers parse the newest ones, and parsed JSON takes much memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from pydantic_core import from_json

# Bytes of messages kept parsed: more than arrive before the answer to most requests.
_MOST_PARSED: Final = 128 * 1024


class Content:
    """A message, parsed. `params` and its `_meta` are empty where the message has no such object."""

    __slots__ = ("meta", "params", "size", "value")

    def __init__(self, raw: bytes) -> None:
        self.size = len(raw)
        self.value: Any = from_json(raw)
        self.params = members(members(self.value).get("params"))
        self.meta = members(self.params.get("_meta"))


class Holder(Protocol):
    """A message, with a place for its parsed content."""

    parsed: Content | None


class Contents:
    """Keeps the newest contents parsed; an older one is parsed anew each time."""

    __slots__ = ("_bytes", "_holders")

    def __init__(self) -> None:
        self._holders: deque[tuple[Holder, int]] = deque()
        self._bytes = 0

    def keep(self, holder: Holder, content: Content) -> None:
        """Keep a parsed message; the oldest make room."""
        holder.parsed = content
        self._holders.append((holder, content.size))
        self._bytes += content.size
        # The newest one is kept, however large it is.
        while self._bytes > _MOST_PARSED and len(self._holders) > 1:
            oldest, size = self._holders.popleft()
            oldest.parsed = None
            self._bytes -= size


def members(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def covers(hidden: Iterable[tuple[str, str]], place: str) -> bool:
    """True if the log hides the member at a JSON pointer, or one below or above it."""
    return any(path == place or path.startswith(place + "/") or place.startswith(path + "/") for path, _ in hidden)
