"""An event stream parser written from the WHATWG HTML standard, 9.2.6, to read what the server writes.

Unlike the client in `tests.support.http` it knows all of the standard: any line ending, any cut between two reads,
fields without a colon, and the rule that a block without a data field is no event but still moves the last event id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dispatched:
    """An event as a browser's EventSource would dispatch it."""

    type: str
    data: str
    last_event_id: str


@dataclass
class EventSource:
    """Feed it bytes; it collects events. `retry_ms` is the reconnection time, if the stream set one."""

    events: list[Dispatched] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    last_event_id: str = ""
    retry_ms: int | None = None
    _rest: bytes = b""
    _data: list[str] = field(default_factory=list)
    _type: str = ""
    _id: str = ""

    def feed(self, part: bytes) -> None:
        """Take some bytes, cut anywhere."""
        # A carriage return at the very end may be half of a line ending.
        *lines, self._rest = re.split(rb"\r\n|\n|\r(?!\Z)", self._rest + part)
        for line in lines:
            self._line(line.decode("utf-8"))

    def _line(self, line: str) -> None:
        if not line:
            self._dispatch()
        elif line.startswith(":"):
            self.comments.append(line[1:])
        else:
            name, _, value = line.partition(":")
            self._field(name, value.removeprefix(" "))

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatch(self) -> None:
        self.last_event_id = self._id
        # Each data field puts its value and a line feed into the buffer, so an empty one is enough for an event.
        if self._data:
            self.events.append(Dispatched(self._type or "message", "\n".join(self._data), self._id))
        self._data, self._type = [], ""
