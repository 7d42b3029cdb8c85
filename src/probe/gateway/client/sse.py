"""Event streams as the HTML standard reads them: bytes in, events and comments out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A CR at the end may be half of a line end.
_LINE = re.compile(rb"\r\n|\n|\r(?=[^\n])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its id, None where it has none, and its data."""

    id: str | None
    data: bytes


class Comment:
    """A line that begins with a colon."""


class EventReader:
    """Fed the body of one response."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._id: str | None = None
        self._has_data = False

    def receive(self, data: bytes) -> Iterator[Event | Comment]:
        """Take bytes; returns the events that they complete."""
        # Joined and split once per call: a result of megabytes in one line comes in thousands of parts.
        self._buffer += data
        if b"\n" not in data and b"\r" not in data:
            return
        *lines, rest = _LINE.split(bytes(self._buffer))
        self._buffer = bytearray(rest)
        for line in lines:
            if not line and self._has_data:
                yield Event(self._id, b"\n".join(self._data))
            if not line:
                self._data, self._id, self._has_data = [], None, False
            elif line.startswith(b":"):
                yield Comment()
            else:
                self._field(line)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._has_data = True
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
            self._has_data = True
