"""One connection of a client that can be cut: after so many bytes, or messages, that the server has sent.

What a link hears ends with the cut, whatever else was on its way. `leave` says what the server learns of that.
"""

from __future__ import annotations

import json
import random
from collections import deque
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from .books import Book, Message


class Heard(NamedTuple):
    """A message, and the id of its event on HTTP."""

    message: Message
    event: str | None = None


@dataclass(frozen=True)
class Cut:
    """After how many bytes or messages a link is cut; `how` is for the transport to understand."""

    bytes: int | None = None
    messages: int | None = None
    how: str = ""

    @classmethod
    def any(cls, rng: random.Random, hows: tuple[str, ...]) -> Cut:
        """Anywhere: within the first message, between two, in the middle of many."""
        how = rng.choice(hows)
        if rng.random() < 0.3:
            return cls(messages=rng.randrange(6), how=how)
        return cls(bytes=rng.randrange(rng.choice((60, 600, 3000, 3000, 200_000))), how=how)


NEVER = Cut()


class Link(Protocol):
    """One connection, or on HTTP as many as are needed, which are cut together."""

    async def say(self, message: Message) -> None:
        """Send a message, unless the link is cut."""

    async def tear(self, message: Message, part: float) -> None:
        """Send that part of a message; then the link is cut."""

    def cut(self) -> None:
        """Cut it now: nothing more is heard."""

    async def resume(self, book: Book, id: int, *, last: bool) -> bool:
        """Ask for the rest of a stream, in one of the ways that there are; whether that is answered itself.

        With `last` it must be, as a client that keeps no count may be waiting for nothing.
        """

    async def hear(self) -> Heard | None:
        """The next message; None when it is cut."""


class Transport(Protocol):
    """Where links lead. `hows` are the ways to cut them, `patience_s` is how long to wait for what may never come.

    `step_ms` is a pace for tools that gives the cuts something to hit; `secret` says whether owners are known by that.
    """

    hows: tuple[str, ...]
    patience_s: float
    step_ms: int
    secret: bool

    def link(self, cut: Cut, rng: random.Random) -> AbstractAsyncContextManager[Link]:
        """A link that is ready, or already cut; the block's end leaves it."""

    async def close(self) -> None:
        """Let go of what was left open."""


class Meter:
    """Counts what comes in, up to the cut."""

    def __init__(self, cut: Cut) -> None:
        self._bytes = cut.bytes
        self._messages = cut.messages
        self.whole: deque[Heard] = deque()

    @property
    def spent(self) -> bool:
        """Whether the link is cut: nothing of what comes now counts."""
        return self._bytes == 0 or self._messages == 0

    def pieces(self, data: bytes) -> bytes:
        """What of it comes before the cut."""
        if self.spent:
            return b""
        kept = data[: self._bytes]
        if self._bytes is not None:
            self._bytes -= len(kept)
        return kept

    def cut(self) -> None:
        self._bytes = 0

    def restore(self) -> None:
        self._bytes = self._messages = None

    def message(self, heard: Heard) -> None:
        """A message is complete. Those behind the cut are for nobody."""
        if self._messages == 0:
            return
        self.whole.append(heard)
        if self._messages is not None:
            self._messages -= 1


def initialize(id: int) -> Message:
    """The first request."""
    capabilities = {"elicitation": {"form": {}}, "experimental": {"streams": {}}}
    info = {"name": "test-client", "version": "1.2.3"}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def resume_request(book: Book, id: int, own: dict[str, Any]) -> Message:
    """`stream/resume`; `own` is what stands in its mark."""
    params: dict[str, Any] = {"streamId": book.stream_id}
    if own:
        params["_meta"] = {"mcp-probe/stream": own}
    return {"jsonrpc": "2.0", "id": id, "method": "stream/resume", "params": params}


def encoded(message: Message) -> bytes:
    """As JSON in UTF-8, with all its characters as they are."""
    return json.dumps(message, ensure_ascii=False).encode()
