"""Texts that are packed once, for readers who get them in different orders."""

from __future__ import annotations

import random
import zlib

from probe.log.event_filter import EVERYTHING
from probe.views.entry_view import EntryViews
from probe.views.fold import Views
from probe.web.feed.feed_pieces import Pieces
from probe.web.feed.packing import PACKED_BEGIN, PackedEnd, Packer, joined
from probe.web.feed.position import Missed, Span

from ..support.probe import Probe

# The last one is larger than what is worth packing.
SIZES = (0, 1, 33, 4096, 70_000, 300_000)


def texts() -> list[bytes]:
    made = random.Random(18)
    return [bytes(made.choices(b'{"seq":0123456789,}', k=size)) for size in SIZES]


def test_any_order_of_packed_texts_is_one_gzip_member() -> None:
    packer, order = Packer(), random.Random(7)
    plain = texts()
    packed = [packer.pack(text) for text in plain]
    for _ in range(20):
        chosen = order.choices(range(len(plain)), k=order.randrange(8))
        cut = order.randrange(8)
        end = PackedEnd()
        chunks = [joined(packed[number] for number in part) for part in (chosen[:cut], chosen[cut:])]
        for chunk in chunks:
            end.count(chunk)
        reader = zlib.decompressobj(wbits=31)
        sent = PACKED_BEGIN + b"".join(chunk.blocks for chunk in chunks) + end.encoded()
        # It raises for a wrong checksum or size.
        assert reader.decompress(sent) == b"".join(plain[number] for number in chosen)
        assert reader.eof


def test_short_texts_and_long_ones_are_packed() -> None:
    packer = Packer()
    sizes = [len(packer.pack(text).blocks) for text in texts()]
    assert sizes[4] < 0.7 * SIZES[4]
    assert SIZES[5] < sizes[5] < 1.01 * SIZES[5]


async def test_what_several_readers_are_sent_is_made_once(probe: Probe) -> None:
    pieces = Pieces("r", probe.engine.log, probe.engine.observer.tables, EntryViews(probe.engine.log, Views))
    frames = (pieces.entries(Span(0, 1), EVERYTHING), pieces.gap(Missed("skipped", 2, 9), 9))
    assert pieces.gap(Missed("skipped", 2, 9), 9) is frames[1]
    chunk = pieces.chunk(frames)
    assert pieces.chunk((frames[0], frames[1])) is chunk
    assert zlib.decompress(chunk.blocks + b"\3\0", wbits=-15) == frames[0].text + frames[1].text
    assert pieces.chunk(frames[:1]) is pieces.packed(frames[0])
