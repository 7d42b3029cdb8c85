"""The event log: places, pages, gaps, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from probe.log.context import Context
from probe.log.event_log import Entry, EventLog, Gap, LogPage
from probe.log.events import ClientMisuse, ServerState, SessionOpened

from ..support.facts import emitted, sized
from ..support.shown import as_value

READY = ServerState("ready")
# What an entry costs is its own business; this bound is beyond reach.
AMPLE = 10**9


def log(count: int, *, max_events: int = 100, max_bytes: int = AMPLE) -> EventLog:
    """A log of so many events; event n happened at wall 1000 + n, monotonic n."""
    made: EventLog
    made = EventLog(lambda: (1000.0 + made.last, float(made.last)), max_events=max_events, max_bytes=max_bytes)
    for number in range(1, count + 1):
        assert made.append(ServerState(str(number))) == number
    return made


def states(page: LogPage) -> list[str]:
    return [entry.fact.state for entry in page.entries if isinstance(entry.fact, ServerState)]


def test_an_event_gets_the_next_number_and_the_time() -> None:
    it = log(2)
    assert it.since(0, 10).entries == [
        Entry(number, 1000.0 + number, number, Context(), ServerState(str(number))) for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("since", "limit", "page", "next"),
    [
        (0, 10, ["1", "2", "3"], 3),
        (0, 2, ["1", "2"], 2),
        (2, 2, ["3"], 3),
        (3, 10, [], 3),
        (0, 0, [], 0),
        (7, 10, [], 7),
    ],
)
def test_a_page_follows_its_cursor(since: int, limit: int, page: list[str], next: int) -> None:
    got = log(3).since(since, limit)
    assert (got.gap, states(got), got.next) == (None, page, next)


@pytest.mark.parametrize(
    ("since", "gap", "page"),
    [
        (0, Gap(1, 4), ["5", "6", "7"]),
        (3, Gap(4, 4), ["5", "6", "7"]),
        (4, None, ["5", "6", "7"]),
        (5, None, ["6", "7"]),
    ],
)
def test_a_reader_that_fell_behind_is_told_exactly_what_it_lost(since: int, gap: Gap | None, page: list[str]) -> None:
    got = log(7, max_events=3).since(since, 10)
    assert (got.gap, states(got), got.next) == (gap, page, 7)


def test_a_gap_is_not_told_twice() -> None:
    """Also when the page after it is empty, the cursor moves beyond the gap."""
    it = log(7, max_events=3)
    first = it.since(0, 0)
    assert (first.gap, first.next) == (Gap(1, 4), 4)
    assert it.since(first.next, 10).gap is None


@pytest.mark.parametrize(
    ("until", "limit", "kept"),
    [(9, 2, ["6", "7"]), (6, 2, ["5", "6"]), (6, 10, ["5", "6"]), (5, 1, ["5"]), (4, 10, []), (3, 10, []), (6, 0, [])],
)
def test_the_last_entries_up_to_a_number(until: int, limit: int, kept: list[str]) -> None:
    it = log(7, max_events=3)
    assert [entry.seq for entry in it.until(until, limit)] == [int(number) for number in kept]


def test_numbers_never_repeat_after_eviction() -> None:
    it = log(50, max_events=3)
    assert it.append(READY) == it.last == 51


def test_the_log_is_bounded_in_bytes_and_keeps_its_newest_event() -> None:
    it = log(0, max_bytes=10_000)
    for size in (1000, 1000, 1000):
        it.append(sized(size))
    assert len(it.since(0, 10).entries) == 3
    it.append(sized(9000))
    assert [entry.seq for entry in it.since(0, 10).entries] == [4]
    it.append(sized(90_000))
    assert [entry.seq for entry in it.since(0, 10).entries] == [5]


@pytest.mark.parametrize(
    "large",
    [
        sized(10_000),
        ClientMisuse("what", "clause", "x" * 10_000),
        SessionOpened("id", "2025-11-25", "n", "v", b'{"experimental":"%s"}' % (b"x" * 10_000)),
    ],
    ids=lambda event: event.kind,
)
def test_whatever_is_large_counts_against_the_bytes(large: Any) -> None:
    it = log(0, max_bytes=15_000)
    it.append(large)
    it.append(large)
    assert len(it.since(0, 10).entries) == 1


def test_an_entry_as_the_api_shows_it() -> None:
    message = {"jsonrpc": "2.0", "id": "5", "result": {}}
    context = Context(connection="tcp2", exchange=3, label="mine", session="s1", call="c1", stream="p1")
    entry = Entry(7, 1000.5, 0.5, context, emitted(message, 3), 4)
    assert as_value(entry) == {
        "seq": 7,
        "at": 1000.5,
        "mono": 0.5,
        "kind": "message.emitted",
        "cause": 4,
        "connection": "tcp2",
        "exchange": 3,
        "label": "mine",
        "session": "s1",
        "call": "c1",
        "task": None,
        "stream": "p1",
        "position": 3,
        "rpc": "response",
        "method": None,
        "id": "5",
        "hidden": [],
        "message": {"jsonrpc": "2.0", "id": "5", "result": {}},
    }
