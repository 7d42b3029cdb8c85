"""What one writer has still to do: nothing is forgotten unless there is no room, and that is counted."""

from __future__ import annotations

import pytest

from probe.engine.audit.call_store import Unwritten
from probe.views.records import CallRecord

from ..support.views import Rows
from ..views.calls import RUN, begun


@pytest.fixture
def records() -> Rows:
    return Rows(RUN, 50)


def started(records: Rows, unwritten: Unwritten, number: int) -> CallRecord:
    records.take(begun(number))
    item = records.get(f"c{number}")
    assert item is not None
    unwritten.note(item.call)
    return item


def write_all(unwritten: Unwritten, entries: int = 1) -> list[tuple[str, int]]:
    """What is written: each call with how many entries of its evidence were before."""
    taken = []
    while (item := unwritten.take()) is not None:
        unwritten.taken_as(item[0], item[1] + entries)
        taken.append((item[0].call, item[1]))
    unwritten.commit()
    return taken


def test_each_change_is_written_once_and_the_longest_waiting_first(records: Rows) -> None:
    unwritten = Unwritten(records, 50)
    for number in (1, 2):
        started(records, unwritten, number)
    for call in ("c1", "c2", "c1"):
        unwritten.note(call)
    assert len(unwritten) == 2
    assert write_all(unwritten) == [("c1", 0), ("c2", 0)]
    assert write_all(unwritten) == []
    unwritten.note("c1")
    assert write_all(unwritten) == [("c1", 1)]


def test_what_was_taken_is_unwritten_until_it_is_known_to_be_written(records: Rows) -> None:
    unwritten = Unwritten(records, 50)
    for number in (1, 2, 3):
        started(records, unwritten, number)
    unwritten.take()
    assert [item.call for item in unwritten.pending()] == ["c3", "c2", "c1"]
    unwritten.note("c1")
    assert [item.call for item in unwritten.pending()] == ["c3", "c2", "c1"]
    unwritten.put_back()
    assert write_all(unwritten) == [("c1", 0), ("c2", 0), ("c3", 0)]
    assert unwritten.pending() == []


def test_what_could_not_be_written_is_written_with_all_its_evidence(records: Rows) -> None:
    unwritten = Unwritten(records, 50)
    item = started(records, unwritten, 1)
    unwritten.take()
    unwritten.taken_as(item, 4)
    unwritten.put_back()
    assert write_all(unwritten, 5) == [("c1", 0)]
    unwritten.note("c1")
    assert write_all(unwritten) == [("c1", 5)]


def test_a_file_that_was_made_anew_gets_all_evidence_again(records: Rows) -> None:
    unwritten = Unwritten(records, 50)
    started(records, unwritten, 1)
    write_all(unwritten)
    unwritten.forget_written()
    unwritten.note("c1")
    assert write_all(unwritten) == [("c1", 0)]


def test_the_longest_waiting_makes_room_and_is_counted(records: Rows) -> None:
    unwritten = Unwritten(records, 3)
    for number in range(1, 6):
        started(records, unwritten, number).outcome = "completed"
    assert (len(unwritten), unwritten.lost) == (3, 2)
    assert write_all(unwritten) == [("c3", 0), ("c4", 0), ("c5", 0)]


def test_a_call_that_runs_makes_room_but_is_written_in_the_end(records: Rows) -> None:
    unwritten = Unwritten(records, 3)
    long = started(records, unwritten, 1)
    for number in range(2, 100):
        started(records, unwritten, number).outcome = "completed"
    assert records.get("c1") is None
    long.outcome = "cancelled"
    unwritten.note("c1")
    assert ("c1", 0) in write_all(unwritten)
    assert unwritten.lost == 98 - 3 + 1, "not the first, but one more for its return"


def test_a_call_that_was_written_whole_is_not_lost_with_what_came_later(records: Rows) -> None:
    unwritten = Unwritten(records, 2)
    started(records, unwritten, 1).outcome = "completed"
    write_all(unwritten)
    unwritten.note("c1")
    for number in (2, 3):
        started(records, unwritten, number)
    assert (len(unwritten), unwritten.lost) == (2, 0)


def test_a_call_that_has_no_record_is_not_written(records: Rows) -> None:
    unwritten = Unwritten(records, 50)
    unwritten.note("c1")
    assert (len(unwritten), unwritten.lost) == (0, 0)


def test_nothing_is_kept_of_calls_that_are_written(records: Rows) -> None:
    unwritten = Unwritten(records, 10)
    for number in range(1, 200):
        started(records, unwritten, number).outcome = "completed"
        write_all(unwritten)
    assert (unwritten.lost, len(unwritten._running), len(unwritten._taken), len(unwritten._written)) == (0, 0, 0, 10)


def test_the_end_of_a_call_is_found_in_its_record_though_nobody_told_of_it(records: Rows) -> None:
    unwritten = Unwritten(records, 50)
    for number in range(1, 500):
        item = started(records, unwritten, number)
        write_all(unwritten)
        item.outcome = "completed"
    assert records.get("c1") is None
    unwritten.sweep()
    assert len(unwritten) == 50
    while len(unwritten):
        write_all(unwritten)
        unwritten.sweep()
    assert not unwritten._running
    assert len(unwritten._written) == 50


def test_what_made_room_comes_back_while_the_records_have_it_and_is_lost_no_longer(records: Rows) -> None:
    unwritten = Unwritten(records, 3)
    for number in range(1, 6):
        started(records, unwritten, number).outcome = "completed"
    assert [item.call for item in unwritten.pending()] == ["c5", "c4", "c3", "c2", "c1"]
    unwritten.note("c1")
    assert unwritten.lost == 2, "c2 and c3"
    write_all(unwritten)
    unwritten.sweep()
    assert write_all(unwritten) == [("c2", 0), ("c3", 0)]
    assert unwritten.lost == 0


def test_what_makes_room_while_it_is_taken_counts_once(records: Rows) -> None:
    unwritten = Unwritten(records, 2)
    for number in (1, 2):
        started(records, unwritten, number).outcome = "completed"
        unwritten.take()
    for number in (1, 2):
        unwritten.note(f"c{number}")
    for number in (3, 4):
        started(records, unwritten, number).outcome = "completed"
    assert unwritten.lost == 2
    unwritten.put_back()
    assert (len(unwritten), unwritten.lost) == (2, 2)


def test_a_call_that_runs_for_long_is_not_written_from_its_beginning_again(records: Rows) -> None:
    unwritten = Unwritten(records, 10)
    started(records, unwritten, 1)
    write_all(unwritten, 7)
    for number in range(2, 100):
        started(records, unwritten, number).outcome = "completed"
        write_all(unwritten)
    unwritten.note("c1")
    assert write_all(unwritten) == [("c1", 7)]


def test_what_ran_when_entries_were_missed_is_written_again(records: Rows) -> None:
    """Its evidence is no longer complete, and that has to be in the file."""
    unwritten = Unwritten(records, 50)
    for number in (1, 2, 3):
        started(records, unwritten, number)
    write_all(unwritten)
    settled = records.get("c2")
    assert settled is not None
    settled.outcome = "completed"
    unwritten.note("c2")
    write_all(unwritten)
    unwritten.missed()
    assert write_all(unwritten) == [("c1", 1), ("c3", 1)]


def test_calls_whose_end_was_missed_are_not_held_for_ever(records: Rows) -> None:
    unwritten = Unwritten(records, 10)
    for number in range(1, 200):
        started(records, unwritten, number)
        write_all(unwritten)
    assert len(unwritten._running) == 20
