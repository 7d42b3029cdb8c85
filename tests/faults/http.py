"""What a link of HTTP does, whatever carries its requests."""

from __future__ import annotations

import json
import random
from typing import NamedTuple

import trio

from ..support.legacy import HEADERS
from .books import Book, Message
from .links import Cut, Heard, Meter, encoded, resume_request


class Ask(NamedTuple):
    """One request; `about` is the stream that it asks for."""

    method: str
    headers: dict[str, str]
    body: bytes = b""
    about: str = ""


class Session:
    """The headers of one session."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}

    def opened(self, id: str) -> None:
        self._own = {"mcp-session-id": id}

    def get(self, seen: dict[str, str], about: str) -> Ask:
        return Ask("GET", {**HEADERS, **self._own, "accept": "text/event-stream", **seen}, about=about)

    def post(self, message: Message, seen: dict[str, str] | None = None, about: str = "") -> Ask:
        body = encoded(message)
        return Ask("POST", {**HEADERS, **self._own, "content-length": str(len(body)), **(seen or {})}, body, about)


class HttpLink:
    """Requests of one session, each on a connection of its own; all are cut at the same moment."""

    def __init__(self, session: Session, cut: Cut, rng: random.Random) -> None:
        self.meter = Meter(cut)
        self.changed = trio.lowlevel.ParkingLot()
        self.how = cut.how
        self.rng = rng
        self._session = session

    async def ask(self, ask: Ask) -> None:
        raise NotImplementedError

    async def ask_in_part(self, ask: Ask, part: float) -> None:
        raise NotImplementedError

    async def say(self, message: Message) -> None:
        if not self.meter.spent:
            await self.ask(self._session.post(message))

    async def tear(self, message: Message, part: float) -> None:
        """Some of a POST."""
        if not self.meter.spent:
            await self.ask_in_part(self._session.post(message), part)
        self.cut()

    def cut(self) -> None:
        self.meter.cut()
        self.changed.unpark_all()

    async def resume(self, book: Book, id: int, *, last: bool) -> bool:
        """A GET from the last event, or `stream/resume`, with a header or without.

        With no word of how much there is for a client that does not count.
        """
        way = self.rng.choice(("get", "header", "received")) if book.exact else "bare"
        seen = {"last-event-id": f"{book.label}-{book.last}"} if way in ("get", "header") and book.label else {}
        if way == "get" and seen:
            await self.ask(self._session.get(seen, book.stream_id))
            return False
        own = {} if seen or way == "bare" else {"received": book.last}
        await self.ask(self._session.post(resume_request(book, id, own), seen, book.stream_id))
        return True

    async def hear(self) -> Heard | None:
        """The next message of any response."""
        while not self.meter.whole:
            if self.meter.spent:
                return None
            await self.changed.park()
        return self.meter.whole.popleft()

    def heard(self, status: int, about: str, found: list[Heard]) -> None:
        """Messages came."""
        for heard in found:
            refused: Message = {"refused": status, "about": about, "why": heard.message}
            self.meter.message(heard if status == 200 else Heard(refused))
        if found or self.meter.spent:
            self.changed.unpark_all()


class Events:
    """Takes a body apart: one JSON message, or server-sent events."""

    def __init__(self) -> None:
        self.json = False
        self._data = b""

    def feed(self, data: bytes) -> list[Heard]:
        """More of it."""
        self._data += data
        if self.json:
            return []
        *blocks, self._data = self._data.split(b"\n\n")
        return [heard for block in blocks if (heard := self._event(block)) is not None]

    def end(self) -> list[Heard]:
        return [Heard(json.loads(self._data))] if self.json else []

    def _event(self, block: bytes) -> Heard | None:
        fields = dict(line.partition(": ")[::2] for line in block.decode().split("\n"))
        return Heard(json.loads(fields["data"]), fields["id"]) if fields.get("data") else None
