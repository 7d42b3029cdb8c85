"""The replay log: positions, cursors, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from probe.core.replay import EvictedError, LogClosedError, ReplayLog


def log(*messages: bytes, max_messages: int = 3, max_bytes: int = 100) -> ReplayLog:
    made = ReplayLog(max_messages=max_messages, max_bytes=max_bytes)
    for message in messages:
        made.append(message)
    return made


def facts(log: ReplayLog) -> dict[str, Any]:
    kept = list(log.after(log.first - 1))
    return {"first": log.first, "last": log.last, "bytes": log.bytes, "closed": log.closed, "kept": kept}


def test_an_empty_log_has_position_zero_and_nothing_after_it() -> None:
    assert facts(log()) == {"first": 1, "last": 0, "bytes": 0, "closed": False, "kept": []}


def test_positions_count_from_one() -> None:
    it = log()
    assert [it.append(b"a"), it.append(b"bb")] == [1, 2]
    assert facts(it) == {"first": 1, "last": 2, "bytes": 3, "closed": False, "kept": [b"a", b"bb"]}


@pytest.mark.parametrize(("cursor", "after"), [(0, [b"a", b"b"]), (1, [b"b"]), (2, [])])
def test_a_cursor_is_followed_by_what_was_written_after_it(cursor: int, after: list[bytes]) -> None:
    assert list(log(b"a", b"b").after(cursor)) == after


@pytest.mark.parametrize("cursor", [-1, 3, 10**12])
def test_a_cursor_that_was_never_reached_is_refused(cursor: int) -> None:
    with pytest.raises(IndexError, match=f"cursor {cursor} is not within 0 to 2"):
        log(b"a", b"b").after(cursor)


def test_the_oldest_message_goes_when_there_are_too_many() -> None:
    it = log(b"a", b"b", b"c", b"d")
    assert facts(it) == {"first": 2, "last": 4, "bytes": 3, "closed": False, "kept": [b"b", b"c", b"d"]}
    assert len(it) == 3


def test_the_oldest_messages_go_when_they_are_too_large() -> None:
    it = log(b"a" * 4, b"b" * 4, b"c" * 4, max_bytes=8)
    assert facts(it) == {"first": 2, "last": 3, "bytes": 8, "closed": False, "kept": [b"bbbb", b"cccc"]}


def test_a_message_beyond_the_byte_bound_is_kept_alone() -> None:
    it = log(b"a", b"b" * 99, max_bytes=8)
    assert facts(it) == {"first": 2, "last": 2, "bytes": 99, "closed": False, "kept": [b"b" * 99]}


def test_a_reader_whose_next_message_has_gone_is_told_so() -> None:
    it = log(b"a", b"b", b"c", b"d", b"e")
    with pytest.raises(EvictedError, match="messages 2 to 2 are gone") as caught:
        it.after(1)
    assert caught.value.first == 3
    assert list(it.after(2)) == [b"c", b"d", b"e"]


def test_after_the_end_nothing_is_appended_and_everything_can_be_read() -> None:
    it = log(b"a")
    it.close()
    it.close()
    before = facts(it)
    with pytest.raises(LogClosedError, match="the stream has ended"):
        it.append(b"b")
    assert facts(it) == before == {"first": 1, "last": 1, "bytes": 1, "closed": True, "kept": [b"a"]}


def test_what_was_read_is_not_changed_by_what_comes_later() -> None:
    it = log(b"a")
    read = it.after(0)
    it.append(b"b")
    assert list(read) == [b"a"]


@pytest.mark.parametrize(("cursor", "kept"), [(0, [b"aa", b"b", b"c"]), (1, [b"b", b"c"]), (3, []), (7, [])])
def test_what_nobody_reads_again_goes_up_to_the_cursor_and_no_further(cursor: int, kept: list[bytes]) -> None:
    it = log(b"aa", b"b", b"c")
    it.forget(cursor)
    assert facts(it) == {"first": 4 - len(kept), "last": 3, "bytes": len(b"".join(kept)), "closed": False, "kept": kept}
