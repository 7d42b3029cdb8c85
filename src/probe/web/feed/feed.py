"""`GET /dashboard/events`: the live feed, as server-sent events (docs/observation.md).

A busy server records 10,000 entries a second, and to encode one takes 20 µs. Twenty readers that each encoded all of it
would stop the calls that they watch. So a reader is a position in the log and a place in time:

1. It waits for something new, sleeps until the next tick, and sends everything up to the end of the log at that tick.
   Ticks are common: all readers ask for the same pieces, and each piece is made once (`feed_pieces.Pieces`).
2. One reader at a time leaves a tick. A call waits for the piece of one reader, not for those of all.
3. Its position only grows, and every number is in one span or one gap. So a reader may skip, and its page still knows
   what is missing; after a lost connection it continues at the id of its last event.
4. Rows of tables are whole, not changes of rows. A lost row is repaired by the next one.

A client that does not read holds one chunk and its position, until the listener disconnects it. A client that reads
gets the log up to the entry `stopped`.

For example, two readers at position 40, a third at 0, and ten new entries: the first two share the span 41 to 50. The
third gets 1 to 50 in one piece, and from the next tick on it shares, too.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import trio

from ... import __version__
from ...core.inbound import HttpHead, accepts
from ...engine.engine import Engine
from ...engine.services import Limit, LimitError
from ...log.query import QueryError
from ...server.endpoints.asgi import (
    Headers,
    Receive,
    RefusedError,
    Scope,
    Send,
    holder_of,
    http_head,
    refuse,
    start,
    wait_disconnect,
)
from ...server.endpoints.exchange import EVENT_HEADERS
from ...views.entry_view import EntryViews
from ...views.search.conditions import FollowedExchanges, LineFilter, LineMarks
from ...views.tables import TableName
from ...wire import sse
from ...wire.errors import Rejection
from ...wire.jsonrpc import encode
from .feed_pieces import (
    NEWEST_CALLS,
    FeedCursor,
    FeedFrame,
    FeedGap,
    FeedHello,
    FeedQuery,
    FeedReader,
    Pieces,
    place,
    read,
    tail_start,
)


async def _watch(receive: Receive, scope: trio.CancelScope) -> None:
    await wait_disconnect(receive)
    scope.cancel()


async def _write(send: Send, text: bytes, *, more: bool = True) -> None:
    try:
        await send({"type": "http.response.body", "body": text, "more_body": more})
    except OSError:
        # The client has disconnected. The watching task gets that too, and cancels this one.
        await trio.sleep_forever()


# Bytes sent at once: enough for a busy socket. More would only wait in the buffer of a connection.
_CHUNK_BYTES = 64 * 1024

_HEADERS: Headers = (*EVENT_HEADERS, (b"vary", b"accept-encoding"))
_PACKED_HEADERS: Headers = (*_HEADERS, (b"content-encoding", b"gzip"))
# gzip, quickly: 64 KiB take about 0.2 ms. With a window of 8 KiB a compressor takes 96 KiB in place of 256.
_GZIP = (1, zlib.DEFLATED, 16 + 13, 7)


class Feed:
    """The feed of one engine, for `max_feed_readers` at most; `open` are the present readers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._recorder = engine.services.recorder
        observer = engine.observer
        views = EntryViews(engine.log.entry, lambda: observer.views)
        self._pieces = Pieces(engine.run, engine.log, observer.tables, views)
        self._ticks = _Ticks(engine)
        self._exchanges = FollowedExchanges(engine.log, lambda: observer.views)
        self._places = Limit("max_feed_readers", "there are {most} readers already ({name})", engine.services.shares)
        self._left = trio.lowlevel.ParkingLot()
        self.open: set[_Reader] = set()

    @property
    def readers(self) -> list[FeedReader]:
        return sorted((reader.state for reader in self.open), key=lambda state: state.since)

    async def wait_idle(self) -> None:
        while self.open:
            await self._left.park()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = http_head(scope)
        try:
            holder = holder_of(scope)
            reader = self._admit(head, holder, scope["query_string"].decode("latin-1"), send)
        except RefusedError as refused:
            await refuse(send, head, refused)
            return
        if head.method == "HEAD":
            await start(send, 200, reader.headers)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            with self._places.holding(holder, self._recorder):
                await self._follow(reader, receive, send)

    def _admit(self, head: HttpHead, holder: str | None, query: str, send: Send) -> _Reader:
        """Raises `RefusedError`."""
        if head.method not in ("GET", "HEAD"):
            raise RefusedError(405, "this page takes GET, HEAD", [(b"allow", b"GET, HEAD")])
        if head.all("accept") and not accepts(head, "text/event-stream"):
            raise RefusedError(406, "this page is text/event-stream")
        try:
            wanted = read(head, query)
        except QueryError as error:
            raise RefusedError(400, str(error), known=error.known) from None
        except Rejection as rejection:
            raise RefusedError(rejection.refusal.status, rejection.message) from None
        reader = _Reader(self._engine, self._pieces, self._ticks, self._exchanges, wanted, send)
        try:
            self._places.check(holder, self._recorder)
        except LimitError as full:
            refused = full.rejection()
            raise RefusedError(refused.refusal.status, full.message, refused.headers) from None
        return reader

    async def _follow(self, reader: _Reader, receive: Receive, send: Send) -> None:
        self.open.add(reader)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, receive, nursery.cancel_scope)
                await reader.run()
                await _write(send, b"", more=False)
                nursery.cancel_scope.cancel()
        finally:
            self.open.discard(reader)
            self._left.unpark_all()


