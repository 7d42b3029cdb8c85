"""The observer: records, evidence and tables are up to the end of the log when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from probe.engine.observer import Observer
from probe.log.context import Recorder
from probe.log.event_log import Entry, EventLog
from probe.log.events import CallProgressed, ServerState, SessionClosed, SessionOpened
from probe.settings import Limits
from probe.views.work import Call

from ..support.facts import started
from ..support.probe import running
from ..support.views import Evidence


def make(most: int = 20_000) -> tuple[Observer, EventLog]:
    log = EventLog(lambda: (0.0, 0.0), max_events=most, max_bytes=10**9)
    return Observer(log, "run", Limits(call_records=50)), log


def begin(log: EventLog, call: str = "c1") -> Recorder:
    """A call runs; gives the recorder of what it does."""
    recorder = Recorder(log).bind(exchange=1, session="s1", call=call)
    return recorder.caused_by(recorder.append(started()))


def progressed(recorder: Recorder, count: int) -> None:
    for number in range(count):
        recorder.append(CallProgressed(number + 1, None, None))


def test_whoever_asks_gets_what_the_log_has_at_that_moment() -> None:
    observer, log = make()
    Recorder(log).bind(session="s1").append(SessionOpened("id", "2025-11-25", "n", "v", b"{}"))
    assert observer.tables.all("sessions") == ["s1"]
    recorder = begin(log)
    assert len(observer.records) == 1
    assert Evidence(observer.views).of("c1") == [2]
    progressed(recorder, 1)
    assert Evidence(observer.views).of("c1") == [2, 3]
    assert observer.tables.all("calls") == ["c1"]


async def test_virtual_time_stands_still_for_it(autojump_clock: MockClock) -> None:
    """What takes three seconds takes three seconds, and nothing is due once all is quiet."""
    async with running() as probe:
        client = probe.modern()
        before = trio.current_time()
        arguments = {"steps": 3, "step_ms": 1000}
        await client.call("tools/call", {"name": "progress", "arguments": arguments}, meta={"progressToken": 0})
        assert trio.current_time() - before == pytest.approx(3, abs=0.001)
        await trio.sleep(1)
        idle = trio.lowlevel.current_statistics().seconds_to_next_deadline
        assert idle > 1


def test_in_a_room_an_open_session_outlives_more_sessions_than_may_be_open() -> None:
    log = EventLog(lambda: (0.0, 0.0), max_events=100, max_bytes=10**9)
    observer = Observer(log, "run", Limits(max_sessions=2), all_with_log=True)
    opened = SessionOpened("id", "2025-11-25", "n", "v", b"{}")
    for number in range(1, 301):
        recorder = Recorder(log).bind(session=f"s{number}")
        recorder.append(opened)
        if number > 1:
            recorder.append(SessionClosed("deleted"))
        observer.catch_up()
    for _ in range(200):
        log.append(ServerState("ready"))
        observer.catch_up()
    views = observer.views
    assert [*views.sessions] == ["s1", *(f"s{number}" for number in range(201, 301))]
    assert len(views.clients) == 101


class Followed:
    """What a follower was told."""

    def __init__(self, poison: int | None = None) -> None:
        self.taken: list[tuple[tuple[str, ...], int]] = []
        self.missed_at: list[int] = []
        self._poison = poison

    def take(self, calls: Sequence[Call], entry: Entry) -> None:
        if entry.seq == self._poison:
            raise KeyError(entry.seq)
        self.taken.append((tuple(call.name for call in calls), entry.seq))

    def missed(self, first: int, last: int) -> None:
        self.missed_at.append(len(self.taken))


def test_a_follower_is_told_of_the_calls_of_each_entry_once_their_records_have_it() -> None:
    observer, log = make()
    records = observer.records
    steps: list[float | None] = []

    class Steps(Followed):
        def take(self, calls: Sequence[Call], entry: Entry) -> None:
            super().take(calls, entry)
            record = records.get(calls[0].name)
            steps.append(None if record is None else record.steps_done)

    followed = Steps()
    observer.follow(followed)
    progressed(begin(log), 2)
    observer.catch_up()
    assert (followed.taken, steps) == ([(("c1",), 1), (("c1",), 2), (("c1",), 3)], [None, 1, 2])


def test_what_was_missed_is_missing_in_the_evidence_and_told() -> None:
    observer, log = make(most=100)
    followed = Followed()
    observer.follow(followed)
    recorder = begin(log)
    assert Evidence(observer.views).complete("c1")
    progressed(recorder, 150)
    assert not Evidence(observer.views).complete("c1")
    assert (followed.missed_at, observer.missed) == ([1], 50)
    assert [seq for _, seq in followed.taken] == [1, *range(52, 152)]


def test_an_entry_that_a_follower_cannot_take_costs_evidence_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    observer, log = make()
    followed = Followed(poison=3)
    observer.follow(followed)
    progressed(begin(log), 3)
    assert not Evidence(observer.views).complete("c1")
    assert ([seq for _, seq in followed.taken], followed.missed_at, observer.missed) == ([1, 2, 4], [2], 1)
    assert "entry 3 of the event log" in caplog.text
