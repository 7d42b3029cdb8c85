"""Readers of the feed against a plain list: over any reconnects each entry once, or in a gap that says so."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from probe.log.context import Context
from probe.log.event_log import EventLog
from probe.log.events import MessageReceived
from probe.log.query import EventFilter, parse
from probe.views.entry_view import EntryViews
from probe.views.fold import Views
from probe.views.tables import Tables
from probe.web.feed.feed_pieces import PIECE, FeedCursor, FeedGap, Pieces, place

from ..wire.event_source import EventSource
from . import steps

RUN = "r-1"
FILTERS = [parse([]), parse([("session", "s1")]), parse([("text", "XX")]), parse([("kind", "server")])]


@dataclass
class Reader:
    """What one browser has: the numbers it got, those it was told of as missing, and the last event id."""

    wanted: EventFilter
    began: int
    cursor: FeedCursor | None = None
    got: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    source: EventSource = field(default_factory=EventSource)
    reached: int = 0
    spent: float = 0.0
    since: float = 0.0
    seen_end: bool = False


class Feed(RuleBasedStateMachine):
    """The model: every event ever appended, and what each reader has of them."""

    @initialize(kept=st.sampled_from([1, 50, 1000]), per_second=st.integers(1, 100), burst=st.integers(1, 80))
    def begins(self, kept: int, per_second: int, burst: int) -> None:
        self.now = 0.0
        self.per_second, self.burst = per_second, burst
        self.log = EventLog(lambda: (1000.0 + self.now, self.now), max_events=kept, max_bytes=10**9)
        self.pieces = Pieces(RUN, self.log, Tables(Views(RUN), self.log), EntryViews(self.log.entry, Views))
        self.readers: list[Reader] = []

    @rule(count=st.integers(1, 200), session=st.sampled_from(["s1", "s2"]), size=st.sampled_from([0, 10, 3000, 70_000]))
    def things_happen(self, count: int, session: str, size: int) -> None:
        for number in range(count):
            body = b'"%b"' % (b"x" * (size if number % 50 == 0 else number % 4))
            self.log.append(
                MessageReceived(None, "invalid", None, None, body), Context(exchange=number, session=session)
            )

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(wanted=st.sampled_from(FILTERS), back=st.integers(0, 400))
    def somebody_comes(self, wanted: EventFilter, back: int) -> None:
        began = max(0, self.log.last - back)
        reader = Reader(wanted, began, reached=began)
        self.readers.append(reader)
        self.connect(reader, began)

    def connect(self, reader: Reader, position: int) -> None:
        reader.cursor = FeedCursor(position, self.now, per_second=self.per_second, burst=self.burst)
        reader.spent, reader.since, reader.seen_end = 0.0, self.now, False

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def somebody_is_cut_off_and_comes_back(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        if reader.source.last_event_id:
            position = place(reader.source.last_event_id, RUN, self.log.last)
            assert position is not None
        else:
            position = reader.began
        # Behind its last id there may be entries that its filter left out; it is shown none of those now either.
        assert not self.wanted(reader, position, reader.reached)
        reader.reached = position
        self.connect(reader, position)

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), times=st.integers(1, 12))
    def somebody_reads(self, data: st.DataObject, times: int) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        for _ in range(times):
            self.read(reader)

    @precondition(lambda self: self.readers)
    @rule()
    def everybody_reads_all_it_may(self) -> None:
        for reader in self.readers:
            while self.read(reader):
                pass

    def read(self, reader: Reader) -> bool:
        """Take one step; whether there was one."""
        assert reader.cursor is not None
        before, first, last = reader.reached, self.log.first, self.log.last
        step = reader.cursor.next(first, last, self.now)
        if step is None:
            spent = reader.spent >= self.burst
            assert before == last or spent, "nothing comes only to who has all, or may read no more"
            reader.seen_end |= before == last
            return False
        if isinstance(step, FeedGap):
            self.miss(reader, step)
        else:
            assert first - 1 <= step.after == before < step.last <= last
            assert step.last - step.after <= PIECE
            piece = self.pieces.entries(step, reader.wanted)
            assert step.after < piece.reached <= step.last
            reader.cursor.took(piece.reached, piece.cost)
            reader.spent += piece.cost
            reader.reached = piece.reached
            self.hear(reader, piece.text)
            assert reader.got[-len(self.wanted(reader, before, piece.reached)) or len(reader.got) :] == self.wanted(
                reader, before, piece.reached
            )
        assert reader.cursor.position == reader.reached
        return True

    def hear(self, reader: Reader, text: bytes) -> None:
        count = len(reader.source.events)
        reader.source.feed(text)
        for event in reader.source.events[count:]:
            entry = json.loads(event.data)
            assert (event.type, event.last_event_id) == ("message", f"{RUN}-{entry['seq']}")
            reader.got.append(entry["seq"])

    def miss(self, reader: Reader, missed: FeedGap) -> None:
        assert missed.first is not None
        assert missed.last is not None
        assert missed.first == reader.reached + 1 <= missed.last
        if missed.reason == "evicted":
            assert missed.last == self.log.first - 1, "only what is really gone, and all of it"
        else:
            assert missed.reason == "skipped"
            assert reader.seen_end, "who catches up is never made to skip"
            assert self.log.last - reader.reached > self.burst, "nor who is close"
            assert self.log.last - missed.last < self.burst, "it goes on with the newest part"
            assert reader.spent >= self.burst, "nor who has not read what it may"
        reader.missing += range(missed.first, missed.last + 1)
        reader.reached = missed.last
        # What the endpoint sends for it: an event with the id of the place.
        reader.source.feed(b"event: gap\nid: %b-%d\ndata: {}\n\n" % (RUN.encode(), missed.last))

    def wanted(self, reader: Reader, after: int, last: int) -> list[int]:
        page = self.log.since(after, max(0, last - after))
        return [entry.seq for entry in page.entries if entry.seq <= last and reader.wanted.matches(entry)]

    @invariant()
    def nothing_twice_and_nothing_lost_without_a_word(self) -> None:
        for reader in self.readers:
            told = reader.got + reader.missing
            assert len(told) == len(set(told)) <= reader.reached - reader.began
            if reader.wanted.passes_all:
                assert sorted(told) == list(range(reader.began + 1, reader.reached + 1))
            assert reader.got == sorted(reader.got)

    @invariant()
    def nobody_reads_faster_than_it_may(self) -> None:
        for reader in self.readers:
            # One piece is begun with whatever is left, and no entry is larger than these.
            most = self.burst + (self.now - reader.since) * self.per_second + PIECE * 4 + 140
            assert reader.spent <= most + 1e-6

    @invariant()
    def little_is_kept(self) -> None:
        if hasattr(self, "pieces"):
            kept = [*self.pieces._kept.values()]
            assert sum(len(piece.text) for piece in kept) == self.pieces._kept_bytes <= 4 * 1024 * 1024
            assert len(kept) <= 512


TestFeed = Feed.TestCase
TestFeed.settings = steps(25)