class _Ticks:
    """The common moments of sending, with the end of the log at each of them."""

    def __init__(self, engine: Engine) -> None:
        self._log = engine.log
        self._observer = engine.observer
        self._every_s = engine.settings.feed_tick_s
        self._number = -1.0
        self._end = 0
        # trio runs all ready tasks before it polls the sockets again. So only one reader is ready at a time: calls wait
        # for the piece of one reader, not for those of all.
        self._turn = trio.Semaphore(1)

    @property
    def end(self) -> int:
        number = trio.current_time() // self._every_s
        if number != self._number:
            self._number, self._end = number, self._log.last
            self._observer.catch_up()
        return self._end

    async def next(self) -> None:
        """Sleep until the next tick, and until this reader's turn."""
        now = trio.current_time()
        at = (now // self._every_s + 1) * self._every_s
        # 0.8 // 0.1 is 7, but 8 * 0.1 is 0.8 again.
        await trio.sleep_until(at if at > now else at + self._every_s)
        async with self._turn:
            pass


@dataclass(slots=True)
class _SentTable:
    name: TableName
    version: int = -1


class _Reader:
    def __init__(
        self,
        engine: Engine,
        pieces: Pieces,
        ticks: _Ticks,
        exchanges: FollowedExchanges,
        wanted: FeedQuery,
        send: Send,
    ) -> None:
        settings = engine.settings
        self._engine = engine
        self._log = engine.log
        self._observer = engine.observer
        self._pieces = pieces
        self._ticks = ticks
        self._query = wanted
        self._wanted = LineFilter(wanted.wanted, wanted.words, exchanges)
        self._marks = LineMarks(wanted.passes, exchanges) if wanted.passes else None
        self._send = send
        self._since = engine.clock.both()[0]
        self._tables = [_SentTable(name) for name in self._query.tables]
        # Kept, so that all readers see the tables as of the same tick.
        self._rows = engine.observer.tables
        self._keep_alive_s = settings.keep_alive_s
        self._sent_at = trio.current_time()
        self._cursor = self._cursor_at(engine.log.last)
        self._chunk: list[bytes] = []
        self._chunk_bytes = 0
        self._packer = zlib.compressobj(*_GZIP) if self._query.packed else None

    @property
    def headers(self) -> Headers:
        return _PACKED_HEADERS if self._query.packed else _HEADERS

    @property
    def state(self) -> FeedReader:
        return FeedReader(self._since, self._cursor.position, self._log.last - self._cursor.position)

    async def run(self) -> None:
        """Write up to the entry `stopped`, or until cancelled: a disconnect cancels it."""
        await start(self._send, 200, self.headers)
        await self._begin()
        await self._send_new()
        while not self._has_all:
            if trio.current_time() >= self._sent_at + self._keep_alive_s:
                self._add_text(sse.comment("keep-alive", id=self._pieces.id(self._cursor.position)))
                await self._flush()
            # The log of a file does not have the end of this server.
            if self._log.last <= self._cursor.position and not self._unsent_rows() and not self._has_all:
                with trio.move_on_at(self._sent_at + self._keep_alive_s):
                    await self._log.wait_beyond(self._cursor.position)
            await self._ticks.next()
            await self._send_new()
        if self._packer is not None:
            await _write(self._send, self._packer.flush())

    @property
    def _has_all(self) -> bool:
        stopped = self._engine.stopped
        return stopped is not None and self._cursor.position >= stopped

    async def _begin(self) -> None:
        since = self._query.since
        if self._query.words:
            await self._observer.reach(self._log.last)
        known = None if since is None else place(since, self._engine.run, self._log.last)
        self._cursor = self._cursor_at(await self._tail() if known is None else known)
        # The first rows are as of the `last` in this event.
        self._observer.catch_up()
        first, last = self._log.first, self._log.last
        hello = FeedHello(
            self._engine.run, __version__, self._engine.started_at, first, last, resumed=known is not None
        )
        self._add_text(sse.event(encode(hello), id=self._pieces.id(self._cursor.position), name="hello"))
        if since is not None and known is None:
            self._add_gap(FeedGap("restarted", None, None))

    def _cursor_at(self, position: int) -> FeedCursor:
        limits = self._engine.settings.limits
        rate, burst = limits.feed_events_per_second, limits.feed_burst
        return FeedCursor(position, trio.current_time(), per_second=rate, burst=burst)

    async def _tail(self) -> int:
        query, at = self._query, self._log.last
        if self._wanted.passes_all:
            return self._log.tail(query.tail)
        left, may = query.tail, float(self._engine.settings.limits.feed_burst)
        while left and may > 0 and at >= self._log.first:
            at, found, cost = tail_start(self._log, self._wanted, at, left)
            left, may = left - found, may - cost
            await trio.lowlevel.checkpoint()
        # Entries may have left the log meanwhile; they were never promised.
        return max(at, self._log.first - 1)

    async def _send_new(self) -> None:
        while await self._take_entries():
            await self._flush()
        for table in self._tables:
            await self._take_rows(table)
        await self._flush()

    async def _take_entries(self) -> bool:
        if self._query.words or self._query.passes:
            await self._observer.reach(self._ticks.end)
        while self._chunk_bytes < _CHUNK_BYTES:
            step = self._cursor.next(self._log.first, self._ticks.end, trio.current_time())
            if step is None:
                return False
            if isinstance(step, FeedGap):
                self._add_gap(step)
                continue
            piece = self._pieces.entries(step, self._wanted, view=self._query.view, marks=self._marks)
            self._cursor.took(piece.reached, piece.cost)
            self._append(piece)
            await self._pieces.let_others_run()
        return True

    def _add_gap(self, missed: FeedGap) -> None:
        self._append(self._pieces.gap(missed, self._cursor.position))

    def _add_text(self, text: bytes) -> None:
        self._append(FeedFrame(text))

    async def _take_rows(self, table: _SentTable) -> None:
        """The next rows of a table: a piece of the changed ones; all for a reader without rows."""
        if table.version < 0:
            ids = self._rows.all(table.name)
            ids = ids[-NEWEST_CALLS:] if table.name == "calls" else ids
            table.version = self._rows.last
            while ids:
                text, count = self._pieces.named(table.name, ids)
                del ids[:count]
                await self._add(FeedFrame(text))
        piece = self._pieces.rows(table.name, table.version)
        table.version = piece.reached
        await self._add(piece)

    async def _add(self, piece: FeedFrame) -> None:
        self._append(piece)
        if self._chunk_bytes >= _CHUNK_BYTES:
            await self._flush()
        await self._pieces.let_others_run()

    def _append(self, piece: FeedFrame) -> None:
        if piece.text:
            self._chunk.append(piece.text)
            self._chunk_bytes += len(piece.text)

    def _unsent_rows(self) -> bool:
        if not self._tables:
            return False
        # A reader may have entries beyond the tick. The tables may take them while it sleeps, and that does not wake
        # it.
        last = self._observer.tables.last
        return any(table.version < last for table in self._tables)

    async def _flush(self) -> None:
        if self._chunk:
            await _write(self._send, await self._body())
            self._sent_at = trio.current_time()

    async def _body(self) -> bytes:
        """The encoded chunk. While it waits, the reader holds only these bytes, not their pieces."""
        text = b"".join(self._chunk)
        self._chunk, self._chunk_bytes = [], 0
        if self._packer is None:
            return text
        packed = []
        for at in range(0, len(text), _CHUNK_BYTES):
            if at:
                await trio.lowlevel.checkpoint()
            packed.append(self._packer.compress(text[at : at + _CHUNK_BYTES]))
        return b"".join([*packed, self._packer.flush(zlib.Z_SYNC_FLUSH)])
