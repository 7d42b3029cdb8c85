"""Lines in memory: the server's side of each connection refuses, swallows or holds what is behind the cut.

Virtual time, and every byte where the seed wants it.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.abc import ReceiveStream, SendStream
from trio.testing import MemoryReceiveStream, MemorySendStream, memory_stream_one_way_pair

from probe.engine.engine import Engine
from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Peer
from probe.server.endpoints.lines import LineWire

from .books import Book, Message, mark
from .links import INITIALIZED, Cut, Heard, Meter, encoded, initialize, resume_request


class _Source(ReceiveStream):
    """What the client writes. When it has gone that is an end, or where it is `rude`, an error."""

    def __init__(self, stream: MemoryReceiveStream, *, rude: bool) -> None:
        self._stream = stream
        self._rude = rude

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = bytes(await self._stream.receive_some(max_bytes))
        if self._rude and not data:
            raise trio.BrokenResourceError
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Sink(SendStream):
    """What the server writes: heard up to the cut, then refused ("break"), swallowed or held ("stall")."""

    def __init__(self, cut: Cut, rng: random.Random) -> None:
        self.meter = Meter(cut)
        self.changed = trio.lowlevel.ParkingLot()
        self.swallowed: list[Message] = []
        self.heard = b""
        self.closed = False
        self._how = cut.how
        self._rng = rng
        self._patience = rng.randrange(4)
        self._rest = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """A line. Cancelled while it waits, none of it was taken, or a part."""
        await trio.lowlevel.checkpoint()
        if self._rng.random() < 0.05:
            await trio.sleep(self._rng.random() / 100)
        if self.closed:
            raise trio.BrokenResourceError
        kept = self.meter.pieces(bytes(data))
        if kept:
            self._hear(kept)
        if len(kept) < len(data):
            await self._refuse(bytes(data), bytes(data[len(kept) :]))

    def _hear(self, data: bytes) -> None:
        self.heard += data
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self.meter.message(Heard(json.loads(line)))
        self.changed.unpark_all()

    async def _refuse(self, data: bytes, rest: bytes) -> None:
        self.changed.unpark_all()
        if self._how == "swallow" and self._patience > 0:
            self._patience -= 1
            self.swallowed.append(json.loads(data))
            return
        while self._how == "stall" and self.meter.spent and not self.closed:
            await self.changed.park()
        if self.meter.spent or self.closed:
            raise trio.BrokenResourceError
        self._hear(rest)

    def close(self) -> None:
        self.closed = True
        self.changed.unpark_all()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()


class LineLink:
    """One connection."""

    def __init__(self, up: MemorySendStream, sink: _Sink, rng: random.Random) -> None:
        self._up = up
        self._sink = sink
        self._rng = rng

    async def say(self, message: Message) -> None:
        if not (self._sink.meter.spent or self._sink.closed):
            await self._up.send_all(encoded(message) + b"\n")

    async def tear(self, message: Message, part: float) -> None:
        """Some of a line."""
        if not self._sink.meter.spent:
            line = encoded(message) + b"\n"
            await self._up.send_all(line[: int(len(line) * part)])
        self.cut()

    def cut(self) -> None:
        self._sink.meter.cut()

    def release(self) -> None:
        self._sink.meter.restore()
        self._sink.changed.unpark_all()

    async def resume(self, book: Book, id: int, *, last: bool) -> bool:
        """With how much there is, if this client counts; now and then as the draft's example, which has no id."""
        own: dict[str, Any] = {"received": book.last} if book.exact else {}
        if book.secret:
            own["secret"] = book.secret
        message = resume_request(book, id, own)
        answered = last or self._rng.random() < 0.8
        if not answered:
            del message["id"]
        await self.say(message)
        return answered

    async def hear(self) -> Heard | None:
        """The next message."""
        while not self._sink.meter.whole:
            if self._sink.meter.spent or self._sink.closed:
                return None
            await self._sink.changed.park()
        return self._sink.meter.whole.popleft()


class Lines:
    """Connections to an engine; their server's sides run in `nursery`.

    After `close`, `heard` has what came on each, and `taken_unheard` stream and place of each message that the server
    could take for sent although it was not heard.
    """

    hows: tuple[str, ...] = ("break", "swallow", "stall")
    patience_s = 5.0
    step_ms = 20
    secret = True

    def __init__(self, engine: Engine, nursery: trio.Nursery) -> None:
        self.taken_unheard: set[tuple[str, int]] = set()
        self.heard: list[bytes] = []
        self._engine = engine
        self._nursery = nursery
        self._left: list[tuple[MemorySendStream, _Sink]] = []
        self._ids = iter(range(-1, -1_000_000, -1))

    @asynccontextmanager
    async def link(self, cut: Cut, rng: random.Random) -> AsyncIterator[LineLink]:
        """A connection, with its session, whose handshake may be cut, too."""
        up, down = memory_stream_one_way_pair()
        sink = _Sink(cut, rng)
        wire = LineWire(_Source(down, rude=rng.random() < 0.5), sink, max_bytes=1_000_000)
        self._nursery.start_soon(self._serve, wire, sink)
        link = LineLink(up, sink, rng)
        await link.say(initialize(next(self._ids)))
        if await link.hear() is not None:
            await link.say(INITIALIZED)
        yield link
        self._left.append((up, sink))
        # What looks alive may do so until the end.
        if rng.random() < (0.3 if cut.how == "stall" else 0.7):
            await self._leave(up, sink)

    async def _serve(self, wire: LineWire, sink: _Sink) -> None:
        await serve_pipe(self._engine, wire, Peer("stdio", "127.0.0.1", "http://127.0.0.1:8000", "all"))
        sink.close()

    async def _leave(self, up: MemorySendStream, sink: _Sink) -> None:
        await up.aclose()
        sink.close()

    async def close(self) -> None:
        """Close what still looks alive."""
        for up, sink in self._left:
            await self._leave(up, sink)
            self._note(sink)
            self.heard.append(sink.heard)

    def _note(self, sink: _Sink) -> None:
        for message in [*sink.swallowed, *(heard.message for heard in sink.meter.whole)]:
            place = mark(message)
            if place:
                self.taken_unheard.add((place["streamId"], place["sequence"]))
