"""A stream: its bell, its readers, and what is recorded when a socket has taken a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.core.replay import LogClosedError
from probe.engine.streams import Stream
from probe.observe.log import EventLog
from probe.settings import build

from ..support.shown import as_value


def make(**settings: Any) -> tuple[Stream, EventLog]:
    log = EventLog(lambda: (0.0, 0.0), max_events=10_000, max_bytes=10**9)
    return Stream("p1", "s1", "response", log, build(settings)), log


def recorded(log: EventLog) -> list[dict[str, Any]]:
    """The events without their places."""
    shown = [as_value(entry) for entry in log.since(0, 10_000).entries]
    return [{name: event[name] for name in event if name not in ("seq", "at", "mono")} for event in shown]


async def wakes(stream: Stream, act: Callable[[], Any]) -> bool:
    """Whether something wakes whoever waits for the stream."""
    woken = trio.Event()

    async def wait() -> None:
        await stream.wait_changed()
        woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        act()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return woken.is_set()


async def test_whatever_changes_wakes_who_waits_for_it() -> None:
    stream, _ = make()
    assert await wakes(stream, lambda: stream.append(b"1"))
    assert await wakes(stream, stream.hang_up)
    assert await wakes(stream, lambda: stream.end(0.0))


def test_whatever_a_reader_must_notice_rings_its_bell() -> None:
    stream, _ = make()
    rung: list[str] = []
    stream.attach(1, lambda: rung.append("old"))
    stream.append(b"1")
    stream.hang_up()
    assert rung == ["old"] * 2
    stream.attach(2, lambda: rung.append("new"))
    assert rung == ["old"] * 3, "the reader that was displaced looks up"
    stream.append(b"2")
    stream.end(0.0)
    assert rung[3:] == ["new"] * 2


def test_a_stream_opens_ends_once_and_tells_how_much_it_carried() -> None:
    stream, log = make()
    stream.append(b"1")
    stream.append(b"2")
    stream.end(5.0)
    stream.end(9.0)
    assert stream.ended_at == 5.0
    place = {"session": "s1", "stream": "p1"}
    assert recorded(log) == [
        {"kind": "stream.opened", "pair": None, "exchange": None, **place, "purpose": "response"},
        {"kind": "stream.ended", "pair": None, **place, "messages": 2},
    ]
    with pytest.raises(LogClosedError):
        stream.append(b"3")


def test_a_newer_reader_displaces_the_one_before_it() -> None:
    stream, _ = make()
    old = stream.attach(1)
    assert stream.dismissed(old) is None
    new = stream.attach(2)
    assert (stream.dismissed(old), stream.dismissed(new)) == ("displaced by a newer connection", None)
    stream.detach(old)
    assert stream.reader is new, "an old connection that goes leaves the new one alone"
    stream.detach(new)
    assert stream.reader is None


def test_two_connections_of_one_exchange_number_are_still_two() -> None:
    stream, _ = make()
    old, new = stream.attach(1), stream.attach(1)
    assert (stream.dismissed(old) is None, stream.dismissed(new) is None) == (False, True)


def test_a_hang_up_dismisses_the_present_reader_only() -> None:
    stream, _ = make()
    present = stream.attach(1)
    stream.hang_up()
    assert stream.dismissed(present) == "hang-up"
    assert stream.dismissed(stream.attach(2)) is None


def test_a_hang_up_with_nobody_there_is_not_kept_for_the_next_reader() -> None:
    stream, _ = make()
    stream.hang_up()
    assert stream.dismissed(stream.attach(1)) is None


def test_delivery_is_recorded_each_time_and_counted_once() -> None:
    """Delivered and emitted are different facts; a resumed message is delivered twice and counts once."""
    stream, log = make()
    heard: list[int] = []
    for position in (1, 2, 3):
        stream.append(b"x", lambda position=position: heard.append(position))
    stream.delivered(1, 2, exchange=7)
    stream.delivered(2, 3, exchange=8)
    stream.delivered(1, 3, exchange=9)
    assert heard == [1, 2, 3]
    events = [(event["exchange"], event["first"], event["last"]) for event in recorded(log)[1:]]
    assert events == [(7, 1, 2), (8, 2, 3), (9, 1, 3)]


def test_what_was_pushed_out_unread_is_not_remembered_for_ever() -> None:
    stream, _ = make(replay_messages=8)
    heard: list[int] = []
    for position in range(1000):
        stream.append(b"x", lambda position=position: heard.append(position))
    assert len(stream._on_delivery) <= 16
    stream.delivered(stream.replay.first, stream.replay.last, exchange=1)
    assert heard == list(range(992, 1000))
