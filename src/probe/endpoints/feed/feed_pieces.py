"""The text of server-sent events for readers of the feed, made once for all readers with the same query."""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import trio

from ...observe.event_filter import EventFilter
from ...observe.feed import PIECE, Span
from ...observe.log import EventLog
from ...observe.search.following import LineFilter
from ...observe.tables.tables import TableName, Tables
from ...wire import sse
from ...wire.jsonrpc import encode

PIECE_BYTES = 64 * 1024
"""A piece ends with the entry or row that reaches this: far less than a millisecond of copying."""

NEWEST_CALLS = 50
"""The number of calls in a feed, the latest: at full speed there are a thousand a second; the audit has them all."""

# Half a second's worth for readers who come to the same place one after the other, under different filters.
_KEPT_BYTES = 4 * 1024 * 1024
_KEPT = 512

_ROWS = 200
# Beyond this packing would take more than some 3 ms at once: one huge entry goes as it is.
_WORTH_PACKING = 256 * 1024

# The cost of an entry that is left out without being encoded, in entries: about a microsecond beside some twenty.
_LOOKED_AT = 0.05


PACKED_BEGIN = bytes.fromhex("1f8b08000000000004ff")
"""The header of gzip (RFC 1952), before the first text from `pack`."""

# A last block of deflate, with nothing in it.
_LAST_BLOCK = bytes.fromhex("0300")


def pack(text: bytes) -> bytes:
    """The text as whole blocks of deflate that refer to nothing before them: one after the other they are one stream.

    So a piece is packed once for all of its readers, and takes a tenth of the bytes: to write them to each one's socket
    is what a reader costs most.
    """
    packer = zlib.compressobj(1 if len(text) <= _WORTH_PACKING else 0, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)


class PackedEnd:
    """The end of a stream by RFC 1952: the last block, and checksum and size of all texts before it."""

    def __init__(self) -> None:
        self._checksum = 0
        self._size = 0

    def count(self, text: bytes) -> None:
        """A text was sent, packed."""
        self._checksum = zlib.crc32(text, self._checksum)
        self._size += len(text)

    def encoded(self) -> bytes:
        """The last bytes of the gzip member."""
        return _LAST_BLOCK + struct.pack("<II", self._checksum, self._size % 2**32)


@dataclass(slots=True)
class FeedFrame:
    """A text of events, up to which entry or version of a table it brings its reader, and what that costs it."""

    text: bytes
    reached: int
    cost: float = 0.0
    _packed: bytes | None = None

    @property
    def packed(self) -> bytes:
        """The text packed, which is done once."""
        if self._packed is None:
            self._packed = pack(self.text) if self.text else b""
        return self._packed


class Pieces:
    """Made of the log and the tables of one engine, within a millisecond each. The latest are kept."""

    def __init__(self, run: str, log: EventLog, tables: Tables) -> None:
        self._run = run
        self._log = log
        self._tables = tables
        self._kept: OrderedDict[Hashable, FeedFrame] = OrderedDict()
        self._kept_bytes = 0
        self._made = False

    async def let_others_run(self) -> None:
        """To be awaited after each piece; it takes a turn only if one was made, since what is kept costs nothing."""
        if self._made:
            self._made = False
            await trio.lowlevel.checkpoint()

    def id(self, seq: int) -> str:
        """The event id of a place in the log."""
        return f"{self._run}-{seq}"

    def entries(self, span: Span, wanted: EventFilter | LineFilter) -> FeedFrame:
        """The entries of a span that pass a filter, or of the beginning of the span."""
        key = (span, wanted)
        return self._kept.get(key) or self._keep(key, self._entries(span, wanted))

    def _entries(self, span: Span, wanted: EventFilter | LineFilter) -> FeedFrame:
        self._made = True
        page = self._log.since(span.after, span.last - span.after)
        # Of a file numbers may be left out behind the span.
        parts, size, cost, reached = list[bytes](), 0, 0.0, max(span.last, page.next)
        for entry in page.entries:
            if not wanted.fits(entry):
                cost += _LOOKED_AT
                continue
            row = entry.encoded()
            size += len(row)
            cost += 1 + (len(row) >> 10)
            if wanted.finds(row):
                parts.append(sse.event(row, id=self.id(entry.seq)))
            if size >= PIECE_BYTES:
                reached = entry.seq
                break
        return FeedFrame(b"".join(parts), reached, cost)

    def rows(self, table: TableName, version: int) -> FeedFrame:
        """The rows of a table that changed after a version, the earliest change first, or the first of them."""
        changes = self._tables.changes[table]
        key = (table, version, changes.version)
        return self._kept.get(key) or self._keep(key, self._rows(table, version))

    def _rows(self, table: TableName, version: int) -> FeedFrame:
        changes = self._tables.changes[table]
        changed = changes.since(version)
        if table == "calls":
            changed = changed[-NEWEST_CALLS:]
        text, count = self.named(table, [id for id, _ in changed])
        return FeedFrame(text, changes.version if count == len(changed) else changed[count - 1][1])

    def named(self, table: TableName, ids: Sequence[str]) -> tuple[bytes, int]:
        """The rows of some ids, or of the first of them, and of how many; nothing where none of those is kept."""
        self._made = True
        rows, size, count = list[bytes](), 0, 0
        for id in ids[:_ROWS]:
            found = list(self._tables.rows(table, [id]))
            rows += found
            size += sum(map(len, found))
            count += 1
            if size >= PIECE_BYTES:
                break
        if not rows:
            return b"", count
        data = b'{"table":%b,"rows":[%b]}' % (encode(table), b",".join(rows))
        return sse.event(data, name="rows"), count

    def _keep(self, key: Hashable, piece: FeedFrame) -> FeedFrame:
        self._kept[key] = piece
        self._kept_bytes += len(piece.text)
        while self._kept_bytes > _KEPT_BYTES or len(self._kept) > _KEPT:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1].text)
        return piece


def tail_start(log: EventLog, wanted: EventFilter | LineFilter, before: int, count: int) -> tuple[int, int, float]:
    """Look for entries that pass, backwards from `before`, over one piece: where that ends, how many, what it cost."""
    entries = log.until(before, PIECE)
    after = entries[0].seq - 1 if entries else log.first - 1
    found, cost, size = 0, 0.0, 0
    for entry in reversed(entries):
        fits = wanted.fits(entry)
        row = entry.encoded() if fits and wanted.text is not None else b""
        cost += 1 + (len(row) >> 10) if row else _LOOKED_AT
        found += fits and wanted.finds(row)
        size += len(row)
        if found == count or size >= PIECE_BYTES:
            return entry.seq - 1, found, cost
    return after, found, cost
