"""The event log against a plain list: readers at any pace get every event or the exact range that they lost."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from probe.log.event_log import EventLog
from probe.log.events import MessageReceived

from ..support.facts import sized
from . import steps


class Log(RuleBasedStateMachine):
    """The model: every event ever appended. A reader is its cursor and the numbers it got or was told it lost."""

    @initialize(max_events=st.integers(1, 12), max_bytes=st.integers(1, 20_000))
    def begins(self, max_events: int, max_bytes: int) -> None:
        self.max_events, self.max_bytes = max_events, max_bytes
        self.now = 0.0
        self.log = EventLog(lambda: (1000.0 + self.now, self.now), max_events=max_events, max_bytes=max_bytes)
        self.events: list[MessageReceived] = []
        self.readers: list[tuple[int, list[int]]] = []

    @rule(size=st.integers(0, 3000), seconds=st.floats(0, 9))
    def something_happens(self, size: int, seconds: float) -> None:
        self.now += seconds
        self.events.append(sized(size, len(self.events)))
        assert self.log.append(self.events[-1]) == len(self.events) == self.log.last

    @rule()
    def a_reader_comes(self) -> None:
        self.readers.append((0, []))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), limit=st.integers(0, 8))
    def a_reader_goes_on(self, data: st.DataObject, limit: int) -> None:
        at = data.draw(st.integers(0, len(self.readers) - 1))
        cursor, numbers = self.readers[at]
        page = self.log.since(cursor, limit)
        lost = [] if page.gap is None else list(range(page.gap.first, page.gap.last + 1))
        got = [entry.seq for entry in page.entries]
        assert all(self.events[entry.seq - 1] is entry.fact for entry in page.entries)
        assert len(got) <= limit
        assert page.gap is None or (lost and lost[-1] == len(self.events) - self.kept()), "only what is really gone"
        if limit and cursor < len(self.events):
            assert got, "a page is empty only when there is nothing more"
        numbers = numbers + lost + got
        assert numbers == list(range(1, len(numbers) + 1)), "no event twice, none without a word"
        assert page.next == len(numbers)
        self.readers[at] = (page.next, numbers)

    def kept(self) -> int:
        return len(self.log.since(0, 10_000).entries)

    @invariant()
    def it_is_bounded_and_keeps_the_newest(self) -> None:
        kept = self.log.since(0, 10_000).entries
        assert len(kept) <= self.max_events
        assert [entry.fact for entry in kept] == self.events[len(self.events) - len(kept) :]
        assert bool(kept) == bool(self.events)
        weight = sum(len(entry.fact.message) for entry in kept if isinstance(entry.fact, MessageReceived))
        assert weight <= self.max_bytes or len(kept) == 1

    @invariant()
    def times_never_go_back(self) -> None:
        times = [(entry.at, entry.mono) for entry in self.log.since(0, 10_000).entries]
        assert times == sorted(times)


TestLog = Log.TestCase
TestLog.settings = steps(15)
