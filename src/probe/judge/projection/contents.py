"""How long the content of messages is kept: it takes far more room than all that rules remember of them.

Parsed JSON takes many times the room of its text, and the garbage collector looks at every part of it again and again.
So only the newest messages stay parsed; of older ones the text stays, which is read again where a rule asks for it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from .views import Message, Sent

# Bytes of messages that stay parsed: more than come before the answer to most requests.
_MOST_PARSED: Final = 128 * 1024
# Bytes of messages whose content a predicate can still ask for.
_MOST_CONTENT: Final = 32 * 1024 * 1024
_MOST_MESSAGES: Final = 20_000
# Predicates can ask for these and their answers until the client's end.
_BEGINNINGS: Final = frozenset({"initialize", "server/discover"})
_SMALL: Final = 8 * 1024


class Contents:
    """The content of messages is given up, the oldest first, where there is too much of it."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Message | Sent, int]] = deque()
        self._bytes = 0
        self._parsed: deque[tuple[Message | Sent, int]] = deque()
        self._parsed_bytes = 0

    def keep(self, message: Message | Sent, size: int) -> None:
        """Remember one more; a small one that begins a session stays."""
        if size <= _SMALL and (message.method in _BEGINNINGS or _answers(message) in _BEGINNINGS):
            return
        self._parsed.append((message, size))
        self._parsed_bytes += size
        # The newest one is being judged, however large it is.
        while self._parsed_bytes > _MOST_PARSED and len(self._parsed) > 1:
            older, room = self._parsed.popleft()
            older.pack()
            self._parsed_bytes -= room
        self._kept.append((message, size))
        self._bytes += size
        while self._bytes > _MOST_CONTENT or len(self._kept) > _MOST_MESSAGES:
            oldest, freed = self._kept.popleft()
            oldest.forget()
            self._bytes -= freed


def _answers(message: Message | Sent) -> str | None:
    """The method of the request that a message of the server belongs to."""
    return message.request.method if isinstance(message, Sent) and message.request is not None else None
