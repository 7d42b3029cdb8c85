"""HTTP in memory: the application, and peers that refuse, swallow or hold what is behind the cut.

Virtual time. What the application was told that a socket took is exactly known, which no real socket tells.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import trio

from ..support.http import http_scope
from .books import Message, mark
from .http import Ask, Events, HttpLink, Session
from .links import INITIALIZED, Cut, initialize


class _Exchange:
    """One request, as the application sees it. The body has `part` of what it should have."""

    def __init__(self, link: HttpLink, ask: Ask, part: float) -> None:
        self.gone = trio.Event()
        self.held = trio.lowlevel.ParkingLot()
        self.swallowed: list[Message] = []
        self.session = ""
        self._link = link
        self._ask = ask
        self._body: list[dict[str, Any]] = [
            {"type": "http.request", "body": ask.body[: int(len(ask.body) * part)], "more_body": part < 1.0}
        ]
        self._patience = link.rng.randrange(4)
        self._events = Events()
        self._behind = Events()
        self._status = 0

    async def run(self, app: Any) -> None:
        """The application's call. That its peer has gone is no defect of it, as the listener knows."""
        with suppress(OSError):
            await app(http_scope(self._ask.method, "/mcp?tools=all", self._ask.headers), self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        if self._body:
            return self._body.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        if self._link.rng.random() < 0.05:
            await trio.sleep(self._link.rng.random() / 100)
        if event["type"] == "http.response.start":
            headers = dict(event["headers"])
            self._status = event["status"]
            self._events.json = self._behind.json = b"json" in headers.get(b"content-type", b"")
            self.session = headers.get(b"mcp-session-id", b"").decode()
            return
        await self._part(bytes(event.get("body", b"")))
        if not event.get("more_body", False) and not self._link.meter.spent:
            self._link.heard(self._status, self._ask.about, self._events.end())

    async def _part(self, data: bytes) -> None:
        if self.gone.is_set():
            raise OSError
        kept = self._link.meter.pieces(data)
        self._link.heard(self._status, self._ask.about, self._events.feed(kept))
        if len(kept) == len(data):
            return
        if self._link.how == "swallow" and self._patience > 0:
            self._patience -= 1
            self.swallowed += [heard.message for heard in self._behind.feed(data)]
            return
        if self._link.how == "break":
            self.gone.set()
        while self._link.meter.spent and not self.gone.is_set():
            await self.held.park()
        if self.gone.is_set():
            raise OSError
        self._link.heard(self._status, self._ask.about, self._events.feed(data[len(kept) :]))


class _Link(HttpLink):
    def __init__(self, http: MemoryHttp, cut: Cut, rng: random.Random) -> None:
        super().__init__(http.session, cut, rng)
        self.exchanges: list[_Exchange] = []
        self._http = http

    async def ask(self, ask: Ask) -> None:
        await self.ask_in_part(ask, 1.0)

    async def ask_in_part(self, ask: Ask, part: float) -> None:
        """As `ask`."""
        exchange = _Exchange(self, ask, part)
        self.exchanges.append(exchange)
        self._http.serve(exchange)
        await trio.lowlevel.checkpoint()

    def release(self) -> None:
        """What was held is heard after all."""
        self.meter.restore()
        for exchange in self.exchanges:
            exchange.held.unpark_all()


class MemoryHttp:
    """An application, and one session; its calls run in `nursery`. `taken_unheard` as in `Lines`."""

    hows: tuple[str, ...] = ("break", "swallow", "stall")
    patience_s = 5.0
    step_ms = 20
    secret = False

    def __init__(self, app: Any, nursery: trio.Nursery) -> None:
        self.session = Session()
        self.taken_unheard: set[tuple[str, int]] = set()
        self._app = app
        self._nursery = nursery
        self._left: list[_Link] = []

    def serve(self, exchange: _Exchange) -> None:
        self._nursery.start_soon(exchange.run, self._app)

    async def begin(self, rng: random.Random) -> None:
        """The session."""
        async with self.link(Cut(), rng) as link:
            await link.ask(self.session.post(initialize(-1)))
            await link.hear()
            self.session.opened(link.exchanges[0].session)
            await link.say(INITIALIZED)
            await link.say({"jsonrpc": "2.0", "id": -2, "method": "ping"})
            await link.hear()

    @asynccontextmanager
    async def link(self, cut: Cut, rng: random.Random) -> AsyncIterator[_Link]:
        """Calls as they are needed."""
        link = _Link(self, cut, rng)
        yield link
        self._left.append(link)
        # What looks alive may do so until the end.
        if rng.random() < (0.3 if cut.how == "stall" else 0.7):
            self._leave(link)

    def _leave(self, link: _Link) -> None:
        for exchange in link.exchanges:
            exchange.gone.set()
            exchange.held.unpark_all()

    async def close(self) -> None:
        """Leave what still looks alive."""
        for link in self._left:
            self._leave(link)
            self._note(link)

    def _note(self, link: _Link) -> None:
        heard = [heard.message for heard in link.meter.whole]
        for message in heard + [message for exchange in link.exchanges for message in exchange.swallowed]:
            place = mark(message)
            if place:
                self.taken_unheard.add((place["streamId"], place["sequence"]))
