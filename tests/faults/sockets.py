"""WebSocket and HTTP over real sockets, which are cut by closing, resetting or forgetting them."""

from __future__ import annotations

import json
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import h11
import trio

from ..support.websocket import CLOSE, TEXT, Reader, close, frame, upgrade
from .books import Book, Message
from .http import Ask, Events, HttpLink, Session
from .links import INITIALIZED, Cut, Heard, Meter, encoded, initialize, resume_request

_HOWS = ("fin", "reset", "zombie")


async def _leave(stream: trio.SocketStream, how: str) -> None:
    if how == "reset":
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await trio.aclose_forcefully(stream)


class _Sockets:
    """What both have in common: a port, and connections that were forgotten and look alive to the server."""

    hows: tuple[str, ...] = _HOWS
    patience_s = 0.2
    step_ms = 4

    def __init__(self, port: int, receive_buffer: int = 0) -> None:
        self._port = port
        self._receive_buffer = receive_buffer
        self._zombies: list[trio.SocketStream] = []

    async def dial(self, rng: random.Random) -> trio.SocketStream:
        """A connection; half of them with so little room that the server stands in the middle of what is large."""
        sock = trio.socket.socket()
        if size := self._receive_buffer or rng.choice((0, 4096)):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        await sock.connect(("127.0.0.1", self._port))
        return trio.SocketStream(sock)

    async def part(self, stream: trio.SocketStream, how: str) -> None:
        """Leave a connection."""
        if how == "zombie":
            self._zombies.append(stream)
        else:
            await _leave(stream, how)

    async def close(self) -> None:
        for stream in self._zombies:
            await _leave(stream, "reset")


class SocketLink:
    """One WebSocket."""

    def __init__(self, stream: trio.SocketStream, meter: Meter, rng: random.Random) -> None:
        self._stream = stream
        self._meter = meter
        self._rng = rng
        self._reader = Reader()

    async def upgrade(self) -> None:
        """The handshake, which is not cut."""
        await self._stream.send_all(upgrade(sec_websocket_protocol="mcp"))
        while (head := self._reader.head()) is None:
            data = await self._stream.receive_some()
            assert data, "no answer"
            self._reader.feed(data)
        assert head[0] == 101, head
        rest = self._reader.rest
        self._reader = Reader()
        self._take(rest)

    async def say(self, message: Message) -> None:
        if not self._meter.spent:
            await self._send(frame(TEXT, encoded(message)))

    async def tear(self, message: Message, part: float) -> None:
        """Some of a frame."""
        whole = frame(TEXT, encoded(message))
        await self._send(whole[: int(len(whole) * part)])
        self.cut()

    def cut(self) -> None:
        self._meter.cut()

    async def resume(self, book: Book, id: int, *, last: bool) -> bool:
        """As on lines."""
        own: dict[str, Any] = {"received": book.last} if book.exact else {}
        if book.secret:
            own["secret"] = book.secret
        await self.say(resume_request(book, id, own))
        return True

    async def hear(self) -> Heard | None:
        """The next message."""
        while not self._meter.whole:
            if self._meter.spent:
                return None
            try:
                data = await self._stream.receive_some(65536)
            except trio.BrokenResourceError:
                data = b""
            if not data:
                return None
            self._take(data)
        return self._meter.whole.popleft()

    def _take(self, data: bytes) -> None:
        self._reader.feed(self._meter.pieces(data))
        while (found := self._reader.frame()) is not None:
            assert found.opcode in (TEXT, CLOSE), found
            if found.opcode == TEXT:
                self._meter.message(Heard(json.loads(found.payload)))

    async def _send(self, data: bytes) -> None:
        with suppress(trio.BrokenResourceError):
            await self._stream.send_all(data)

    async def say_goodbye(self) -> None:
        await self._send(close())


class WebSockets(_Sockets):
    """`/ws` of a server."""

    hows: tuple[str, ...] = (*_HOWS, "close")
    secret = True
    _ids = iter(range(-1, -1_000_000, -1))

    @asynccontextmanager
    async def link(self, cut: Cut, rng: random.Random) -> AsyncIterator[SocketLink]:
        """A connection with its session, whose `initialize` may be cut."""
        stream = await self.dial(rng)
        link = SocketLink(stream, Meter(cut), rng)
        await link.upgrade()
        await link.say(initialize(next(self._ids)))
        if await link.hear() is not None:
            await link.say(INITIALIZED)
        yield link
        if cut.how == "close":
            await link.say_goodbye()
        await self.part(stream, cut.how)


class _Link(HttpLink):
    """Over sockets."""

    def __init__(self, http: Https, cut: Cut, rng: random.Random, nursery: trio.Nursery) -> None:
        super().__init__(http.session, cut, rng)
        self._http = http
        self._nursery = nursery

    async def ask(self, ask: Ask) -> None:
        self._nursery.start_soon(self._exchange, ask, 1.0)
        await trio.lowlevel.checkpoint()

    async def ask_in_part(self, ask: Ask, part: float) -> None:
        await self._exchange(ask, part)

    async def _exchange(self, ask: Ask, part: float) -> None:
        stream = await self._http.dial(self.rng)
        head = "".join(f"{name}: {value}\r\n" for name, value in ask.headers.items())
        request = f"{ask.method} /mcp?tools=all HTTP/1.1\r\n{head}\r\n".encode() + ask.body
        whole = False
        try:
            await stream.send_all(request[: int(len(request) * part)])
            if part == 1.0:
                whole = await self._read(stream, ask)
        except trio.BrokenResourceError:
            pass
        finally:
            with trio.CancelScope(shield=True):
                await self._http.part(stream, "fin" if whole else self.how)

    async def _read(self, stream: trio.SocketStream, ask: Ask) -> bool:
        """Whether the response came to its end."""
        state, events = h11.Connection(h11.CLIENT), Events()
        state.send(h11.Request(method=ask.method, target="/mcp", headers=[("host", "localhost")]))
        state.send(h11.EndOfMessage())
        status = 0
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                if self.meter.spent:
                    return False
                kept = self.meter.pieces(await stream.receive_some(65536))
                self.heard(status, "", [])
                if not kept:
                    return False
                state.receive_data(kept)
            elif isinstance(event, h11.Response):
                status, events.json = event.status_code, b"json" in dict(event.headers).get(b"content-type", b"")
                if "initialize" in ask.about:
                    self._http.session.opened(dict(event.headers)[b"mcp-session-id"].decode())
            elif isinstance(event, h11.Data):
                self.heard(status, ask.about, events.feed(bytes(event.data)))
            else:
                assert isinstance(event, h11.EndOfMessage), event
                self.heard(status, ask.about, events.end())
                return True


class Https(_Sockets):
    """`/mcp` of a server, and one session."""

    secret = False

    def __init__(self, port: int, receive_buffer: int = 0) -> None:
        super().__init__(port, receive_buffer)
        self.session = Session()

    async def begin(self, rng: random.Random) -> None:
        """The session."""
        async with self.link(Cut(how="fin"), rng) as link:
            await link.ask(self.session.post(initialize(-1), about="initialize"))
            await link.hear()
            await link.say(INITIALIZED)
            await link.say({"jsonrpc": "2.0", "id": -2, "method": "ping"})
            await link.hear()

    @asynccontextmanager
    async def link(self, cut: Cut, rng: random.Random) -> AsyncIterator[HttpLink]:
        """Connections as they are needed."""
        async with trio.open_nursery() as nursery:
            yield _Link(self, cut, rng, nursery)
            nursery.cancel_scope.cancel()
