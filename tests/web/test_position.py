"""How far a reader of the feed has come: what it may read at once, and when it is made to skip."""

from __future__ import annotations

from probe.web.feed.feed_pieces import PIECE, FeedCursor, FeedGap, Span

PER_SECOND, BURST = 10, 100


def cursor(position: int = 0, now: float = 0.0) -> FeedCursor:
    return FeedCursor(position, now, per_second=PER_SECOND, burst=BURST)


def read(it: FeedCursor, last: int, now: float, first: int = 1) -> list[FeedGap | Span]:
    """All that it may read at that time, each entry at the cost of one."""
    steps = []
    while (step := it.next(first, last, now)) is not None:
        steps.append(step)
        if isinstance(step, Span):
            it.took(step.last, step.last - step.after)
    return steps


def caught_up(last: int, now: float = 0.0) -> FeedCursor:
    """A reader that has just spent its burst to have all."""
    it = cursor(last - BURST, now)
    read(it, last, now)
    assert it.caught_up
    return it


def test_entries_come_in_spans_that_end_where_those_of_others_do() -> None:
    assert read(cursor(10), 100, 0.0) == [Span(10, 64), Span(64, 100)]
    assert read(cursor(50), 150, 0.0) == [Span(50, 64), Span(64, 128), Span(128, 150)]
    assert PIECE == 64


def test_who_has_all_gets_nothing() -> None:
    assert cursor(7).next(1, 7, 0.0) is None
    assert cursor(0).next(1, 0, 0.0) is None


def test_no_more_at_once_than_the_burst_and_the_piece_that_was_begun() -> None:
    it = cursor()
    assert read(it, 1000, 0.0) == [Span(0, 64), Span(64, 128)]
    assert read(it, 1000, 2.0) == [], "28 too many take 2.8 seconds"
    assert read(it, 1000, 2.9) == [Span(128, 192)]


def test_what_is_not_read_for_long_does_not_add_up_beyond_the_burst() -> None:
    it = cursor()
    assert it.next(1, 0, 1000.0) is None
    assert read(it, 1000, 1000.0)[:3] == [Span(0, 64), Span(64, 128), FeedGap("skipped", 129, 1000)]


def test_what_is_expensive_counts_for_more() -> None:
    it = cursor()
    assert it.next(1, 50, 0.0) == Span(0, 50)
    it.took(1, 150.0)
    assert it.next(1, 50, 5.0) is None
    assert it.next(1, 50, 5.1) == Span(1, 50)


def test_who_catches_up_gets_all_of_it_however_long_that_takes() -> None:
    it, now, got = cursor(), 0.0, list[FeedGap | Span]()
    while not it.caught_up:
        now += 1
        got += read(it, 2000, now)
    assert all(isinstance(step, Span) for step in got)
    assert now > 150


def test_who_had_caught_up_and_may_read_no_more_skips_to_the_newest() -> None:
    it = caught_up(1000)
    assert it.next(1, 1000 + BURST, 0.0) is None, "a burst behind it waits"
    assert it.next(1, 1000 + BURST + 17, 0.0) == FeedGap("skipped", 1001, 1100)
    assert it.next(1, 1117, 0.0) is None
    assert it.next(1, 1117, 1.0) == Span(1100, 1117)


def test_who_may_still_read_does_not_skip() -> None:
    it = cursor(1000)
    assert it.next(1, 1000, 0.0) is None
    assert it.next(1, 1500, 0.0) == Span(1000, 1024)


def test_those_who_skip_find_one_another_again() -> None:
    one, other = caught_up(1000), caught_up(1033)
    read(one, 1157, 0.0)
    read(other, 1157, 0.0)
    assert one.position == other.position == 1100


def test_what_was_pushed_out_is_named_even_to_who_may_not_read() -> None:
    it = caught_up(100)
    assert it.next(151, 300, 0.0) == FeedGap("evicted", 101, 150)
    assert cursor(150).next(151, 150, 0.0) is None, "an empty log has lost nothing to who had all"
    assert cursor(0).next(2, 1, 0.0) == FeedGap("evicted", 1, 1)
